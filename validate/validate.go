// Package validate links a document and checks its meaning: ids are unique,
// references refer to entities of the right kind, types match, and every entity
// obeys the rules of the language.
//
// Each rule is declared once, with a code, a title, an explanation, and an invalid
// and a valid document; `qtype explain`, docs/rules.md and the tests read the same
// declarations. Checking needs no network, secrets or files, and reports all errors
// in one run: a reference that cannot be linked disables only the rules that need it.
package validate

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/internal/parts"
	"github.com/qtype-dev/qtype/internal/ruletext"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/internal/tokenizer"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
)

// Check links doc in place and returns all diagnostics, in file order. If the list
// has no errors, every Ref.To, StepItem.Step and Type.Custom of the document is set.
// Of a document that the loader read only in part, Check reports nothing that may
// follow from the unread part. It changes doc and is not safe for concurrent use on
// the same document.
func Check(doc *spec.Document) diag.List { return CheckFor(doc, nil) }

// CheckFor is Check for a program with these parts: what the document needs and the program does
// not have is an error. nil stands for all parts.
func CheckFor(doc *spec.Document, have *parts.Set) diag.List {
	if doc == nil {
		return nil
	}
	p := collect(doc)
	p.have = have
	p.declare()
	p.linkTypes()
	p.linkRefs()
	p.linkExpressions()
	p.makePlans()
	p.apply(append(partRules(doc.Language), rules()...))
	p.list.Sort()
	return p.list
}

// rules returns the table of rules. It is built once because a process may check
// thousands of documents.
var rules = sync.OnceValue(table)

// Rules returns the rules that Check applies, ordered by code.
func Rules() []diag.Rule {
	own, others := described(rules())
	all := slices.Concat(own, ruletext.Must(texts, others...))
	slices.SortStableFunc(all, func(a, b diag.Rule) int { return strings.Compare(a.Code, b.Code) })
	return all
}

// RulesOf returns the rules of the steps and tools that a program adds to the language.
func RulesOf(l *spec.Language) []diag.Rule {
	own, _ := described(partRules(l))
	return own
}

// Summary counts the declarations of a document, without those of its references.
type Summary struct {
	Flows     int // flows
	Steps     int // items in the step lists of flows
	Memories  int // chat memories
	Models    int // chat and embedding models
	Tools     int // tools
	Indexes   int // vector and document indexes
	Types     int // custom types
	Auths     int // credentials
	Variables int // variables of a document that is a list; those of flows are not counted
}

// Summarise counts the declarations of doc.
func Summarise(doc *spec.Document) Summary {
	if doc == nil {
		return Summary{}
	}
	s := Summary{Models: len(doc.Models), Tools: len(doc.Tools), Types: len(doc.Types),
		Auths: len(doc.Auths), Variables: len(doc.Variables)}
	app := doc.Application
	if app == nil {
		return s
	}
	s.Flows, s.Memories, s.Indexes = len(app.Flows), len(app.Memories), len(app.Indexes)
	s.Models += len(app.Models)
	s.Tools += len(app.Tools)
	s.Types += len(app.Types)
	s.Auths += len(app.Auths)
	for _, f := range app.Flows {
		if f != nil {
			s.Steps += len(f.Steps)
		}
	}
	return s
}

// String returns a text such as "2 flows, 7 steps, 1 memory, 1 model", without zero counts.
func (s Summary) String() string {
	var parts []string
	for _, c := range []struct {
		n        int
		one, all string
	}{
		{s.Flows, "flow", "flows"}, {s.Steps, "step", "steps"}, {s.Memories, "memory", "memories"},
		{s.Models, "model", "models"}, {s.Tools, "tool", "tools"}, {s.Indexes, "index", "indexes"},
		{s.Types, "type", "types"}, {s.Auths, "auth", "auths"}, {s.Variables, "variable", "variables"},
	} {
		switch {
		case c.n == 1:
			parts = append(parts, "1 "+c.one)
		case c.n > 1:
			parts = append(parts, fmt.Sprintf("%d %s", c.n, c.all))
		}
	}
	if len(parts) == 0 {
		return "nothing declared"
	}
	return strings.Join(parts, ", ")
}

// DeclaresNothing reports whether a document is an application without any declaration.
func DeclaresNothing(doc *spec.Document) bool {
	return doc != nil && doc.Application != nil && Summarise(doc) == (Summary{}) && len(doc.Application.References) == 0
}

// Notes returns what a user should know about a valid document: that it declares nothing,
// and the safety margin of each memory and model with a declared context window and
// estimated tokens.
func Notes(doc *spec.Document) []string {
	if doc == nil || doc.Application == nil {
		return nil
	}
	var notes []string
	if DeclaresNothing(doc) {
		notes = append(notes, "the document declares nothing: a flow makes it an application, and models, tools or types a library for other documents")
	}
	for _, f := range doc.Application.Flows {
		if f == nil {
			continue
		}
		for _, s := range f.Plan().Steps {
			called, m := s.Model(), s.Conversation()
			if called == nil || m == nil || m.Tokenizer.File != "" {
				continue
			}
			if note := marginNote(m, called.Base()); note != "" && !slices.Contains(notes, note) {
				notes = append(notes, note)
			}
		}
	}
	return notes
}

// marginNote returns the note about one memory and model; empty if tokens are exact.
func marginNote(m *spec.Memory, called *spec.Model) string {
	encoding, exact := tokenizer.ForModel(called.Name())
	row, known := called.ProviderRow()
	if exact || called.ContextWindow == 0 || known && row.Client == spec.MockClient {
		return ""
	}
	if m.Tokenizer.Encoding != "" {
		encoding = m.Tokenizer.Encoding
	}
	return fmt.Sprintf("memory %s estimates the tokens of model %s with %s: in the context window of %s, messages that the provider has not counted yet take %d times the estimate; for exact counts set tokenizer to the path of the model's tokenizer.json",
		m.ID, called.ID, encoding, textfmt.Thousands(called.ContextWindow), tokenizer.EstimateMargin)
}

// maybeDeclared reports whether a part of the document that could not be read may
// declare an entity of a type. Its absence is then not reported.
func (p *checker) maybeDeclared(target reflect.Type) bool {
	return slices.ContainsFunc(p.doc.Gaps.Declared, func(t reflect.Type) bool { return t.AssignableTo(target) })
}

// maybeReferenced reports whether a part of the document that could not be read may
// contain a reference to an entity.
func (p *checker) maybeReferenced(e spec.Entity) bool {
	return slices.ContainsFunc(p.doc.Gaps.Named, func(t reflect.Type) bool { return reflect.TypeOf(e).AssignableTo(t) })
}

// allPortsRead reports whether all keys with variables of a step could be read.
func allPortsRead(s spec.Step) bool {
	inputs, outputs := spec.PortKeys(s)
	return s.Position().Complete(append(inputs, outputs...)...)
}

// sideRead reports whether the keys with the inputs or the outputs of a step could be read.
func sideRead(s spec.Step, ofOutputs bool) bool {
	inputs, outputs := spec.PortKeys(s)
	if ofOutputs {
		return s.Position().Complete(outputs...)
	}
	return s.Position().Complete(inputs...)
}

// isConclusive reports whether the node was read completely enough to check r.
func isConclusive(n spec.Node, r rule) bool {
	if !n.Position().Complete() {
		return false
	}
	s, isStep := n.(spec.Step)
	return !isStep || r.checksSides || allPortsRead(s)
}

// knownFlow reports whether all inputs and all outputs of a flow could be read and linked.
func knownFlow(f *spec.Flow) (in, out bool) {
	if f == nil {
		return false, false
	}
	return f.Position().Complete("inputs") && allLinked(portsOf(f.Inputs)), f.Position().Complete("outputs") && allLinked(portsOf(f.Outputs))
}

// knownTool reports whether all inputs and all outputs of a tool could be read.
func knownTool(t spec.Tool) (in, out bool) {
	if flows := spec.Refs[*spec.Flow](spec.UsesOf(t), spec.RoleFlow); len(flows) > 0 {
		return knownFlow(flows[0].To)
	}
	arguments := t.Arguments()
	results, _ := t.Results()
	return t.Position().Complete("inputs", "parameters") && allHaveIDs(arguments), t.Position().Complete("outputs") && allHaveIDs(results)
}

// allHaveIDs reports whether all variables have ids. The loader reports missing ids.
func allHaveIDs(variables []*spec.Variable) bool {
	return !slices.ContainsFunc(variables, func(v *spec.Variable) bool { return v == nil || v.ID == "" })
}
