package validate

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/jsonpath"
	"github.com/qtype-dev/qtype/internal/prompttemplate"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
)

// stepLint returns the warnings about single steps.
func stepLint() []rule {
	return []rule{templatePlaceholders(), unsetFileOutput(), invalidPath(), aggregateOutput(), missingPrompt(), embeddingPorts(), ineffectiveCache()}
}

func templatePlaceholders() rule {
	return rule{code: "QT905", check: on(func(p *ruleContext, s *spec.PromptTemplate) {
		ins := s.Common().AllInputs()
		reported := map[string]bool{}
		for _, one := range placeholders(s.Template) {
			if reported[one.text] || isVariable(s.Template, one) {
				continue
			}
			if one.problem == "" && containsPort(ins, one.name) {
				one.problem = p.formatProblem(one, ins)
				if one.problem == "" {
					continue
				}
			}
			reported[one.text] = true
			diagnostic := p.reportAt(within(placeOf(s, "template", "id"), one.place), "the template of step %q: %s", s.ID, placeholderError(one, ins))
			if near := diag.Nearest(one.name, idsOf(ins)); one.problem == "" && near != "" {
				diagnostic = diagnostic.WithSuggestion(strings.Replace(one.text, one.name, near, 1))
				if diag.IsUnambiguous(one.name, near, idsOf(ins)) {
					diagnostic = diagnostic.WithInside(one.text)
				}
			}
			p.list.Add(diagnostic)
		}
	})}
}

// formatProblem returns why a run refuses the format of a placeholder; empty if it does not.
func (p *ruleContext) formatProblem(one placeholder, ins []port) string {
	f, err := prompttemplate.ParseFormat(one.conversion, one.spec)
	if err == nil {
		i := slices.IndexFunc(ins, func(in port) bool { return in.ID == one.name })
		if t, ok := p.typed(ins[i]); ok {
			err = f.CheckType(t)
		}
	}
	if err != nil {
		return "the placeholder " + prompttemplate.Brief(one.text) + ": " + err.Error()
	}
	return ""
}

// isVariable reports whether a placeholder is a part of ${NAME}, an environment variable
// without a value: QT005 reports it, and the text of a run has the value in its place.
func isVariable(template string, one placeholder) bool {
	return one.problem == "" && strings.HasSuffix(template[:one.at], "$")
}

// placeholderError returns why a placeholder is invalid.
func placeholderError(one placeholder, ins []port) string {
	bare := strings.TrimSpace(one.name)
	switch {
	case one.problem != "":
		return one.problem
	case strings.Trim(bare, "0123456789") == "":
		return fmt.Sprintf("the placeholder %s has no name; write {{ and }} for braces", one.text)
	case bare != one.name && containsPort(ins, bare):
		return fmt.Sprintf("the placeholder %s has spaces around its name", one.text)
	}
	if base := bare[:max(strings.IndexAny(bare, ".["), 0)]; containsPort(ins, base) {
		return fmt.Sprintf("the placeholder %s reads a part of %q, which templates do not support", one.text, base)
	}
	return fmt.Sprintf("%q is not an input of the step", one.name)
}

func unsetFileOutput() rule {
	return rule{code: "QT908", warning: true, check: on(func(p *ruleContext, s *spec.FileWriter) {
		if outs := s.Common().AllOutputs(); len(outs) > 1 {
			p.report(outs[1].Span, "step %q (FileWriter) sets only its first output; %q is never set", s.ID, outs[1].ID)
		}
	})}
}

func invalidPath() rule {
	return rule{code: "QT909", check: on(func(p *ruleContext, s *spec.FieldExtractor) {
		path := strings.TrimSpace(s.JSONPath)
		if path == "" {
			return
		}
		if _, err := jsonpath.Parse(path); err != nil {
			at := placeOf(s, "json_path", "id")
			var part *jsonpath.Error
			if errors.As(err, &part) {
				at = within(at, excerptAt(path, part.From, part.Len))
			}
			p.report(at, "invalid json_path %q of step %q: %s", s.JSONPath, s.ID, err)
		}
	})}
}

func aggregateOutput() rule {
	return rule{code: "QT910", warning: true, check: on(func(p *ruleContext, s *spec.Aggregate) {
		outs := s.Common().AllOutputs()
		if len(outs) != 1 {
			p.list.Add(p.reportAt(firstExtra(s, "outputs", outs, 1), "step %q (Aggregate) needs exactly 1 output of type AggregateStats, has %d outputs", s.ID, len(outs)).
				WithSeverity(diag.Error)) // a run refuses it
		} else if t, ok := p.typed(outs[0]); ok && !t.Is("AggregateStats") {
			p.report(outs[0].Span, "the output %q of step %q must be AggregateStats, is %s", outs[0].ID, s.ID, t.String())
		}
	})}
}

func missingPrompt() rule {
	return rule{code: "QT911", check: on(func(p *ruleContext, s *spec.LLMInference) {
		if len(s.Common().AllInputs()) == 0 {
			p.report(placeOf(s, "inputs", "id"), "step %q (LLMInference) has no input to send to the model", s.ID)
		}
	})}
}

func embeddingPorts() rule {
	return rule{code: "QT912", warning: true, check: on(func(p *ruleContext, s *spec.InvokeEmbedding) {
		counts := []spec.Demand{{Min: 1, Max: 1}, {Outputs: true, Min: 1, Max: 1}}
		refused := *p
		refused.rule.warning = false // a run refuses a wrong number of variables
		refused.checkDemands(s, spec.Signature{Demands: counts})
		p.checkDemands(s, spec.Signature{Demands: []spec.Demand{{Types: []string{"text"}}, {Outputs: true, Types: []string{"Embedding"}}}})
	})}
}

func ineffectiveCache() rule {
	return rule{code: "QT916", warning: true, check: on(func(p *ruleContext, s spec.Step) {
		if s.Common().CacheConfig == nil {
			return
		}
		plan := p.stepPlan(s)
		if plan.IsBatch() {
			p.report(fieldKey(s, "cache_config"), "step %q (%s) is never cached", s.EntityID(), spec.TypeName(s))
			return
		}
		for step := range plan.All() {
			if m := step.Conversation(); m != nil {
				p.list.Add(p.reportAt(fieldKey(s, "cache_config"), "step %q is never cached: it uses the memory %q", s.EntityID(), m.ID).
					WithRelated(idPlace(m), "its result depends on the messages in this memory"))
				return
			}
		}
	})}
}
