package validate

import (
	"embed"
	"reflect"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// rule declares a diagnostic code.
type rule struct {
	code        string
	warning     bool             // the document stays valid
	check       check            // zero for codes that are reported while linking
	checksSides bool             // the check handles steps of which only the inputs or the outputs could be read
	describe    func() diag.Rule // returns the texts of a rule without a file: the declaration has them
}

// texts are the titles, reasons and examples of the rules.
//
//go:embed rules/*.md
var texts embed.FS

// check is run for every node of one Go type.
type check struct {
	nodeType reflect.Type // a pointer to a struct of spec, or an interface of spec
	run      func(*ruleContext, spec.Node)
}

// on returns a check for the nodes of type T.
func on[T any](f func(*ruleContext, T)) check {
	return check{nodeType: reflect.TypeFor[T](), run: func(p *ruleContext, n spec.Node) {
		if t, ok := n.(T); ok {
			f(p, t)
		}
	}}
}

// described returns the rules that their declarations describe, and the others without their texts.
func described(table []rule) (own, others []diag.Rule) {
	for _, r := range table {
		if r.describe == nil {
			others = append(others, diag.Rule{Code: r.code, Severity: r.severity()})
			continue
		}
		d := r.describe()
		d.Code, d.Severity = r.code, r.severity()
		own = append(own, d)
	}
	return own, others
}

func (r rule) severity() diag.Severity {
	if r.warning {
		return diag.Warning
	}
	return diag.Error
}

// table returns all rules, ordered by code.
func table() []rule {
	all := slices.Concat(linkRules(), typeRules(), applicationRules(), flowRules(), interfaceRules(),
		signatureRules(), dataRules(), invocationRules(), memoryRules(), policyRules(), contextRules(),
		encryptionRules(), modelRules(), catalogueRules(), toolRules(), agentRules(), syncRules(), fileRules(), filterRules(), argumentRules(), splitterRules(), rerankerRules(), citationRules(), authRules(), indexRules(),
		expressionRules(), controlRules(), referenceRules(), externalRules(), secretRules(), queryRules(), allowRules(), unusedSettingRules(),
		availableRules(), flowLint(), stepLint(), templateLint(), documentLint())
	slices.SortStableFunc(all, func(a, b rule) int { return strings.Compare(a.code, b.code) })
	return all
}

// ruleContext is passed to a rule for each node, as analysis.Pass to an analyzer.
type ruleContext struct {
	*checker
	rule rule
	here nodeContext // of the node
}

// reportAt returns a diagnostic with the rule's code. The caller adds hints and reports it.
func (p *ruleContext) reportAt(span source.Span, format string, args ...any) diag.Diagnostic {
	return diag.Rule{Code: p.rule.code, Severity: p.rule.severity()}.At(span, format, args...)
}

// report adds a diagnostic without hints.
func (p *ruleContext) report(span source.Span, format string, args ...any) {
	p.list.Add(p.reportAt(span, format, args...))
}

// apply runs every rule for the nodes of its type.
func (p *checker) apply(rules []rule) {
	byType := map[reflect.Type][]*ruleContext{}
	for _, v := range p.nodes {
		t := reflect.TypeOf(v.node)
		contexts, known := byType[t]
		if !known {
			for _, r := range rules {
				if r.check.run != nil && t.AssignableTo(r.check.nodeType) {
					contexts = append(contexts, &ruleContext{checker: p, rule: r})
				}
			}
			byType[t] = contexts
		}
		for _, c := range contexts {
			if isConclusive(v.node, c.rule) {
				c.here = v.at
				c.rule.check.run(c, v.node)
			}
		}
	}
}

// placeOf returns the position of the first of keys that the node has, or of the node if
// it has none.
func placeOf(n spec.Node, keys ...string) source.Span {
	for _, key := range keys {
		if field, ok := n.Position().Lookup(key); ok {
			return field.Span()
		}
	}
	return n.Position().Span()
}

// fieldKey returns the position of a key, for diagnostics about its presence.
func fieldKey(n spec.Node, key string) source.Span {
	if field, ok := n.Position().Lookup(key); ok {
		return field.Key
	}
	return n.Position().Span()
}
