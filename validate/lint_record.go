package validate

import (
	"slices"

	"github.com/qtype-dev/qtype/spec"
)

// field is one field of a record type.
type field struct {
	name     string
	required bool
}

// fieldsOf returns the fields of a record type, or nil for other types.
func fieldsOf(t spec.Type) []field {
	if t.Custom != nil {
		fields := make([]field, len(t.Custom.Properties))
		for i, prop := range t.Custom.Properties {
			fields[i] = field{prop.Name, !prop.Type.Optional}
		}
		return fields
	}
	switch t.Name {
	case "AggregateStats":
		return fields([]string{"num_successful", "num_failed", "num_total"})
	case "ChatContent":
		return fields([]string{"type", "content"}, "mime_type")
	case "ChatMessage":
		return fields([]string{"role", "blocks"})
	case "Embedding":
		return fields([]string{"vector"}, "content", "metadata")
	case "RAGChunk":
		return fields([]string{"chunk_id", "document_id"}, "vector", "content", "metadata")
	case "RAGDocument":
		return fields([]string{"content", "file_id", "file_name", "type"}, "uri", "metadata")
	case "RAGSearchResult", "SearchResult":
		return fields([]string{"content", "doc_id", "score"})
	}
	return nil
}

// fields returns the required fields, then the optional ones.
func fields(required []string, optional ...string) []field {
	var all []field
	for _, name := range required {
		all = append(all, field{name, true})
	}
	for _, name := range optional {
		all = append(all, field{name, false})
	}
	return all
}

func constructFields() rule {
	return rule{code: "QT904", warning: true, title: "Construct: bindings that do not match the record",
		doc: "The keys of field_bindings are fields of the output's type, and every field that is not optional is bound.",
		sample: sample{head: sampleOrder, in: "number: int", out: "order: Order",
			steps: "- {type: Construct, id: work, field_bindings: {⟦nubmer│number⟧: number}, outputs: [order]}"},
		check: on(func(p *ruleContext, s *spec.Construct) {
			outs := s.Common().AllOutputs()
			if len(outs) != 1 || len(s.FieldBindings) == 0 {
				return
			}
			t, known := p.typed(outs[0])
			if !known || !t.IsRecord() || t.Custom != nil && !t.Custom.Position().Complete("properties") {
				return
			}
			p.checkFields(s, t)
		})}
}

// checkFields compares the bindings with the fields of the record.
func (p *ruleContext) checkFields(s *spec.Construct, t spec.Type) {
	var missing, names []string
	for _, f := range fieldsOf(t) {
		names = append(names, f.name)
		if f.required && !bound(s.FieldBindings, f.name) {
			missing = append(missing, f.name)
		}
	}
	misspelled := false
	for _, b := range s.FieldBindings {
		if !slices.Contains(names, b.Name) {
			misspelled = true
			p.reportUnknownField(s, t, b.Name, names)
		}
	}
	// A misspelled field is not reported as a missing one as well.
	if len(missing) > 0 && !misspelled {
		p.report(bindingsPlace(s, "field_bindings"), "the required fields %s of %s are not bound", joinNames(missing), t.Name)
	}
}

// reportUnknownField reports a binding of a field that the record does not have.
func (p *ruleContext) reportUnknownField(s *spec.Construct, t spec.Type, name string, fields []string) {
	diagnostic := p.reportAt(keyPlace(s, "field_bindings", name), "the type %s has no field %q", t.Name, name).
		WithNearest(name, fields)
	if bound(s.FieldBindings, diagnostic.Suggestion) { // one field cannot be bound twice
		diagnostic = diagnostic.WithoutFix()
	}
	if diagnostic.Suggestion == "" {
		diagnostic = diagnostic.WithHint("its fields are %s", joinNames(fields))
	}
	p.list.Add(diagnostic)
}
