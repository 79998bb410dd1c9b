package airefinery

import (
	"fmt"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/distribution/converters/jq"
	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
)

// workflow writes the flows of a graph.
type workflow struct {
	*project
	*graph
	types map[string]*document.Type // of the variables that are not text
	made  []*document.Flow          // the flows of nodes and loops
}

// flowAgent writes the flow of a FlowSuperAgent.
func (p *project) flowAgent(a *agent) {
	p.common(a, "goal", "agent_list", "show_triage_feedback")
	if a.config.Get("show_triage_feedback") != nil {
		p.Ignored(a.config.KeySpan("show_triage_feedback"), "show_triage_feedback is ignored: traces show the conditions")
	}
	for _, key := range []string{"contexts", "output_style"} {
		if a.config.Get(key) != nil {
			p.Add(input.Unsupported.At(a.config.KeySpan(key), "agent %s: %s has no counterpart; its agents have their own", a.name, key))
		}
	}
	w := &workflow{project: p, graph: p.readGraph(a), types: map[string]*document.Type{}}
	textFlow(a.flow)
	a.flow.Types = w.typeOf
	if len(w.nodes) == 0 {
		p.Malformed(a.n, "agent %s has no agents that it can call", a.name)
		echo := w.transform(a.flow.ID+"_end", "answer", "query")
		a.flow.Steps = []*document.Step{{Block: echo, Reads: a.flow.Inputs, Writes: a.flow.Outputs}}
		return
	}
	optional := &document.Type{Kind: document.Text, Optional: true, Declared: true}
	for _, n := range w.nodes {
		w.types[n.result] = optional
		if n.triage != "" {
			w.types[n.triage] = w.triageType(n)
		}
	}
	w.write(a.flow)
	p.app.Flows = append(p.app.Flows, w.made...)
}

func (w *workflow) typeOf(id string) *document.Type {
	if t := w.types[id]; t != nil {
		return t
	}
	return &document.Type{Kind: document.Text, Declared: true}
}

// triageType declares the record with the conditions of a node.
func (w *workflow) triageType(n *node) *document.Type {
	t := &document.Type{Kind: document.Record, Declared: true, Name: w.ids.New("Triage_"+n.flow.ID, "Triage"), Description: "The conditions that hold after " + n.name + "."}
	for _, r := range n.conditions {
		t.Fields = append(t.Fields, &document.Field{Name: r.field, Type: &document.Type{Kind: document.Bool}})
	}
	w.app.CustomTypes = append(w.app.CustomTypes, t)
	one := *t
	one.Optional = true
	return &one
}

// write writes the main flow of the workflow: its agents, level by level, and the answer.
func (w *workflow) write(f *document.Flow) {
	w.sequence(f, w.levels(w.nodes, func(n *node) []*node {
		if l := w.loopOf(n); l != nil {
			return l.members
		}
		return []*node{n}
	}), false)
	var last []string
	for _, n := range w.nodes {
		if len(n.out) == 0 {
			last = append(last, n.result)
		}
	}
	text := fmt.Sprintf(`join(filter([%s], # != nil), "\n\n")`, strings.Join(last, ", "))
	if len(last) == 1 {
		text = last[0] + ` ?? ""`
	}
	f.Steps = append(f.Steps, &document.Step{Block: w.transform(f.ID+"_end", "answer", text), Reads: last, Writes: []string{"answer"}})
	f.Inputs, f.Outputs = []string{"query"}, []string{"answer"}
}

// sequence adds the steps of levels to a flow, and sets its inputs and outputs.
func (w *workflow) sequence(f *document.Flow, levels [][][]*node, inLoop bool) {
	needs, makes := document.Set{}, document.Set{}
	for i, level := range levels {
		var calls []*document.Flow
		for _, unit := range level {
			if l := w.loopOf(unit[0]); l != nil && !inLoop {
				calls = append(calls, w.loopFlow(l))
				continue
			}
			calls = append(calls, w.nodeFlow(unit[0]))
		}
		for _, c := range calls {
			for _, id := range c.Inputs {
				if !makes[id] {
					needs.Add(id)
				}
			}
		}
		for _, c := range calls {
			makes.Add(c.Outputs...)
		}
		f.Steps = append(f.Steps, w.callStep(f, i, calls))
	}
	f.Inputs, f.Outputs = needs.Sorted(), makes.Sorted()
}

// callStep returns the step that runs the flows of a level.
func (w *workflow) callStep(f *document.Flow, level int, calls []*document.Flow) *document.Step {
	if len(calls) == 1 {
		b := w.block("InvokeFlow", calls[0].ID+"_run").Set("flow", calls[0].ID)
		return &document.Step{Block: b, Calls: calls, Bind: true}
	}
	var names document.NameList
	for _, c := range calls {
		names = append(names, c.ID)
	}
	return &document.Step{Block: w.block("Parallel", fmt.Sprintf("%s_%d", f.ID, level+1)).Set("flows", names), Calls: calls}
}

// newFlow adds a flow.
func (w *workflow) newFlow(id string) *document.Flow {
	f := &document.Flow{ID: id, Types: w.typeOf}
	w.made = append(w.made, f)
	return f
}

// nodeFlow returns the flow that runs a node, if its conditions hold.
func (w *workflow) nodeFlow(n *node) *document.Flow {
	run := w.runFlow(n)
	if n.always() {
		return run
	}
	f := w.newFlow(w.ids.New(w.id(n)+"_if", "if"))
	set := new(document.Block)
	var unset []string
	for _, id := range run.Outputs {
		if !slices.Contains(run.Inputs, id) { // of the previous round
			set.Set(id, document.Expression("nil"))
			unset = append(unset, id)
		}
	}
	when, reads := n.condition()
	cases := []*document.Block{new(document.Block).Set("when", document.Expression(when)).Set("flow", run.ID)}
	if len(unset) > 0 {
		f.Steps = append(f.Steps, &document.Step{Block: w.block("Transform", f.ID+"_unset").Set("set", set), Writes: unset})
	}
	f.Steps = append(f.Steps, &document.Step{Block: w.block("Switch", f.ID+"_decide").Set("cases", cases), Reads: reads, Calls: []*document.Flow{run}, Branch: true})
	needs := document.Set{}
	needs.Add(reads...)
	needs.Add(run.Inputs...)
	f.Inputs, f.Outputs = needs.Sorted(), run.Outputs
	return f
}

// runFlow returns the flow that runs a node: its task, the agent, and the decision on
// what follows.
func (w *workflow) runFlow(n *node) *document.Flow {
	f := w.newFlow(w.ids.New(w.id(n), "node"))
	task, reads := w.task(n)
	invoke := w.block("InvokeFlow", f.ID+"_run").Set("flow", n.flow.ID).
		Set("input_bindings", (&document.Block{Inline: true}).Set("query", "prompt")).
		Set("output_bindings", (&document.Block{Inline: true}).Set("answer", n.result))
	f.Steps = []*document.Step{
		{Block: w.transform(f.ID+"_task", "prompt", task), Reads: reads, Writes: []string{"prompt"}},
		{Block: invoke, Reads: []string{"prompt"}, Writes: []string{n.result}},
	}
	f.Inputs, f.Outputs = reads, []string{n.result}
	if n.triage == "" {
		return f
	}
	ask := `"Request:\n" + query + ` + jq.Quote("\n\nResult of "+n.name+":\n") + " + (" + n.result + ` ?? "")`
	decide := w.block("Agent", f.ID+"_triage").Set("model", w.model(w.owner.config, w.owner.n)).Set("system_message", w.question(n)).
		Set("inputs", document.NameList{"prompt"}).Set("outputs", document.NameList{n.triage})
	f.Steps = append(f.Steps,
		&document.Step{Block: w.transform(f.ID+"_ask", "prompt", ask), Reads: []string{"query", n.result}, Writes: []string{"prompt"}},
		&document.Step{Block: decide, Reads: []string{"prompt"}, Writes: []string{n.triage}})
	f.Outputs = []string{n.result, n.triage}
	return f
}

// question returns the system message with the conditions of a node.
func (w *workflow) question(n *node) string {
	text := "Decide which of these conditions hold, given the request and the result of an agent:"
	if w.goal != "" {
		text = "Goal: " + w.goal + "\n\n" + text
	}
	for _, r := range n.conditions {
		text += "\n- " + r.field + ": " + document.OneLine(r.text)
	}
	return text
}

// task returns the expression of a node's request, and the variables that it reads: the
// goal, the user's request, and the results that it follows.
func (w *workflow) task(n *node) (text string, reads []string) {
	text = `"Request:\n" + query`
	if w.goal != "" {
		text = jq.Quote("Goal: "+w.goal+"\n\n") + " + " + text
	}
	from := []*node{}
	for _, e := range n.in {
		from = append(from, e.from)
	}
	if l := w.loopOf(n); l != nil && l.head == n {
		from = append(from, l.tail) // of the previous round
	}
	set := document.Set{"query": true}
	for _, m := range from {
		if !set[m.result] {
			set.Add(m.result)
			text += fmt.Sprintf(` + (%s == nil ? "" : %s + %s)`, m.result, jq.Quote("\n\nResult of "+m.name+":\n"), m.result)
		}
	}
	return text, set.Sorted()
}

// loopFlow returns the flow that repeats the agents of a loop.
func (w *workflow) loopFlow(l *loop) *document.Flow {
	f := w.newFlow(w.ids.New(w.id(l.head)+"_repeat", "repeat"))
	body := w.newFlow(w.ids.New(w.id(l.head)+"_round", "round"))
	w.sequence(body, w.levels(l.members, func(n *node) []*node { return []*node{n} }), true)
	own := func(id string) bool { return slices.Contains(body.Outputs, id) }
	set := new(document.Block)
	var unset []string
	for _, id := range body.Inputs {
		if own(id) {
			set.Set(id, document.Expression("nil"))
			unset = append(unset, id)
		}
	}
	b := w.block("Loop", f.ID+"_loop").Set("flow", body.ID).
		Set("until", document.Expression("not ("+l.tail.holds(l.rule)+")")).Set("max_iterations", l.rounds+1)
	if len(unset) > 0 {
		f.Steps = append(f.Steps, &document.Step{Block: w.block("Transform", f.ID+"_unset").Set("set", set), Writes: unset})
	}
	f.Steps = append(f.Steps, &document.Step{Block: b, Reads: []string{l.tail.triage}, Calls: []*document.Flow{body}, Loop: true})
	f.Inputs, f.Outputs = slices.DeleteFunc(slices.Clone(body.Inputs), own), body.Outputs
	return f
}

// block returns a step with a new id.
func (w *workflow) block(kind, id string) *document.Block {
	return new(document.Block).Set("type", kind).Set("id", w.ids.New(id, "step"))
}

// transform returns a Transform that sets one variable.
func (w *workflow) transform(id, variable, text string) *document.Block {
	return w.block("Transform", id).Set("set", new(document.Block).Set(variable, document.Expression(text)))
}
