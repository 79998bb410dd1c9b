package validate

import (
	"strings"

	"github.com/qtype-dev/qtype/spec"
)

// dataRules returns the rules of steps whose outputs depend on their inputs.
func dataRules() []rule {
	return []rule{agentOutputType(), explodeElement(), collectElement(), constructOutputs(), constructInputs(),
		constructRecord(), echoOutputs(), emptyPath()}
}

// inOut returns the only input and the only output of a step. It reports whether the
// step has exactly one of each and both types are known.
func (p *ruleContext) inOut(s spec.Step) (in, out port, ok bool) {
	ins, outs := s.Common().AllInputs(), s.Common().AllOutputs()
	if len(ins) != 1 || len(outs) != 1 {
		return in, out, false
	}
	_, inKnown := p.typed(ins[0])
	_, outKnown := p.typed(outs[0])
	return ins[0], outs[0], inKnown && outKnown
}

// reportOutputType reports an output with another type than the input.
func (p *ruleContext) reportOutputType(s spec.Step, out port, want string, in port) {
	diagnostic := p.reportAt(out.Span, "the output %q of step %q must be %s, is %s", out.ID, s.EntityID(), want, out.To.Type.String())
	if place := typePlace(in.To.Position().Field("type")); !place.IsZero() {
		diagnostic = diagnostic.WithRelated(place, "the input is "+in.To.Type.String())
	}
	p.list.Add(diagnostic)
}

func agentOutputType() rule {
	return rule{code: "QT327", check: on(func(p *ruleContext, s *spec.Agent) {
		in, out, ok := p.inOut(s)
		conversational := spec.Demand{Types: []string{"text", "ChatMessage"}}
		if ok && out.To.Type.Custom == nil && conversational.Fits(in.To.Type) && !out.To.Type.Same(in.To.Type) {
			p.reportOutputType(s, out, in.To.Type.Name, in)
		}
	})}
}

func explodeElement() rule {
	return rule{code: "QT336", check: on(func(p *ruleContext, s *spec.Explode) {
		in, out, ok := p.inOut(s)
		if ok && in.To.Type.IsList() && !out.To.Type.Same(*in.To.Type.Elem) {
			p.reportOutputType(s, out, in.To.Type.Elem.String(), in)
		}
	})}
}

func collectElement() rule {
	return rule{code: "QT340", check: on(func(p *ruleContext, s *spec.Collect) {
		in, out, ok := p.inOut(s)
		if ok && out.To.Type.IsList() && !out.To.Type.Elem.Same(in.To.Type) {
			element := in.To.Type
			element.Optional = false
			p.reportOutputType(s, out, "list["+element.String()+"]", in)
		}
	})}
}

func constructOutputs() rule {
	return rule{code: "QT341", check: on(func(p *ruleContext, s *spec.Construct) {
		if outs := s.Common().AllOutputs(); len(outs) != 1 {
			p.report(firstExtra(s, "outputs", outs, 1), "step %q (Construct) needs exactly 1 output, has %d", s.ID, len(outs))
		}
	})}
}

func constructInputs() rule {
	return rule{code: "QT342", check: on(func(p *ruleContext, s *spec.Construct) {
		if len(s.Common().AllInputs()) == 0 && len(s.FieldBindings) == 0 {
			p.report(placeOf(s, "field_bindings", "id"), "step %q (Construct) needs at least 1 input", s.ID)
		}
	})}
}

func constructRecord() rule {
	return rule{code: "QT343", check: on(func(p *ruleContext, s *spec.Construct) {
		outs := s.Common().AllOutputs()
		if len(outs) != 1 {
			return
		}
		if t, ok := p.typed(outs[0]); ok && !t.IsRecord() {
			p.report(outs[0].Span, "the output %q of step %q must be a record type, is %s", outs[0].ID, s.ID, t.String())
		}
	})}
}

func echoOutputs() rule {
	return rule{code: "QT344", check: on(func(p *ruleContext, s *spec.Echo) {
		ins, outs := s.Common().AllInputs(), s.Common().AllOutputs()
		missing, extra := without(ins, outs), without(outs, ins)
		if len(missing)+len(extra) == 0 || !allLinked(ins) || !allLinked(outs) {
			return
		}
		diagnostic := p.reportAt(placeOf(s, "outputs", "id"), "the outputs of step %q (Echo) must be its inputs", s.ID)
		if len(extra) > 0 {
			diagnostic.Span = extra[0].Span
		}
		p.list.Add(diagnostic.WithHint("%s", echoHint(missing, extra)))
	})}
}

// echoHint lists the variables that are only on one side.
func echoHint(missing, extra []port) string {
	var hints []string
	if len(missing) > 0 {
		hints = append(hints, "missing: "+joinNames(idsOf(missing)))
	}
	if len(extra) > 0 {
		hints = append(hints, "not an input: "+joinNames(idsOf(extra)))
	}
	return strings.Join(hints, "; ")
}

// without returns the ports of a that are not in b.
func without(a, b []port) []port {
	var rest []port
	for _, one := range a {
		if !containsPort(b, one.ID) {
			rest = append(rest, one)
		}
	}
	return rest
}

func idsOf(ports []port) []string {
	ids := make([]string, len(ports))
	for i, p := range ports {
		ids[i] = p.ID
	}
	return ids
}

func emptyPath() rule {
	return rule{code: "QT347", check: on(func(p *ruleContext, s *spec.FieldExtractor) {
		// The loader reports a missing path.
		_, written := s.Position().Lookup("json_path")
		if strings.TrimSpace(s.JSONPath) == "" && s.Position().Complete("json_path") && (written || s.Position() == nil) {
			p.report(placeOf(s, "json_path", "id"), "the json_path of step %q is empty", s.ID)
		}
	})}
}
