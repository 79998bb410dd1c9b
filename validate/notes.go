package validate

import (
	"fmt"
	"slices"

	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/internal/tokenizer"
	"github.com/qtype-dev/qtype/spec"
)

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
