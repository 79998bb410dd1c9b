package xflow

import "github.com/qtype-dev/qtype/internal/convert/document"

// chain writes the states from s on into a flow, until it ends or branches.
func (w *workflow) chain(s *state, f *document.Flow) {
	for s != nil {
		if w.cycles[s] > 0 {
			w.writeLoop(s, f)
			return
		}
		next := w.state(s, f)
		if len(s.cases) > 0 {
			w.choose(s, f)
			return
		}
		if next != nil && (w.indegree(next) > 1 || w.cycles[next] > 0) {
			w.invoke(next, f)
			return
		}
		s = next
	}
}

func (w *workflow) indegree(s *state) int {
	n := 0
	for _, from := range w.states {
		for _, to := range from.successors() {
			if to == s {
				n++
			}
		}
	}
	return n
}

// flow returns the flow that begins with a state.
func (w *workflow) flow(s *state) *document.Flow {
	if f := w.flows[s]; f != nil {
		return f
	}
	f := w.newFlow(s.name)
	w.flows[s] = f
	w.chain(s, f)
	w.ensureStep(f)
	return f
}

// invoke continues with a flow that other states lead to as well.
func (w *workflow) invoke(s *state, f *document.Flow) {
	to := w.flow(s)
	w.push(f, &document.Step{Block: w.newBlock("InvokeFlow", s.name+"_begin").Set("flow", to.ID), Calls: []*document.Flow{to}, Bind: true})
}

func (w *workflow) newCase(when string, f *document.Flow) *document.Block {
	c := new(document.Block).Set("when", document.Expression(when)).Set("flow", f.ID)
	c.Inline = true
	return c
}

// newBlock begins a step.
func (w *workflow) newBlock(kind, id string) *document.Block {
	return new(document.Block).Set("type", kind).Set("id", w.ids.New(id, "step"))
}

func (w *workflow) push(f *document.Flow, s *document.Step) { f.Steps = append(f.Steps, s) }

// assign adds a Transform that sets one variable.
func (w *workflow) assign(f *document.Flow, id, to, text string) {
	w.push(f, &document.Step{Block: w.newBlock("Transform", id).Set("set", new(document.Block).Set(to, document.Expression(text))), Reads: w.reads, Writes: []string{to}})
}

// choose adds the Switch after a state with conditions.
func (w *workflow) choose(s *state, f *document.Flow) {
	var cases []*document.Block
	sw := &document.Step{Block: w.newBlock("Switch", s.name+"_next"), Branch: true}
	for i, o := range s.cases {
		when, failed := w.condition(s, o)
		if i == 0 {
			sw.FirstReads = w.reads
		}
		sw.Reads = append(sw.Reads, w.reads...)
		var to *document.Flow
		if o.to.to != nil {
			to = w.flow(o.to.to)
		} else {
			to = w.end()
		}
		c := w.newCase(when, to)
		if name := w.Text(o.n, "name"); name != "" {
			c.Inline, c.Entries[0].Note = false, name
		}
		if failed {
			c.Inline = false
			c.Entries[0].Note = "TODO: not translated: " + document.OneLine(o.when.Text)
		}
		cases = append(cases, c)
		sw.Calls = append(sw.Calls, to)
	}
	sw.Set("cases", cases)
	if s.next.to != nil {
		to := w.flow(s.next.to)
		sw.Set("else", to.ID)
		sw.Calls = append(sw.Calls, to)
	}
	if s.kind == "switch" {
		w.describe(s, sw)
	}
	w.push(f, sw)
}

// end returns a flow without effect. A case that ends the workflow needs one, as it
// must not fall through to the next case.
func (w *workflow) end() *document.Flow {
	if w.parts.end == nil {
		w.parts.end = w.newFlow("End")
		w.parts.end.Description = "The end of the workflow."
		w.ensureStep(w.parts.end)
	}
	return w.parts.end
}
