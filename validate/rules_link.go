package validate

import (
	"slices"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/source"
)

// linkRules returns the rules of ids and references. All but QT204 are checked while linking.
func linkRules() []rule {
	return []rule{duplicateID(), unknownID(), wrongKind(), flowCycle(), literalBinding(), ambiguousVariable()}
}

func duplicateID() rule {
	return rule{code: "QT201", title: "duplicate id",
		doc: "Ids are unique in a document, including the documents under references: a memory cannot have the id of a model or a step. Variables of different flows can share an id, and the inputs and outputs of each tool have a separate scope. An id that equals that of the application is only a warning.",
		sample: sample{text: `
id: example
memories:
  - id: chat_memory
  - id: ⟦chat_memory│summary_memory⟧
`}}
}

func unknownID() rule {
	return rule{code: "QT202", title: "unknown id",
		doc: "A reference is the id of something that the document, or a document under references, declares. The order does not matter.",
		sample: sample{head: sampleModel + "\nmemories:\n  - id: chat_memory", in: "question: ChatMessage", out: "answer: ChatMessage",
			steps: "- type: LLMInference\n  id: reply\n  model: writer\n  memory: ⟦chat_memry│chat_memory⟧\n  inputs: [question]\n  outputs: [answer]"}}
}

func wrongKind() rule {
	return rule{code: "QT203", title: "reference to the wrong kind",
		doc: "The id exists, but its kind does not fit, for example a chat model where an embedding model is required.",
		sample: sample{head: "models:\n  - {type: Model, id: writer, provider: openai}\n  - {type: EmbeddingModel, id: vectors, provider: openai, dimensions: 1536}",
			in: "content: text", out: "vector: Embedding",
			steps: "- {type: InvokeEmbedding, id: embed, model: ⟦writer│vectors⟧, inputs: [content], outputs: [vector]}"}}
}

func literalBinding() rule {
	return rule{code: "QT205", title: "binding to something other than a variable",
		doc: "The values of input_bindings, output_bindings and field_bindings are ids of variables. For a constant, declare a flow input or use a PromptTemplate.",
		sample: sample{head: sampleTool, in: "place: text", out: "report: text",
			steps: "- type: InvokeTool\n  id: get_weather\n  tool: weather\n  input_bindings: {city: ⟦Berlin│place⟧}\n  output_bindings: {report: report}"}}
}

func ambiguousVariable() rule {
	return rule{code: "QT206", title: "ambiguous variable",
		doc: "A variable is looked up in its flow first, then in the document. If several other flows declare it, the reference is ambiguous.",
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
	return rule{code: "QT204", title: "flow that invokes itself",
		doc: "A flow that invokes itself, directly or through other flows, never ends.",
		sample: sample{in: "n: int", flow: "", out: "n: int",
			head:  "",
			steps: `- {type: ⟦InvokeFlow, id: again, flow: main, input_bindings: {n: n}, output_bindings: {n: n}│Echo, id: again, inputs: [n], outputs: [n]⟧}`},
		check: on(func(p *ruleContext, _ *spec.Document) { searchFlows(p, false) })}
}

// searchFlows reports the cycles of flows. With tools it follows the tools of agents
// too, and reports only cycles that contain one.
func searchFlows(p *ruleContext, tools bool) {
	if !p.here.root {
		return
	}
	reported := map[source.Span]bool{} // tools
	edges := func(f *spec.Flow) []edge[*spec.Flow, flowEdge] { return calledFlows(f, tools) }
	findCycles(p.flows, edges, func(cycle []edge[*spec.Flow, flowEdge]) {
		span := cycle[len(cycle)-1].via.span
		if tools {
			// The first edge leads to the cycle and is not a part of it.
			i := slices.IndexFunc(cycle[1:], func(e edge[*spec.Flow, flowEdge]) bool { return e.via.tool })
			if i < 0 || reported[cycle[i+1].via.span] {
				return
			}
			span = cycle[i+1].via.span
			reported[span] = true
		}
		p.report(span, "flow cycle: %s", joinIDs(cycle))
	})
}

// flowEdge is a call of a flow by a step.
type flowEdge struct {
	span source.Span // the reference to the flow, or to the tool that runs it
	tool bool        // the flow is called by a tool or a handoff
}

// calledFlows returns the flows that the steps of a flow run; with tools, also the flows
// that their tools run.
func calledFlows(f *spec.Flow, tools bool) []edge[*spec.Flow, flowEdge] {
	var all []edge[*spec.Flow, flowEdge]
	add := func(to *spec.Flow, via flowEdge) {
		if to != nil {
			all = append(all, edge[*spec.Flow, flowEdge]{to, via})
		}
	}
	for _, step := range f.Plan().Steps {
		for _, call := range step.Calls() {
			add(call.Flow.To, flowEdge{span: call.Flow.Span})
		}
		if !tools {
			continue
		}
		for _, ref := range step.ToolRefs() {
			for _, flow := range toolFlows(ref.To) {
				add(flow, flowEdge{span: ref.Span, tool: true})
			}
		}
		for _, ref := range step.Handoffs() {
			add(ref.To, flowEdge{span: ref.Span, tool: true})
		}
	}
	return all
}

// toolFlows returns the flows that a tool runs; t may be nil.
func toolFlows(t spec.Tool) []*spec.Flow {
	if t == nil {
		return nil
	}
	return spec.Linked[*spec.Flow](spec.UsesOf(t), spec.RoleFlow)
}
