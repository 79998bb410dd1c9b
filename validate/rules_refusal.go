package validate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/modelparams"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

func refusedByModel() rule {
	return rule{code: "QT605", check: on(func(p *ruleContext, m *spec.Model) {
		if knownModel(m) == nil || !m.Position().Complete("inference_params", "thinking", "api") || !isDecided(string(m.Thinking)) {
			return
		}
		for _, r := range modelparams.Refusals(m, p.usesTools(m)) {
			p.reportRefusal(m, r)
		}
	})}
}

// reportRefusal reports a parameter that a model refuses.
func (p *ruleContext) reportRefusal(m *spec.Model, r modelparams.Refusal) {
	at := placeOf(m, "model_id", "id")
	field, written := paramAt(m, r.Path)
	switch thinking, set := m.Position().Lookup("thinking"); {
	case written:
		at = field.Key
	case set && r.Name != "tools":
		at = thinking.Span()
	}
	message := fmt.Sprintf("the model %s refuses %s", m.Name(), r.Name)
	if len(r.Rule.Values) > 0 {
		message += " " + joinNames(r.Rule.Values)
	}
	if r.Rule.Error != "" {
		text := r.Rule.Error
		for _, example := range r.Rule.Parameters { // the text of the catalogue names one of them
			text = strings.NewReplacer("`"+example+"`", "`"+r.Name+"`", "'"+example+"'", "'"+r.Name+"'").Replace(text)
		}
		message += ": " + strings.TrimSuffix(text, ".")
	}
	d := p.reportAt(at, "%s", message)
	if r.Rule.Status != 400 {
		d = d.WithSeverity(diag.Warning)
	}
	switch {
	case r.Name == "tools" && m.API == "chat":
		d = d.WithHint("write api: responses")
	case r.Name == "tools":
		d = d.WithHint("write api: responses, or set reasoning_effort to none if the model has it")
	case len(r.Accepted) > 0:
		d = d.WithHint("%s takes %s", m.Name(), strings.Join(r.Accepted, ", "))
	case written:
		d = d.WithHint("remove %s", r.Name)
		if fixes, ok := removeParams(m, [][]string{r.Path}); ok && len(r.Rule.Values) == 0 {
			d.Fixes = fixes
		}
	}
	p.list.Add(d)
}

// usesTools reports whether a step calls a model with tools, itself or as a fallback.
func (p *checker) usesTools(m *spec.Model) bool {
	if p.withTools == nil {
		p.withTools = map[*spec.Model]bool{}
		for _, v := range p.nodes {
			step, ok := v.node.(spec.Step)
			if !ok {
				continue
			}
			plan := p.stepPlan(step)
			if plan.Model() == nil || len(plan.Tools())+len(spec.Linked[*spec.Flow](plan.Uses, spec.RoleHandoff)) == 0 {
				continue
			}
			for _, model := range modelAndFallbacks(plan.Model().Base()) {
				p.withTools[model] = true
			}
		}
	}
	return p.withTools[m]
}

// paramAt returns the position of an inference parameter.
func paramAt(m *spec.Model, path []string) (*spec.Position, bool) {
	at, ok := m.Position().Lookup("inference_params")
	for _, name := range path {
		if at, ok = at.Lookup(name); !ok {
			return nil, false
		}
	}
	return at, ok && len(path) > 0
}

// adaptParams returns which parameters of the document a replacement model refuses, and the
// edits that remove them. It is false if they are not clear.
func adaptParams(next *spec.Model) (removed []string, fixes []diag.Fix, ok bool) {
	var paths [][]string
	ok = true
	for _, r := range modelparams.Refusals(next, false) {
		path := r.Path
		if path == nil {
			ok = false
			continue
		}
		if path[0] == "thinking" { // its keys depend on each other
			path = path[:1]
		}
		if name := strings.Join(path, "."); !slices.Contains(removed, name) {
			paths, removed = append(paths, path), append(removed, name)
		}
	}
	if !ok {
		return removed, nil, false
	}
	fixes, ok = removeParams(next, paths)
	return removed, fixes, ok
}

// removeParams returns the edits that remove parameters from inference_params. It is false if
// that would also remove comments, or if aliases use the text elsewhere.
func removeParams(m *spec.Model, paths [][]string) ([]diag.Fix, bool) {
	if len(paths) == 0 {
		return nil, true
	}
	gone := map[*spec.Position]bool{}
	for _, path := range paths {
		at, ok := paramAt(m, path)
		if !ok {
			return nil, false
		}
		gone[at] = true
	}
	return removeParts(m.Position(), gone)
}

// removeParts removes fields of a mapping and of those inside it. A mapping of which nothing
// would be left is added to gone.
func removeParts(mapping *spec.Position, gone map[*spec.Position]bool) ([]diag.Fix, bool) {
	var fixes []diag.Fix
	for _, part := range mapping.Parts {
		if gone[part] || len(part.Parts) == 0 || part.Key.IsZero() {
			continue
		}
		inner, ok := removeParts(part, gone)
		if !ok {
			return nil, false
		}
		fixes = append(fixes, inner...)
	}
	if !slices.ContainsFunc(mapping.Parts, func(part *spec.Position) bool { return !gone[part] }) {
		gone[mapping] = true
		return nil, true
	}
	runs, ok := removeRuns(mapping, gone)
	return append(fixes, runs...), ok
}

// removeRuns removes fields of a mapping, with what separates them from the others.
func removeRuns(mapping *spec.Position, gone map[*spec.Position]bool) ([]diag.Fix, bool) {
	var fixes []diag.Fix
	parts := mapping.Parts
	for i := 0; i < len(parts); i++ {
		if !gone[parts[i]] {
			continue
		}
		first := i
		for i+1 < len(parts) && gone[parts[i+1]] {
			i++
		}
		span := source.Span{File: parts[first].Key.File}
		switch {
		case first > 0:
			span.Start, span.End = parts[first-1].Value.End, parts[i].Value.End
		case i+1 < len(parts):
			span.Start, span.End = parts[first].Key.Start, parts[i+1].Key.Start
		default:
			return nil, false
		}
		if span.File == nil || span.File.IsShared(span) || parts[i].Value.File != span.File || hasComment(span) {
			return nil, false
		}
		fixes = append(fixes, diag.Fix{Span: span})
	}
	return fixes, true
}

// hasComment reports whether a line of a span may have a comment.
func hasComment(s source.Span) bool {
	for n := s.Start.Line; n <= s.End.Line; n++ {
		if strings.Contains(s.File.Line(n), "#") {
			return true
		}
	}
	return false
}
