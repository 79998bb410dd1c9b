package validate

import (
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/spec"
)

// flowLint returns the warnings about flows.
func flowLint() []rule {
	return []rule{outputNotProduced(), unknownSessionInput(), extraCompletionInput(), overwrittenValue()}
}

func outputNotProduced() rule {
	return rule{code: "QT901", warning: true, check: on(func(p *ruleContext, f *spec.Flow) {
		plan := p.planOf(f)
		if !plan.complete || len(plan.steps) == 0 {
			return
		}
		given := map[*spec.Variable]bool{}
		for _, in := range f.Inputs {
			given[in.To] = true
		}
		for _, out := range portsOf(f.Outputs) {
			if out.To != nil && !given[out.To] && len(plan.written[out.To]) == 0 {
				p.report(out.Span, "no step writes the output %q of flow %q", out.ID, f.ID)
			}
		}
	})}
}

func unknownSessionInput() rule {
	return rule{code: "QT906", warning: true, check: on(func(p *ruleContext, f *spec.Flow) {
		if f.Interface == nil || !f.Position().Complete("inputs") {
			return
		}
		for _, s := range portsOf(f.Interface.SessionInputs) {
			if s.To != nil && !slices.ContainsFunc(f.Inputs, func(in spec.Ref[*spec.Variable]) bool { return in.To == s.To }) {
				p.report(s.Span, "the session input %q is not an input of flow %q", s.ID, f.ID)
			}
		}
	})}
}

func extraCompletionInput() rule {
	return rule{code: "QT907", warning: true, check: onInterface("Complete", "text", "inputs", func(p *ruleContext, at interfaceFlow) {
		for _, in := range at.inputs {
			if t, _ := p.typed(in); len(at.interfaceInputs) == 1 && !t.Is("text") && !in.To.IsOptional() {
				p.report(in.Span, "a completion request for flow %q cannot set the required input %q", at.flow.ID, in.ID)
			}
		}
	})}
}

func overwrittenValue() rule {
	return rule{code: "QT917", warning: true, check: on(func(p *ruleContext, f *spec.Flow) {
		if !p.planOf(f).read {
			return // a step that could not be read may read the value
		}
		plan := p.planOf(f)
		for i, s := range plan.steps {
			for _, out := range s.Writes {
				if later := plan.overwriter(i, out.To); out.To != nil && later != nil {
					p.list.Add(p.reportAt(out.Span, "step %q writes %q, but step %q overwrites it before it is read", s.Step.EntityID(), out.ID, later.EntityID()).
						WithRelated(idPlace(later), "the step that overwrites it"))
				}
			}
		}
	})}
}

// documentLint returns the warnings about declarations.
func documentLint() []rule { return []rule{constructFields(), unused(), unportableID()} }

func unused() rule {
	return rule{code: "QT915", warning: true, check: on(func(p *ruleContext, app *spec.Application) {
		if !p.here.root || len(app.Flows) == 0 {
			return
		}
		for _, v := range p.nodes {
			e, ok := v.node.(spec.Entity)
			if !ok || p.used[e] || !mustBeUsed(v) || p.maybeReferenced(e) || !e.Position().Complete("id") {
				continue
			}
			// Included files may declare more than this document uses.
			if place := idPlace(e); e.EntityID() != "" && place.File == idPlace(app).File {
				p.report(place, "the %s %q is never used", kindNoun(e), e.EntityID())
			}
		}
	})}
}

// mustBeUsed reports whether a node has no effect unless something refers to it. The
// variables of tools and the entities of references are exempt.
func mustBeUsed(v visit) bool {
	switch v.node.(type) {
	case *spec.Variable:
		return v.at.root && v.at.tool == nil
	case *spec.Memory, spec.ModelEntity, spec.Tool, spec.Index:
		return v.at.root
	case *spec.Store: // the first store is the default of memories
		return v.at.root && v.at.app != nil && v.node != spec.Node(v.at.app.Stores[0])
	}
	return false
}

func unportableID() rule {
	return rule{code: "QT918", warning: true, check: on(func(p *ruleContext, e spec.Entity) {
		if id := e.EntityID(); id != "" && !isPortableID(id) && e.Position().Complete("id") {
			p.list.Add(p.reportAt(idPlace(e), "the id %q is not valid in URLs, file names and JSON fields", id).
				WithHint("use a letter, then letters, digits, _, . and -"))
		}
	})}
}

// isPortableID reports whether an id is a letter followed by letters, digits, _, . and -.
func isPortableID(id string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return id != "" && strings.Contains(letters, id[:1]) && strings.Trim(id, letters+"0123456789_.-") == ""
}

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
	return rule{code: "QT904", warning: true, check: on(func(p *ruleContext, s *spec.Construct) {
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
