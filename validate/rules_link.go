package validate

import (
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/source"
	"github.com/qtype-dev/qtype/spec"
)

// linkRules are the faults of ids and references; all but QT204 are found while linking.
func linkRules() []rule {
	return []rule{duplicateID(), unknownID(), wrongKind(), flowCycle(), literalBinding(), ambiguousVariable()}
}

func duplicateID() rule {
	return rule{code: "QT201", title: "two things share an id",
		doc: "All ids of a document, its own and those of everything under references, are one table: a memory may not be named like a model or a step. " +
			"Only variables of different flows may share a name, and the inputs and outputs of a tool are its own.",
		sample: sample{text: `
id: example
memories:
  - id: chat_memory
  - id: ⟦chat_memory│summary_memory⟧
`}}
}

func unknownID() rule {
	return rule{code: "QT202", title: "a reference names nothing",
		doc: "References are ids of things that the document declares, in any order, or that a document under references declares.",
		sample: sample{head: sampleModel + "\nmemories:\n  - id: chat_memory", in: "question: ChatMessage", out: "answer: ChatMessage",
			steps: "- type: LLMInference\n  id: reply\n  model: writer\n  memory: ⟦chat_memry│chat_memory⟧\n  inputs: [question]\n  outputs: [answer]"}}
}

func wrongKind() rule {
	return rule{code: "QT203", title: "a reference names the wrong kind of thing",
		doc: "The id exists, but what it names cannot be used here: a chat model where an embedding model is needed, a variable where a model is.",
		sample: sample{head: "models:\n  - {type: Model, id: writer, provider: openai}\n  - {type: EmbeddingModel, id: vectors, provider: openai, dimensions: 1536}",
			in: "words: text", out: "vector: Embedding",
			steps: "- {type: InvokeEmbedding, id: embed, model: ⟦writer│vectors⟧, inputs: [words], outputs: [vector]}"}}
}

func literalBinding() rule {
	return rule{code: "QT205", title: "a binding's target is no variable",
		doc: "The values of input_bindings, output_bindings and field_bindings are ids of variables. For a constant, declare a flow input or make it with a PromptTemplate.",
		sample: sample{head: sampleTool, in: "place: text", out: "report: text",
			steps: "- type: InvokeTool\n  id: ask\n  tool: weather\n  input_bindings: {city: ⟦Berlin│place⟧}\n  output_bindings: {report: report}"}}
}

func ambiguousVariable() rule {
	return rule{code: "QT206", title: "a variable that several other flows declare",
		doc: "A variable is looked up in its own flow first, then in the whole document. Where two other flows declare it, nobody can tell which is meant.",
		sample: sample{text: `
id: example
flows:
  - id: first
    variables: [{id: name, type: text}]
    inputs: [name]
    steps: [{type: Echo, id: pass_first, inputs: [name], outputs: [name]}]
  - id: second
    variables: [{id: name, type: text}]
    inputs: [name]
    steps: [{type: Echo, id: pass_second, inputs: [name], outputs: [name]}]
  - id: third
    variables: [⟦│{id: name, type: text}⟧]
    inputs: [name]
    steps: [{type: Echo, id: pass_third, inputs: [name], outputs: [name]}]
`}}
}

func flowCycle() rule {
	return rule{code: "QT204", title: "a flow invokes itself",
		doc: "A flow that invokes itself, directly or through others, would never end.",
		sample: sample{in: "n: int", flow: "", out: "n: int",
			head:  "",
			steps: `- {type: ⟦InvokeFlow, id: again, flow: main, input_bindings: {n: n}, output_bindings: {n: n}│Echo, id: again, inputs: [n], outputs: [n]⟧}`},
		check: on(func(p *pass, d *spec.Document) {
			if !p.here.root {
				return
			}
			s := flowSearch{pass: p, state: map[*spec.Flow]int{}}
			for _, f := range p.flows {
				s.visit(f)
			}
		})}
}

// flowSearch finds flows that invoke themselves, depth first.
type flowSearch struct {
	pass  *pass
	state map[*spec.Flow]int // 1 on the path, 2 done
	path  []*spec.Flow
}

// visit goes into every flow that f invokes; a flow that is still on the path closes a circle.
func (s *flowSearch) visit(f *spec.Flow) {
	if s.state[f] != 0 {
		return
	}
	s.state[f] = 1
	s.path = append(s.path, f)
	for _, item := range f.Steps {
		if item == nil {
			continue
		}
		call, ok := item.Step.(*spec.InvokeFlow)
		if !ok || call.Flow.To == nil {
			continue
		}
		if s.state[call.Flow.To] == 1 {
			s.report(call.Flow.Span, call.Flow.To)
			continue
		}
		s.visit(call.Flow.To)
	}
	s.path = s.path[:len(s.path)-1]
	s.state[f] = 2
}

// report names the circle that ends where it begins, at again.
func (s *flowSearch) report(span source.Span, again *spec.Flow) {
	var names []string
	for _, f := range s.path[slices.Index(s.path, again):] {
		names = append(names, f.ID)
	}
	s.pass.report(span, "flow cycle: %s", strings.Join(append(names, again.ID), " → "))
}
