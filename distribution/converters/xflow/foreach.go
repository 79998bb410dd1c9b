package xflow

import "github.com/qtype-dev/qtype/internal/convert/document"

// foreach writes a state that runs its actions for each element of a list: a flow with Explode and
// Collect, which an empty list skips.
func (w *workflow) foreach(s *state, f *document.Flow) {
	w.CheckKeys(s.n, "state "+s.name, common("inputCollection", "outputCollection", "iterationParam", "batchSize", "actions", "mode")...)
	for _, key := range []string{"mode", "batchSize"} {
		if s.n.Get(key) != nil {
			w.Ignored(s.n.KeySpan(key), "state %s: %s ignored: the elements are handled one after the other", s.name, key)
		}
	}
	from, item := s.n.Get("inputCollection"), w.RequiredText(s.n, "iterationParam", "state "+s.name)
	if from == nil || item == "" {
		if from == nil {
			w.Malformed(s.n, `state %s has no "inputCollection"`, s.name)
		}
		return
	}
	list := w.value(s, from, "inputCollection", s.name+"_list", f)
	if list == nil {
		return
	}
	if list.of.Kind == document.Unknown {
		list.of.Kind = document.List
	}
	if list.of.Kind != document.List {
		w.Unsupported(from, "state %s: inputCollection is %s, not a list", s.name, list.of.Kind.Noun())
		return
	}
	each := w.newFlow(s.name + "_each")
	one := w.element(s, item, list.of)
	explode := w.newBlock("Explode", s.name+"_items").Set("inputs", document.NameList{list.id}).Set("outputs", document.NameList{one})
	w.push(each, &document.Step{Block: explode, Reads: []string{list.id}, Writes: []string{one}})
	result := w.actions(s, s.n, each)
	collected := ""
	to := s.n.Get("outputCollection")
	if to != nil && result == "" {
		w.Unsupported(to, "state %s: its last action has no result in every round; the list is left out", s.name)
	}
	if to != nil && result != "" {
		of := w.typeOf(result).Clone()
		of.Optional = false
		if collected = w.dataTarget(s, to, &document.Type{Kind: document.List, Elem: of}); collected != "" {
			w.markResult(collected)
			w.reads = nil
			w.assign(f, s.name+"_none", collected, "[]")
		}
	}
	elem := list.of.Elem.Clone()
	elem.Optional = false
	local := document.Set{}
	local.Add(one, result) // the state only collects the results
	if collected == "" {
		result, collected = one, w.local(s.name+"_done", &document.Type{Kind: document.List, Declared: true, Elem: elem})
	}
	each.Shared = func(id string) bool { return id == collected || !local[id] && w.sharedBy(id) }
	collect := w.newBlock("Collect", s.name+"_results").Set("inputs", document.NameList{result}).Set("outputs", document.NameList{collected})
	w.push(each, &document.Step{Block: collect, Reads: []string{result}, Writes: []string{collected}})
	when := w.newCase(list.id+" != nil and len("+list.id+") > 0", each)
	w.push(f, &document.Step{Block: w.newBlock("Switch", s.name+"_any").Set("cases", []*document.Block{when}), Reads: []string{list.id}, FirstReads: []string{list.id},
		Calls: []*document.Flow{each}, Branch: true})
}

// element returns the variable of an element of a list. It has the same type as the elements.
func (w *workflow) element(s *state, name string, list *document.Type) string {
	if list.Elem == nil {
		list.Elem = &document.Type{}
	}
	d := w.datum(name)
	joined, ok := document.Join(d.of, list.Elem)
	if !ok || joined.Kind == document.List || d.of.Kind != document.Unknown && list.Elem.Kind != document.Unknown && d.of.Kind != list.Elem.Kind {
		w.Unsupported(s.n.Get("iterationParam"), "state %s: %s is %s elsewhere; a variable has one type, so the elements are not %s here", s.name, name, d.of.Kind.Noun(), name)
		of := list.Elem.Clone()
		of.Optional = false
		return w.local(s.name+"_item", of)
	}
	if w.guess {
		of, elem := *joined, *joined
		of.TopLevel, of.Optional = true, d.of.Optional
		elem.Optional = list.Elem.Optional
		d.of, *list.Elem = &of, elem
	}
	return d.id
}
