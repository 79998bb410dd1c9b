// Package validate says whether a document makes sense, beyond its shape: ids
// are unique, references name something of the right kind, types meet, and
// every entity obeys the rules of the language.
//
// Each rule is declared once, in a table keyed by its code, with a title, an
// explanation and a wrong and a right document; `qtype explain`, the manual and
// the tests read the same declarations. Checking needs no network, no secrets
// and no files, and finds every fault in one run: what could not be linked only
// silences the rules that need it.
package validate

import (
	"sync"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
)

// Check links doc in place and returns everything that is wrong with it, in
// file order. When the list holds no errors every Ref.To, StepItem.Step and
// Type.Custom of the document is set. A document that the loader could only
// partly read is checked as far as it goes. Check changes doc and must not run
// twice at once on the same one.
func Check(doc *spec.Document) diag.List {
	if doc == nil {
		return nil
	}
	p := collect(doc)
	p.declare()
	p.linkTypes()
	p.linkRefs()
	p.linkFormulas()
	p.makePlans()
	p.apply(rules())
	p.list.Sort()
	return p.list
}

// rules is the table, made once: a call may check thousands of documents.
var rules = sync.OnceValue(table)

// Rules are the codes that Check reports, in the order of their numbers.
func Rules() []diag.Rule {
	table := rules()
	public := make([]diag.Rule, len(table))
	for i, r := range table {
		public[i] = r.public()
	}
	return public
}
