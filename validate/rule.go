package validate

import (
	"reflect"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// rule is the one declaration of a code.
type rule struct {
	code    string
	warning bool    // the document stays valid
	title   string  // what is wrong, without the particulars
	doc     string  // why it is wrong and what to do
	sample  example // a document, wrong and right
	check   check   // how the fault is found; zero for the codes that linking reports
	sided   bool    // it looks itself whether the side of a step that it is about could be read
}

// example is a document, once with the fault and once without.
type example interface {
	wrong() string
	right() string
}

// check looks at every node of one Go type.
type check struct {
	wants reflect.Type // a pointer to a struct of spec, or one of its interfaces
	run   func(*ruleContext, spec.Node)
}

// on makes a check of the nodes of type T.
func on[T any](f func(*ruleContext, T)) check {
	return check{wants: reflect.TypeFor[T](), run: func(p *ruleContext, n spec.Node) {
		if t, ok := n.(T); ok {
			f(p, t)
		}
	}}
}

// public is the rule as the manual shows it.
func (r rule) public() diag.Rule {
	return diag.Rule{Code: r.code, Severity: r.severity(), Title: r.title, Doc: r.doc,
		Wrong: r.sample.wrong(), Right: r.sample.right()}
}

func (r rule) severity() diag.Severity {
	if r.warning {
		return diag.Warning
	}
	return diag.Error
}

// table is every rule, ordered by code.
func table() []rule {
	all := slices.Concat(linkRules(), typeRules(), applicationRules(), flowRules(), interfaceRules(),
		signatureRules(), shapingRules(), invocationRules(), memoryRules(), policyRules(), contextRules(), encryptionRules(), modelRules(), toolRules(), authRules(),
		formulaRules(), controlRules(), sharingRules(), outsideRules(), secretRules(), queryRules(), effectRules(),
		flowLint(), stepLint(), documentLint())
	slices.SortFunc(all, func(a, b rule) int { return strings.Compare(a.code, b.code) })
	return all
}

// ruleContext is one rule at one node.
type ruleContext struct {
	*checker
	rule rule
	here context // where the node stands
}

// reportAt makes a finding under the rule's code; the caller adds hints and reports it.
func (p *ruleContext) reportAt(span source.Span, format string, args ...any) diag.Diagnostic {
	return diag.Rule{Code: p.rule.code, Severity: p.rule.severity()}.At(span, format, args...)
}

// report adds a finding that needs no hint.
func (p *ruleContext) report(span source.Span, format string, args ...any) {
	p.list.Add(p.reportAt(span, format, args...))
}

// apply runs every rule at every node that it is about.
func (p *checker) apply(rules []rule) {
	about := map[reflect.Type][]*ruleContext{}
	for _, v := range p.nodes {
		t := reflect.TypeOf(v.node)
		mine, known := about[t]
		if !known {
			for _, r := range rules {
				if r.check.run != nil && t.AssignableTo(r.check.wants) {
					mine = append(mine, &ruleContext{checker: p, rule: r})
				}
			}
			about[t] = mine
		}
		for _, one := range mine {
			if !isConclusive(v.node, one.rule) {
				continue
			}
			one.here = v.at
			one.rule.check.run(one, v.node)
		}
	}
}

// placeOf is the place of the first of keys that the node's mapping holds, the
// node's own place where it holds none.
func placeOf(n spec.Node, keys ...string) source.Span {
	for _, key := range keys {
		if field, ok := n.Place().Lookup(key); ok {
			return field.Span()
		}
	}
	return n.Place().Span()
}

// fieldKey is the place of a key, for a fault of its being there at all.
func fieldKey(n spec.Node, key string) source.Span {
	if field, ok := n.Place().Lookup(key); ok {
		return field.Key
	}
	return n.Place().Span()
}
