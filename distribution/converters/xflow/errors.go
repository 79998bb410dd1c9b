package xflow

import "github.com/qtype-dev/qtype/internal/convert/document"

// readErrors reads onErrors: transitions of a state that fails. Errors are not distinguished.
func (w *workflow) readErrors(s *state) {
	var all []outcome
	for _, n := range w.List(s.n, "onErrors") {
		m := w.AsMap(n, "onErrors")
		if m == nil {
			continue
		}
		w.CheckKeys(m, "onErrors", "errorRef", "errorRefs", "transition", "end")
		for _, key := range []string{"errorRef", "errorRefs"} {
			if v := m.Get(key); v != nil {
				w.Assumed(v.Use(), "state %s: errors have no names; this entry is for every error, not only for %s", s.name, v.Describe())
			}
		}
		all = append(all, outcome{n: m, to: w.target(m, "onErrors of state "+s.name), failed: true})
	}
	if len(all) == 0 || s.kind == "switch" {
		return
	}
	for _, other := range all[1:] {
		if other.to != all[0].to {
			w.Unsupported(other.n, "state %s: errors are not distinguished; every error leads to where the first entry leads", s.name)
		}
	}
	if all[0].to == (target{}) {
		all[0].to.end = true
	}
	w.Assumed(all[0].n, "state %s: every error leads here", s.name)
	s.cases, s.catches = append(all[:1:1], s.cases...), true
}

// caught writes a state with onErrors: its steps are a flow, after which the row continues if it fails.
// Other variables pass its data, and only if it has not failed: a failed step unsets what it writes.
func (w *workflow) caught(s *state, f *document.Flow) *state {
	done := w.local(s.name+"_done", &document.Type{Kind: document.Bool, Optional: true, Declared: true})
	w.parts.done[s] = done
	inner := w.newFlow(s.name + "_steps")
	next := w.steps(s, inner)
	data := w.dataOf(inner)
	exports := document.Set{}
	exports.Add(done)
	if answer := w.parts.answers[s]; answer != nil && !w.isData(answer.Source) {
		exports.Add(answer.Source) // conditions after the steps of the state read it
	}
	inner.Shared = func(id string) bool { return exports[id] }

	ends, keeps := new(document.Block).Set(done, document.Expression("true")), new(document.Block)
	end, keep := &document.Step{Block: w.newBlock("Transform", s.name+"_end").Set("set", ends), Writes: []string{done}}, new(document.Step)
	for _, id := range data {
		of := w.typeOf(id)
		if w.guess {
			of = of.Clone() // names of types are those of the final pass
		}
		passed := w.local(s.name+"_"+id, of)
		exports.Add(passed)
		ends.Set(passed, document.Expression(id))
		keeps.Set(id, document.Expression(passed))
		end.Reads, end.Writes = append(end.Reads, id), append(end.Writes, passed)
		keep.Reads, keep.Writes = append(keep.Reads, passed), append(keep.Writes, id)
	}
	w.push(inner, end)
	w.push(f, &document.Step{Block: w.newBlock("InvokeFlow", s.name+"_run").Set("flow", inner.ID).Set("on_error", "continue"), Calls: []*document.Flow{inner}, Bind: true, MayFail: true})
	if len(data) == 0 {
		return next
	}
	kept := w.newFlow(s.name + "_data")
	keep.Block = w.newBlock("Transform", s.name+"_keep").Set("set", keeps)
	w.push(kept, keep)
	when := w.newCase(done+" == true", kept)
	w.push(f, &document.Step{Block: w.newBlock("Switch", s.name+"_succeeded").Set("cases", []*document.Block{when}), Reads: []string{done}, FirstReads: []string{done},
		Calls: []*document.Flow{kept}, Branch: true})
	return next
}

// dataOf returns the data that a flow writes.
func (w *workflow) dataOf(f *document.Flow) []string {
	found := document.Set{}
	for _, called := range f.CallOrder() {
		for _, step := range called.Steps {
			for _, id := range step.Writes {
				if w.isData(id) && called.Shared(id) {
					found.Add(id)
				}
			}
		}
	}
	return found.Sorted()
}
