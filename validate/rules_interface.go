package validate

import (
	"slices"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/source"
)

// interfaceRules returns the rules of flows with an interface.
func interfaceRules() []rule {
	return []rule{chatInputMissing(), chatInputTwice(), inputNotInSession(), chatOutputCount(),
		textInputCount(), textOutputCount(), lastStepStreams()}
}

// interfaceFlow is a flow with an interface of one type.
type interfaceFlow struct {
	flow             *spec.Flow
	inputs           []port // all inputs
	interfaceInputs  []port // the inputs of the type that the interface requires
	interfaceOutputs []port // the outputs of that type
	known            bool   // all types are known
}

// onInterface returns a check of the flows with an interface of a type. valueType is
// the type of the values that the interface takes and returns. The check is skipped
// if the side of the flow, inputs or outputs, could not be read.
func onInterface(interfaceType, valueType, side string, f func(*ruleContext, interfaceFlow)) check {
	return on(func(p *ruleContext, flow *spec.Flow) {
		if flow.Interface == nil || flow.Interface.Type != interfaceType || !flow.Position().Complete(side) ||
			!flow.Interface.Position().Complete("type", "session_inputs") {
			return
		}
		at := interfaceFlow{flow: flow, inputs: portsOf(flow.Inputs), known: true}
		// QType (Python) counts each text input, but repeated ChatMessages and outputs only once.
		at.addPorts(p, &at.interfaceInputs, at.inputs, valueType, valueType == "text")
		at.addPorts(p, &at.interfaceOutputs, portsOf(flow.Outputs), valueType, false)
		if at.known {
			f(p, at)
		}
	})
}

// addPorts appends the ports of a type to list.
func (at *interfaceFlow) addPorts(p *ruleContext, list *[]port, ports []port, valueType string, repeated bool) {
	for _, one := range ports {
		t, ok := p.typed(one)
		at.known = at.known && ok
		if ok && t.Is(valueType) && (repeated || !containsPort(*list, one.ID)) {
			*list = append(*list, one)
		}
	}
}

func chatInputMissing() rule {
	return rule{code: "QT312", check: onInterface("Conversational", "ChatMessage", "inputs", func(p *ruleContext, at interfaceFlow) {
		if len(at.interfaceInputs) == 0 {
			p.report(placeOf(at.flow, "inputs", "interface"), "the conversational flow %q needs an input of type ChatMessage", at.flow.ID)
		}
	})}
}

func chatInputTwice() rule {
	return rule{code: "QT313", check: onInterface("Conversational", "ChatMessage", "inputs", func(p *ruleContext, at interfaceFlow) {
		if len(at.interfaceInputs) > 1 {
			p.report(at.interfaceInputs[1].Span, "the conversational flow %q allows only 1 input of type ChatMessage, has %d", at.flow.ID, len(at.interfaceInputs))
		}
	})}
}

func inputNotInSession() rule {
	return rule{code: "QT314", check: onInterface("Conversational", "ChatMessage", "inputs", func(p *ruleContext, at interfaceFlow) {
		session := portsOf(at.flow.Interface.SessionInputs)
		for _, in := range at.inputs {
			if t, _ := p.typed(in); !t.Is("ChatMessage") && !slices.ContainsFunc(session, func(s port) bool { return s.To == in.To }) {
				p.list.Add(p.reportAt(in.Span, "the input %q of the conversational flow %q must be a session input", in.ID, at.flow.ID).
					WithHint("add it to session_inputs"))
			}
		}
	})}
}

func chatOutputCount() rule {
	return rule{code: "QT315", check: exactlyOne("Conversational", "ChatMessage", "outputs")}
}

func textInputCount() rule {
	return rule{code: "QT316", check: exactlyOne("Complete", "text", "inputs")}
}

func textOutputCount() rule {
	return rule{code: "QT317", check: exactlyOne("Complete", "text", "outputs")}
}

func lastStepStreams() rule {
	return rule{code: "QT318", check: on(func(p *ruleContext, f *spec.Flow) {
		if f.Interface == nil || f.Interface.Type != "Complete" || len(f.Steps) == 0 ||
			!f.Position().Complete("steps") || !f.Interface.Position().Complete("type") {
			return
		}
		item := f.Steps[len(f.Steps)-1]
		if item == nil {
			return
		}
		if last := item.Step; last != nil && !spec.Streams(last) {
			p.report(placeOf(last, "type", "id"), "the last step %q of the completion flow %q cannot stream text; it must be an LLMInference or an Agent", last.EntityID(), f.ID)
		}
	})}
}

// exactlyOne returns a check that flows with an interface have exactly one input or
// output of the type that the interface requires.
func exactlyOne(interfaceType, valueType, side string) check {
	return onInterface(interfaceType, valueType, side, func(p *ruleContext, at interfaceFlow) {
		ports, noun, flow := at.interfaceInputs, "input", "completion"
		if side == "outputs" {
			ports, noun = at.interfaceOutputs, "output"
		}
		if interfaceType == "Conversational" {
			flow = "conversational"
		}
		if len(ports) != 1 {
			p.report(firstExtra(at.flow, side, ports, 1), "the %s flow %q needs exactly 1 %s of type %s, has %d",
				flow, at.flow.ID, noun, valueType, len(ports))
		}
	})
}

// firstExtra returns the position of the first port after the allowed ones, or of the
// list if there are too few.
func firstExtra(n spec.Node, key string, ports []port, allowed int) source.Span {
	if len(ports) > allowed {
		return ports[allowed].Span
	}
	return placeOf(n, key, "id")
}

func flowRules() []rule { return []rule{flowWithoutSteps(), inputNotAvailable()} }

func flowWithoutSteps() rule {
	return rule{code: "QT310", check: on(func(p *ruleContext, f *spec.Flow) {
		if len(f.Steps) > 0 || f.ID == "" || !f.Position().Complete("steps") {
			return // without an id it is probably not meant as a flow
		}
		p.report(placeOf(f, "steps", "id"), "the flow %q has no steps", f.ID)
	})}
}

func inputNotAvailable() rule {
	return rule{code: "QT311", check: on(func(p *ruleContext, f *spec.Flow) {
		plan := p.planOf(f)
		if !plan.complete {
			return
		}
		available := map[*spec.Variable]bool{}
		for i := range f.Inputs {
			available[f.Inputs[i].To] = true
		}
		for i, s := range plan.steps {
			for _, in := range s.Reads {
				if in.To != nil && !available[in.To] {
					p.reportUnavailable(f, in, i)
				}
			}
			for _, out := range s.Writes {
				available[out.To] = true
			}
		}
	})}
}

// reportUnavailable reports a variable that step i reads and no earlier step writes.
func (p *ruleContext) reportUnavailable(f *spec.Flow, in port, i int) {
	plan := p.planOf(f)
	reader := plan.steps[i]
	diagnostic := p.reportAt(in.Span, "the step %q reads %q, which no earlier step writes", reader.Step.EntityID(), in.ID)
	if !reader.Item.Ref.Span.IsZero() {
		diagnostic.Span = reader.Item.Ref.Span
		diagnostic = diagnostic.WithRelated(in.Span, "the step reads it here")
	}
	local := p.locals[f][in.ID]
	later := plan.after(plan.written[in.To], i)
	switch {
	case later < len(plan.steps):
		writer := plan.steps[later].Step
		diagnostic = diagnostic.WithHint("step %q writes it later", writer.EntityID()).
			WithRelated(idPlace(writer), "the step that writes it")
	case local != nil && local != in.To:
		diagnostic = diagnostic.WithHint("the step is written in another flow and reads that flow's %q", in.ID).
			WithRelated(idPlace(in.To), "the variable that it reads")
	default:
		diagnostic = diagnostic.WithHint("make it an input of the flow %q or an output of an earlier step", f.ID)
	}
	p.list.Add(diagnostic)
}
