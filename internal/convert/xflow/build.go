package xflow

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
	"github.com/qtype-dev/qtype/internal/convert/jq"
)

// build makes the document, for a look or for good.
func (w *workflow) build() {
	w.ids = &document.IDs{Taken: map[string]bool{}}
	for _, d := range w.data {
		w.ids.Taken[d.id] = true
	}
	w.app = &document.App{}
	w.flows, w.locals, w.handed, w.parts = map[*state]*document.Flow{}, map[string]*document.Type{}, document.Set{}, parts{}
	w.identify()
	w.readInputs()
	main := w.newFlow(w.app.Id + "_flow")
	main.Description = w.app.Description
	w.chain(w.start, main)
	w.idle(main)
	order := main.CallOrder()
	document.ComputeOutputs(order)
	given := w.given(order)
	document.ComputeInputs(order)
	main.Inputs, main.Outputs = w.shown(given, main.Outputs)
	uncertain, needed := document.MaybeUnset(order, given), document.Set{}
	main.AddNeeded(needed)
	for _, f := range order {
		uncertain.Add(f.InitUnset(w.beginning)...)
	}
	for _, d := range w.data {
		ends := slices.Contains(main.Outputs, d.id) && !main.Sure[d.id] && !given[d.id]
		unasked := d.input && !d.of.Declared && !needed[d.id] // the caller need not give what only some ways read
		if uncertain[d.id] || ends || unasked {
			d.of.Optional = true
		}
	}
	for _, f := range w.app.Flows {
		w.prune(f)
	}
	w.app.Types = w.namedTypes()
	w.renamed()
}

// given is the data that the caller gives: what a schema says, and what states read
// though no other state can have set it.
func (w *workflow) given(order []*document.Flow) document.Set {
	given := document.Set{}
	for _, d := range w.data {
		if d.input {
			given.Add(d.id)
		}
	}
	missing := document.ComputeAvailable(order, given)
	for _, d := range w.data {
		if missing[d.id] {
			d.input = true
			given.Add(d.id)
		}
	}
	document.ComputeAvailable(order, given)
	return given
}

// beginning is a step before a loop that sets variables to null.
func (w *workflow) beginning(f *document.Flow, ids []string) *document.Step {
	sets := new(document.Block)
	for _, id := range ids {
		sets.Set(id, document.Expression("nil"))
	}
	return &document.Step{Block: w.head("Transform", f.Id+"_before").Set("set", sets), Writes: ids}
}

// prune takes out what is set and never read: the answer of an agent that the
// next one's replaces.
func (w *workflow) prune(f *document.Flow) {
	for i, s := range f.Steps {
		switch kind := s.Entries[0].Value; {
		case kind == "Transform":
			s.Keep(func(id string) bool { return !f.IsDeadWrite(i, id) })
		case len(s.Writes) != 1 || kind != "Agent" && kind != "LLMInference" || !f.IsDeadWrite(i, s.Writes[0]):
		default:
			id := w.local(f.Id+"_unused", w.typeOf(s.Writes[0]))
			s.Writes = []string{id}
			s.Entries[len(s.Entries)-1].Value = document.NameList{id}
		}
	}
	f.Steps = slices.DeleteFunc(f.Steps, func(s *document.Step) bool { return s.Entries[0].Value == "Transform" && len(s.Writes) == 0 })
	w.idle(f)
}

// sharedBy tells of the variables that flows hand each other: the data, and which state is next.
func (w *workflow) sharedBy(id string) bool { return w.locals[id] == nil || w.handed[id] }

// newFlow begins a flow.
func (w *workflow) newFlow(name string) *document.Flow {
	f := &document.Flow{Id: w.ids.New(name, "flow"), Types: w.typeOf, Shared: w.sharedBy}
	w.app.Flows = append(w.app.Flows, f)
	return f
}

// idle gives a flow without steps one that does nothing; a flow has at least one.
func (w *workflow) idle(f *document.Flow) {
	if len(f.Steps) == 0 {
		w.reads = nil
		w.assign(f, f.Id+"_step", w.local("ended", &document.Type{Kind: document.Bool, Declared: true}), "true")
	}
}

// shown are what the main flow takes and gives: what the caller gives, and the
// data that states make. Variables of the translation's own stay inside.
func (w *workflow) shown(given document.Set, written []string) (inputs, outputs []string) {
	for _, d := range w.data {
		if given[d.id] {
			inputs = append(inputs, d.id)
		}
		if slices.Contains(written, d.id) {
			outputs = append(outputs, d.id)
		}
	}
	return inputs, outputs
}

// identify names the application.
func (w *workflow) identify() {
	name, id := "", ""
	if w.root.Kind == input.Map {
		id = cmp.Or(w.Text(w.root, "id"), w.Text(w.root, "key"))
		name = w.Text(w.root, "name")
		w.app.Description = w.Text(w.root, "description")
		for _, key := range []string{"version", "specVersion"} {
			if v := w.Text(w.root, key); v != "" {
				w.app.Comments = append(w.app.Comments, fmt.Sprintf("The workflow's %s: %s.", key, v))
			}
		}
	}
	w.app.Id = w.ids.New(cmp.Or(id, name), "workflow")
	switch {
	case name == "" || name == w.app.Id:
	case w.app.Description == "":
		w.app.Description = name
	default:
		w.app.Comments = append(w.app.Comments, fmt.Sprintf("The workflow's name: %s.", name))
	}
	if given := cmp.Or(id, name); given != "" && given != w.app.Id {
		w.app.Comments = append(w.app.Comments, fmt.Sprintf("The workflow's id: %s.", given))
	}
}

// typeOf is the shape of a variable.
func (w *workflow) typeOf(id string) *document.Type {
	for _, d := range w.data {
		if d.id == id {
			return d.of
		}
	}
	return w.locals[id]
}

// datum finds data by its name, and begins it where it is new.
func (w *workflow) datum(name string) *dataVar {
	for _, d := range w.data {
		if d.name == name {
			return d
		}
	}
	id := cmp.Or(strings.NewReplacer("-", "_", ".", "_").Replace(document.Slug(name)), "data")
	if !document.IsIdentifier(id) || slices.Contains(jq.ReservedNames(), id) {
		id += "_"
	}
	for w.isData(id) || w.ids.Taken[id] && !w.guess { // what else has the id gives way in the next look
		id += "_"
	}
	w.ids.Taken[id] = true
	d := &dataVar{name: name, id: id, of: &document.Type{TopLevel: true}}
	w.data = append(w.data, d)
	return d
}

// isData tells whether data has an id already.
func (w *workflow) isData(id string) bool {
	return slices.ContainsFunc(w.data, func(d *dataVar) bool { return d.id == id })
}

// renamed tells of data whose name is no id of a variable.
func (w *workflow) renamed() {
	var all []string
	for _, d := range w.data {
		if d.id != d.name {
			all = append(all, fmt.Sprintf("%q is %s", d.name, d.id))
		}
	}
	if len(all) > 0 {
		w.app.Comments = append(w.app.Comments, "Data that has another name here: "+strings.Join(all, ", ")+".")
	}
}

// write says that a state sets data, and answers its variable; none where the value
// does not fit, which is told.
func (w *workflow) write(name string, of *document.Type, at *input.Node) (id string, fits bool) {
	d := w.datum(name)
	switch {
	case !of.IsFlat():
		w.Unsupported(at, "%s is a list of lists, which no variable is; it is left out", name)
		return "", false
	case of.HasNullableElements() && of.Elem.Declared:
		w.Unsupported(at, "%s: an element may be null there, and must not be here", name)
	case of.HasNullableElements():
		w.Assumed(at, "%s: if an element is null, it stays so there; here that is an error", name)
	}
	if !w.guess {
		if _, fits = document.Join(d.of, of); !fits {
			w.Unsupported(at, "%s is %s here and %s elsewhere, and a variable is of one type; what is set here is left out", name, of.Kind.Noun(), d.of.Kind.Noun())
		}
		return d.id, fits
	}
	if of.Kind == document.Unknown && !of.Declared && d.of.Kind < document.List {
		of.Kind = d.of.Kind // as the data is used, so is what it is made of
	}
	if !d.of.Declared && d.of.Kind != document.Unknown { // what the file says counts, not how it is used
		d.of = &document.Type{Optional: d.of.Optional, TopLevel: true}
	}
	made, ok := document.Join(d.of, of)
	if !ok {
		return d.id, false
	}
	if made != d.of {
		made2 := *made
		made2.Optional = made2.Optional || d.of.Optional
		d.of = &made2
	}
	return d.id, true
}

// local is a variable of the translation's own.
func (w *workflow) local(name string, of *document.Type) string {
	id := w.ids.New(strings.NewReplacer("-", "_", ".", "_").Replace(document.Slug(name)), "value")
	w.locals[id] = of
	return id
}

// settle names the types of the data, once all is known of them.
func (w *workflow) settle() {
	for _, d := range w.data {
		if d.of.Kind == document.Unknown {
			d.of.Kind = document.Text
		}
	}
}

// namedTypes are the records of all variables, named.
func (w *workflow) namedTypes() []*document.Type {
	all := w.parts.types
	for _, d := range w.data {
		if !w.guess {
			d.of.Settle(w.ids, d.name, &all)
		}
	}
	for _, id := range w.order() {
		w.locals[id].Settle(w.ids, id, &all)
	}
	return all
}

// order are the ids of the translation's own variables.
func (w *workflow) order() []string {
	s := document.Set{}
	for id := range w.locals {
		s.Add(id)
	}
	return s.Sorted()
}

// chain writes the states from s on into a flow, until it ends or branches.
func (w *workflow) chain(s *state, f *document.Flow) {
	for s != nil {
		if w.loops[s] > 0 {
			w.writeLoop(s, f)
			return
		}
		next := w.state(s, f)
		if len(s.cases) > 0 {
			w.choose(s, f)
			return
		}
		if next != nil && (w.indegree(next) > 1 || w.loops[next] > 0) {
			w.invoke(next, f)
			return
		}
		s = next
	}
}

// indegree counts the transitions to a state.
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

// flow is the flow that begins with a state.
func (w *workflow) flow(s *state) *document.Flow {
	if f := w.flows[s]; f != nil {
		return f
	}
	f := w.newFlow(s.name)
	w.flows[s] = f
	w.chain(s, f)
	w.idle(f)
	return f
}

// invoke goes on with a flow that others lead to, too.
func (w *workflow) invoke(s *state, f *document.Flow) {
	to := w.flow(s)
	w.push(f, &document.Step{Block: w.head("InvokeFlow", s.name+"_begin").Set("flow", to.Id), Calls: []*document.Flow{to}, Bind: true})
}

// oneCase is a case of a Switch.
func (w *workflow) oneCase(when string, f *document.Flow) *document.Block {
	c := new(document.Block).Set("when", document.Expression(when)).Set("flow", f.Id)
	c.Inline = true
	return c
}

// head begins a step.
func (w *workflow) head(kind, id string) *document.Block {
	return new(document.Block).Set("type", kind).Set("id", w.ids.New(id, "step"))
}

// push adds a step to a flow.
func (w *workflow) push(f *document.Flow, s *document.Step) { f.Steps = append(f.Steps, s) }

// assign adds a Transform that sets one variable.
func (w *workflow) assign(f *document.Flow, id, to, text string) {
	w.push(f, &document.Step{Block: w.head("Transform", id).Set("set", new(document.Block).Set(to, document.Expression(text))), Reads: w.reads, Writes: []string{to}})
}

// choose adds the Switch behind a state with conditions.
func (w *workflow) choose(s *state, f *document.Flow) {
	var cases []*document.Block
	sw := &document.Step{Block: w.head("Switch", s.name+"_next"), Branch: true}
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
		c := w.oneCase(when, to)
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
		sw.Set("else", to.Id)
		sw.Calls = append(sw.Calls, to)
	}
	if s.kind == "switch" {
		w.describe(s, sw)
	}
	w.push(f, sw)
}

// end is a flow that does nothing: a case that ends the workflow must not fall
// through to the next one.
func (w *workflow) end() *document.Flow {
	if w.parts.end == nil {
		w.parts.end = w.newFlow("End")
		w.parts.end.Description = "The end of the workflow."
		w.idle(w.parts.end)
	}
	return w.parts.end
}
