package validate

import (
	"slices"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
)

// controlRules are about the steps that run flows by conditions, again and
// again, or side by side. Their variables meet by name.
func controlRules() []rule {
	return []rule{ungivenInput(), ungivenOutput(), outputGivenTwice(), flowToolCycle(), nothingToDo()}
}

// branches are the flows that a step runs and whose variables are matched with the
// step's by their ids.
func (p *checker) branches(s spec.Step) []*spec.Ref[*spec.Flow] {
	var all []*spec.Ref[*spec.Flow]
	for _, call := range p.stepPlan(s).Calls() {
		if call.MatchesByID() {
			all = append(all, call.Flow)
		}
	}
	return all
}

// named finds a variable among ports by its id: the flows that a step runs have
// variables of their own.
func (p *ruleContext) named(ports []port, id string) port {
	if i := slices.IndexFunc(ports, func(one port) bool { return one.ID == id }); i >= 0 {
		return ports[i]
	}
	return nil
}

const parallelHead = `
id: example
flows:
  - id: shorten
    variables: [{id: story, type: text}, {id: headline, type: text}]
    inputs: [story]
    outputs: [headline]
    steps: [{type: PromptTemplate, id: cut, template: "Short: {story}", inputs: [story], outputs: [headline]}]
  - id: translate
    variables: [{id: story, type: text}, {id: version, type: text}, {id: headline, type: text}]
    inputs: [story]
    outputs: ⟦[version, headline]│[version]⟧
    steps:
      - {type: PromptTemplate, id: turn, template: "In French: {story}", inputs: [story], outputs: [version]}
      - {type: PromptTemplate, id: head, template: "En bref: {story}", inputs: [story], outputs: [headline]}
`

// parallelSample runs two flows side by side; other than in the head it differs in the step.
func parallelSample(head, inputs, outputs string) sample {
	return sample{text: head + `  - id: main
    variables: [{id: story, type: text}, {id: headline, type: text}, {id: version, type: text}, {id: mood, type: text}]
    inputs: [story, mood]
    outputs: [headline, version]
    steps:
      - {type: Parallel, id: both, flows: [shorten, translate], inputs: [` + inputs + `], outputs: [` + outputs + `]}
`}
}

// noDifference is the right side of a text with marks.
func noDifference(text string) string { return choose(text, true) }

func ungivenInput() rule {
	return rule{code: "QT427", title: "a flow is run without one of its inputs",
		doc:    "Switch, Loop and Parallel give the flows that they run the step's inputs of the same ids, so every required input of the flow is among the step's inputs.",
		sample: parallelSample(noDifference(parallelHead), "⟦mood│story⟧", "headline, version"),
		check: on(func(p *ruleContext, s spec.Step) {
			given := portsOf(s.Common().Inputs)
			for _, ref := range p.branches(s) {
				for _, in := range inputsOfFlow(ref.To) {
					if have := p.named(given, in.ID); have != nil || in.To == nil || in.To.IsOptional() {
						continue
					}
					finding := p.reportAt(ref.Span, "the flow %q needs the input %q, which step %q does not give", ref.ID, in.ID, s.EntityID())
					p.list.Add(finding.WithHint("add %s to the step's inputs", in.ID).WithRelated(in.Span, "an input of the flow"))
				}
			}
		})}
}

func inputsOfFlow(f *spec.Flow) []port {
	if f == nil {
		return nil
	}
	return portsOf(f.Inputs)
}

func outputsOfFlow(f *spec.Flow) []port {
	if f == nil {
		return nil
	}
	return portsOf(f.Outputs)
}

func ungivenOutput() rule {
	return rule{code: "QT428", title: "an output that none of the flows gives",
		doc:    "Switch, Loop and Parallel set the step's outputs from the outputs of the same ids of the flows that they run.",
		sample: parallelSample(noDifference(parallelHead), "story", "headline, version⟦, mood│⟧"),
		check: on(func(p *ruleContext, s spec.Step) {
			flows := p.branches(s)
			var ids []string
			for _, ref := range flows {
				if _, known := knownFlow(ref.To); ref.ID != "" && !known {
					return // what it gives cannot be known
				}
				for _, out := range outputsOfFlow(ref.To) {
					ids = append(ids, out.ID)
				}
			}
			if len(ids) == 0 && len(flows) == 0 {
				return
			}
			for _, out := range portsOf(s.Common().Outputs) {
				if out.To == nil || slices.Contains(ids, out.ID) {
					continue
				}
				finding := p.reportAt(out.Span, "no flow of step %q has the output %q", s.EntityID(), out.ID)
				if near := diag.Nearest(out.ID, ids); near != "" {
					finding = finding.WithSuggestion(near)
				}
				p.list.Add(finding)
			}
		})}
}

func outputGivenTwice() rule {
	return rule{code: "QT429", title: "two parallel flows give the same output",
		doc:    "The outputs of flows that run side by side are put together, and nobody could say whose value is kept. Give one of the outputs another name.",
		sample: parallelSample(parallelHead, "story", "headline, version"),
		check: on(func(p *ruleContext, s *spec.Parallel) {
			first := map[string]*spec.Ref[*spec.Flow]{}
			for i := range s.Flows {
				ref := &s.Flows[i]
				for _, out := range outputsOfFlow(ref.To) {
					if one := first[out.ID]; one != nil {
						p.list.Add(p.reportAt(ref.Span, "the flows %q and %q of step %q both give %q", one.ID, ref.ID, s.ID, out.ID).
							WithRelated(out.Span, "the output of flow "+ref.ID))
						continue
					}
					first[out.ID] = ref
				}
			}
		})}
}

// meetBranches warns where a variable of the step and the one of the same id of a
// flow that it runs are of different types (QT903).
func (p *ruleContext) meetBranches(s spec.Step) {
	for _, ref := range p.branches(s) {
		if ref.To == nil {
			continue
		}
		for i := range s.Common().Inputs {
			in := &s.Common().Inputs[i]
			if theirs := p.named(inputsOfFlow(ref.To), in.ID); theirs != nil && theirs.To != nil {
				p.meets(in, theirs.To, in.To, theirs.To)
			}
		}
		for i := range s.Common().Outputs {
			out := &s.Common().Outputs[i]
			if theirs := p.named(outputsOfFlow(ref.To), out.ID); theirs != nil && theirs.To != nil {
				p.meets(out, theirs.To, theirs.To, out.To)
			}
		}
	}
}

func flowToolCycle() rule {
	return rule{code: "QT430", title: "a flow can call itself as a tool",
		doc: "A FlowTool runs a flow. Where an agent of that flow has the tool, or a flow that it runs, the model could call itself without end.",
		sample: sample{text: `
id: example
models: [{type: Model, id: writer, provider: openai}]
tools: [{type: FlowTool, id: ask_again, description: Asks again, flow: ⟦main│look_up⟧}]
flows:
  - id: look_up
    variables: [{id: words, type: text}]
    inputs: [words]
    outputs: [words]
    steps: [{type: Echo, id: pass, inputs: [words], outputs: [words]}]
  - id: main
    variables: [{id: said, type: ChatMessage}, {id: answer, type: ChatMessage}]
    inputs: [said]
    outputs: [answer]
    steps: [{type: Agent, id: help, model: writer, tools: [ask_again], inputs: [said], outputs: [answer]}]
`},
		check: on(func(p *ruleContext, d *spec.Document) { searchFlows(p, throughTools) })}
}

func nothingToDo() rule {
	return rule{code: "QT440", title: "a step with nothing to do",
		doc: "A Switch has at least one case, a Parallel at least one flow and a Transform at least one variable that it sets.",
		sample: sample{in: "price: float", out: "total: float",
			steps: "- {type: Transform, id: sum, set: {⟦│total: price * 2⟧}, ⟦outputs: [total]│inputs: [price]⟧}"},
		check: on(func(p *ruleContext, s spec.Step) {
			for _, key := range spec.EmptyKeys(s) {
				// A value that could not be read has parts; a missing key is reported by the loader.
				if written, ok := s.Place().Lookup(key); ok && len(written.Parts) == 0 {
					p.report(written.Key, "step %q (%s) has nothing in %q", s.EntityID(), spec.TypeName(s), key)
				}
			}
		})}
}
