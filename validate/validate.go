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
	"sync"

	"github.com/qtype-dev/qtype/internal/parts"
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
	return documented(rules())
}

// RulesOf returns the rules of the steps and tools that a program adds to the language.
func RulesOf(l *spec.Language) []diag.Rule { return documented(partRules(l)) }

func documented(table []rule) []diag.Rule {
	public := make([]diag.Rule, len(table))
	for i, r := range table {
		public[i] = r.documentation()
	}
	return public
}
