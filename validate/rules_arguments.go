package validate

import (
	"strings"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// argumentRules returns the rules of entities that select an implementation by name.
func argumentRules() []rule { return []rule{unknownImplementation(), wrongArgument()} }

// selectionOf returns what an entity selects. It returns false if the name is missing,
// could not be read, or is known only at run time.
func selectionOf(e spec.Selector) (spec.Selection, bool) {
	s := e.Selection()
	return s, s.Name != "" && isDecided(s.Name) && e.Position().Complete(s.Key)
}

func unknownImplementation() rule {
	return rule{code: "QT500", checksSides: true,
		check: on(func(p *ruleContext, e spec.Selector) {
			s, ok := selectionOf(e)
			if _, written := e.Position().Lookup(s.Key); s.Name == "" {
				ok = written && e.Position().Complete(s.Key)
			}
			if !ok || s.Known {
				return
			}
			d := p.selectionProblem(e, placeOf(e, s.Key, "id"), "unknown %s %q", s.Noun, s.Name).
				WithNearest(s.Name, append(s.Names(), s.Aliases()...))
			if known := "known are " + strings.Join(s.Names(), ", "); d.Hint == "" {
				d = d.WithHint("%s", known)
			} else {
				d.Hint += " " + known
			}
			p.list.Add(d)
		})}
}

func wrongArgument() rule {
	return rule{code: "QT501", checksSides: true,
		check: on(func(p *ruleContext, e spec.Selector) {
			s, ok := selectionOf(e)
			if !ok || !s.Known {
				return
			}
			problems := s.Decode()
			for _, problem := range problems {
				p.reportArgument(e, s, problem)
			}
			if x, isVector := e.(*spec.VectorIndex); isVector && len(problems) == 0 {
				if wrong := x.CheckDimensions(s.Mappings[0].Into); wrong != nil && x.EmbeddingModel.To.Position().Complete("dimensions") {
					p.reportArgument(e, s, spec.SelectionError{ArgumentError: wrong, Mapping: s.Mappings[0].Key})
				}
			}
		})}
}

// selectionProblem returns a diagnostic, a warning for an index that nothing uses: it is
// never opened, and QType (Python) accepts it.
func (p *ruleContext) selectionProblem(e spec.Selector, span source.Span, format string, args ...any) diag.Diagnostic {
	d := p.reportAt(span, format, args...)
	if _, isIndex := e.(spec.Index); isIndex && !p.used[e] {
		return d.WithSeverity(diag.Warning)
	}
	return d
}

// reportArgument reports a wrong argument at its key or value, and a missing one at the
// mapping that lacks it.
func (p *ruleContext) reportArgument(e spec.Selector, s spec.Selection, problem spec.SelectionError) {
	if !e.Position().Complete(problem.Mapping) {
		return
	}
	owner := s.Noun + " " + quoted(s.Name)
	if problem.Key == "" {
		p.list.Add(p.selectionProblem(e, missingArgumentPlace(e, s, problem.Mapping), "%s of the %s: %s", problem.Mapping, owner, problem.Message).WithHint("%s", problem.Hint))
		return
	}
	key, value := p.argumentPlace(e, problem)
	if problem.Unknown {
		d := p.selectionProblem(e, key, "the %s has no argument %q in %s", owner, problem.Key, problem.Mapping)
		keys := s.ArgumentKeys(problem.Mapping)
		if d = d.WithNearest(problem.Key, keys); d.Hint == "" && len(keys) > 0 {
			d = d.WithHint("its arguments are %s", strings.Join(keys, ", "))
		}
		p.list.Add(d)
		return
	}
	if isUndecided(s.Value(problem.Mapping, problem.Key)) {
		return
	}
	p.list.Add(p.selectionProblem(e, value, "the argument %q of the %s: %s", problem.Key, owner, problem.Message).WithHint("%s", problem.Hint))
}

// argumentPlace returns the positions of a key of a free mapping and of its value.
func (p *ruleContext) argumentPlace(e spec.Selector, problem spec.SelectionError) (key, value source.Span) {
	field, ok := e.Position().Field(problem.Mapping).Lookup(problem.Key)
	if !ok {
		at := placeOf(e, problem.Mapping, "id")
		return at, at
	}
	return field.Key, field.Span()
}

// missingArgumentPlace returns the position of a mapping, or that of the name of the
// implementation if the entity has no such mapping.
func missingArgumentPlace(e spec.Selector, s spec.Selection, mapping string) source.Span {
	if field, ok := e.Position().Lookup(mapping); ok {
		return field.Key
	}
	return placeOf(e, s.Key, "id")
}

// areDecided reports whether no text has an environment variable that is not set.
func areDecided(texts map[string]spec.Secret) bool {
	for _, s := range texts {
		if !isDecided(s.Reveal()) {
			return false
		}
	}
	return true
}

// isUndecided reports whether a value contains an unset environment variable, so that its
// type is unknown.
func isUndecided(v any) bool {
	switch v := v.(type) {
	case string:
		return !isDecided(v)
	case []any:
		for _, item := range v {
			if isUndecided(item) {
				return true
			}
		}
	case map[string]any:
		for _, item := range v {
			if isUndecided(item) {
				return true
			}
		}
	}
	return false
}
