package validate

import (
	"slices"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/source"
)

// interfaceRules are about flows that are talked to.
func interfaceRules() []rule {
	return []rule{chatInputMissing(), chatInputTwice(), inputOutsideSession(), chatOutputCount(),
		textInputCount(), textOutputCount(), lastStepStreams()}
}

// interfaceFlow is a flow with an interface, and those of its inputs and outputs that are of the interface's own type.
type interfaceFlow struct {
	flow          *spec.Flow
	inputs        []port // all of them
	spoken, reply []port // the inputs and outputs of the interface's own type
	known         bool   // all types are known
}

// onFace makes a check of the flows with one type of interface, whose own type is
// named and whose inputs or outputs, the side, could be read.
func onFace(kind, own, side string, f func(*ruleContext, interfaceFlow)) check {
	return on(func(p *ruleContext, flow *spec.Flow) {
		if flow.Interface == nil || flow.Interface.Type != kind || !flow.Place().Complete(side) || !flow.Interface.Place().Complete("type", "session_inputs") {
			return
		}
		at := interfaceFlow{flow: flow, inputs: portsOf(flow.Inputs), known: true}
		pick := func(ports []port, asked bool) (picked []port) {
			for _, one := range ports {
				t, ok := p.typed(one)
				at.known = at.known && ok
				// A ChatMessage that is listed twice is one all the same, as is a text that the flow
				// answers with; of the texts that it takes QType counts every mention.
				again := containsPort(picked, one.ID) && !(own == "text" && asked)
				if ok && t.Is(own) && !again {
					picked = append(picked, one)
				}
			}
			return picked
		}
		at.spoken, at.reply = pick(at.inputs, true), pick(portsOf(flow.Outputs), false)
		if at.known {
			f(p, at)
		}
	})
}

// chatSample is a flow of one model call from said to answer.
func chatSample(in, out, flow string) sample {
	return sample{head: sampleModel, in: in, out: out, flow: flow,
		steps: "- {type: LLMInference, id: reply, model: writer, inputs: [said], outputs: [answer]}"}
}

const conversational = "interface: {type: Conversational}"

func chatInputMissing() rule {
	return rule{code: "QT312", title: "a conversational flow that takes no message",
		doc:    "In a conversation the user sends one ChatMessage each turn; the flow takes it as an input.",
		sample: chatSample("said: ⟦text│ChatMessage⟧", "answer: ChatMessage", "⟦interface: {type: Conversational, session_inputs: [said]}│"+conversational+"⟧"),
		check: onFace("Conversational", "ChatMessage", "inputs", func(p *ruleContext, at interfaceFlow) {
			if len(at.spoken) == 0 {
				p.report(placeOf(at.flow, "inputs", "interface"), "the conversational flow %q needs an input of type ChatMessage", at.flow.ID)
			}
		})}
}

func chatInputTwice() rule {
	return rule{code: "QT313", title: "a conversational flow that takes two messages",
		doc:    "In a conversation the user sends one message each turn, so one input of type ChatMessage is all that can be filled.",
		sample: chatSample("said: ChatMessage⟦, other: ChatMessage│⟧", "answer: ChatMessage", conversational),
		check: onFace("Conversational", "ChatMessage", "inputs", func(p *ruleContext, at interfaceFlow) {
			if len(at.spoken) > 1 {
				p.report(at.spoken[1].Span, "the conversational flow %q may take only one ChatMessage, has %d", at.flow.ID, len(at.spoken))
			}
		})}
}

func inputOutsideSession() rule {
	return rule{code: "QT314", title: "an input that no turn of the conversation fills",
		doc:    "Each turn of a conversation brings a message only. Other inputs keep their first value for the whole session; list them in session_inputs.",
		sample: chatSample("said: ChatMessage, plan: text", "answer: ChatMessage", "interface: {type: Conversational⟦│, session_inputs: [plan]⟧}"),
		check: onFace("Conversational", "ChatMessage", "inputs", func(p *ruleContext, at interfaceFlow) {
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
	return rule{code: "QT315", title: "a conversational flow without exactly one answer",
		doc:    "Each turn ends with one ChatMessage: the flow has exactly one output of that type. Other outputs are free.",
		sample: chatSample("said: ChatMessage", "answer: ⟦text│ChatMessage⟧", conversational),
		check: onFace("Conversational", "ChatMessage", "outputs", func(p *ruleContext, at interfaceFlow) {
			if len(at.reply) != 1 {
				p.report(firstExtra(at.flow, "outputs", at.reply, 1), "the conversational flow %q needs exactly 1 output of type ChatMessage, has %d", at.flow.ID, len(at.reply))
			}
		})}
}

func textInputCount() rule {
	return rule{code: "QT316", title: "a completion flow without exactly one text input",
		doc:    "A flow with the interface Complete, the default, takes one text. Other inputs are free.",
		sample: chatSample("said: ⟦ChatMessage│text⟧", "answer: text", "interface: {type: Complete}"),
		check: onFace("Complete", "text", "inputs", func(p *ruleContext, at interfaceFlow) {
			if len(at.spoken) != 1 {
				p.report(firstExtra(at.flow, "inputs", at.spoken, 1), "the completion flow %q needs exactly 1 input of type text, has %d", at.flow.ID, len(at.spoken))
			}
		})}
}

func textOutputCount() rule {
	return rule{code: "QT317", title: "a completion flow without exactly one text output",
		doc:    "A flow with the interface Complete, the default, answers with one text.",
		sample: chatSample("said: text", "answer: ⟦ChatMessage│text⟧", "interface: {type: Complete}"),
		check: onFace("Complete", "text", "outputs", func(p *ruleContext, at interfaceFlow) {
			if len(at.reply) != 1 {
				p.report(firstExtra(at.flow, "outputs", at.reply, 1), "the completion flow %q needs exactly 1 output of type text, has %d", at.flow.ID, len(at.reply))
			}
		})}
}

func lastStepStreams() rule {
	return rule{code: "QT318", title: "a completion flow whose last step cannot stream",
		doc: "The answer of a flow with the interface Complete is streamed as it is written, so its last step is an LLMInference or an Agent.",
		sample: sample{head: sampleModel, in: "said: text", vars: "⟦│prompt: text⟧", out: "answer: text", flow: "interface: {type: Complete}",
			steps: `- {type: PromptTemplate, id: wrap, template: "Answer: {said}", inputs: [said], outputs: [⟦answer│prompt⟧]}
⟦│- {type: LLMInference, id: reply, model: writer, inputs: [prompt], outputs: [answer]}⟧`},
		check: on(func(p *ruleContext, f *spec.Flow) {
			if f.Interface == nil || f.Interface.Type != "Complete" || len(f.Steps) == 0 || f.Steps[len(f.Steps)-1] == nil || !f.Place().Complete("steps") || !f.Interface.Place().Complete("type") {
				return
			}
			if last := f.Steps[len(f.Steps)-1].Step; last != nil && !spec.Streams(last) {
				p.report(placeOf(last, "type", "id"), "the last step %q of the completion flow %q cannot stream text; it must be an LLMInference or an Agent", last.EntityID(), f.ID)
			}
		})}
}

// firstExtra is the first port beyond the allowed ones, the place of the list where there are too few.
func firstExtra(n spec.Node, key string, ports []port, allowed int) source.Span {
	if len(ports) > allowed {
		return ports[allowed].Span
	}
	return placeOf(n, key, "id")
}
