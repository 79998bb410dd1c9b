package validate

import (
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/source"
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
	return rule{code: "QT205", title: "a binding's target is not a variable",
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
		check: on(func(p *ruleContext, _ *spec.Document) { searchFlows(p, directly) })}
}

// The two ways in which flows run flows: steps do, and so may models that have
// flows as tools.
const directly, throughTools = false, true

// searchFlows reports the circles of flows: of steps alone, or those with a tool in them.
func searchFlows(p *ruleContext, tools bool) {
	if !p.here.root {
		return
	}
	s := flowSearch{pass: p, tools: tools, state: map[*spec.Flow]int{}, told: map[source.Span]bool{}}
	for _, f := range p.flows {
		s.visit(edge{to: f})
	}
}

// edge is one way from a flow to another.
type edge struct {
	to   *spec.Flow
	span source.Span // where the flow is named, or the tool that stands for it
	tool bool        // a tool stands between
}

// edges are the flows that a flow runs.
func (s *flowSearch) edges(f *spec.Flow) []edge {
	var all []edge
	for _, step := range f.Plan().Steps {
		for _, call := range step.Calls() {
			all = append(all, edge{call.Flow.To, call.Flow.Span, false})
		}
		if !s.tools {
			continue
		}
		for _, ref := range step.ToolRefs() {
			for _, flow := range toolFlows(ref.To) {
				all = append(all, edge{flow, ref.Span, true})
			}
		}
	}
	return all
}

// toolFlows are the flows that a tool runs; t may be nil.
func toolFlows(t spec.Tool) []*spec.Flow {
	if t == nil {
		return nil
	}
	return spec.Linked[*spec.Flow](spec.UsesOf(t), spec.RoleFlow)
}

// flowSearch finds flows that run themselves, depth first.
type flowSearch struct {
	pass  *ruleContext
	tools bool               // flows that are tools count, and only circles with one are reported
	state map[*spec.Flow]int // 1 on the path, 2 done
	path  []edge
	told  map[source.Span]bool // the tools that were reported
}

// visit goes into every flow that the edge's flow runs; one that is still on the path closes a circle.
func (s *flowSearch) visit(to edge) {
	if s.state[to.to] != 0 {
		return
	}
	s.state[to.to] = 1
	s.path = append(s.path, to)
	for _, e := range s.edges(to.to) {
		switch {
		case e.to == nil:
		case s.state[e.to] == 1:
			s.report(e)
		default:
			s.visit(e)
		}
	}
	s.path = s.path[:len(s.path)-1]
	s.state[to.to] = 2
}

// report names the circle that the edge closes.
func (s *flowSearch) report(last edge) {
	first := slices.IndexFunc(s.path, func(e edge) bool { return e.to == last.to })
	circle := append(slices.Clone(s.path[first:]), last)
	span := last.span
	if s.tools {
		// How the first flow of the circle was come to does not belong to the circle.
		at := slices.IndexFunc(circle[1:], func(e edge) bool { return e.tool })
		if at < 0 || s.told[circle[at+1].span] {
			return
		}
		span = circle[at+1].span
		s.told[span] = true
	}
	names := make([]string, len(circle))
	for i, e := range circle {
		names[i] = e.to.ID
	}
	s.pass.report(span, "flow cycle: %s", strings.Join(names, " → "))
}
