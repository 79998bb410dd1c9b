package convert

import (
	"fmt"
	"slices"
	"strings"
)

// build makes the document, for a look or for good.
func (w *workflow) build() {
	w.ids = &names{taken: map[string]bool{}}
	for _, d := range w.data {
		w.ids.taken[d.id] = true
	}
	w.app = &application{}
	w.flows, w.locals, w.handed, w.parts = map[*state]*flow{}, map[string]*inferredType{}, set{}, parts{}
	w.identify()
	w.readInputs()
	main := w.newFlow(w.app.id + "_flow")
	main.description = w.app.description
	w.chain(w.start, main)
	w.idle(main)
	order := main.callers()
	plan(order)
	given := w.given(order)
	requiredInputs(order)
	main.inputs, main.outputs = w.shown(given, main.outputs)
	uncertain, needed := maybeUnset(order, given), set{}
	main.needed(needed)
	for _, f := range order {
		uncertain.add(f.begin(w.beginning)...)
	}
	for _, d := range w.data {
		ends := slices.Contains(main.outputs, d.id) && !main.sure[d.id] && !given[d.id]
		unasked := d.input && !d.of.declared && !needed[d.id] // the caller need not give what only some ways read
		if uncertain[d.id] || ends || unasked {
			d.of.optional = true
		}
	}
	for _, f := range w.app.flows {
		w.prune(f)
	}
	w.app.types = w.namedTypes()
	w.renamed()
}

// given is the data that the caller gives: what a schema says, and what states read
// though no other state can have set it.
func (w *workflow) given(order []*flow) set {
	given := set{}
	for _, d := range w.data {
		if d.input {
			given.add(d.id)
		}
	}
	missing := availableIn(order, given)
	for _, d := range w.data {
		if missing[d.id] {
			d.input = true
			given.add(d.id)
		}
	}
	availableIn(order, given)
	return given
}

// beginning is a step before a loop that sets variables to null.
func (w *workflow) beginning(f *flow, ids []string) *step {
	sets := new(block)
	for _, id := range ids {
		sets.set(id, formula("nil"))
	}
	return &step{block: w.head("Transform", f.id+"_before").set("set", sets), writes: ids}
}

// prune takes out what is set and never read: the answer of an agent that the
// next one's replaces.
func (w *workflow) prune(f *flow) {
	for i, s := range f.steps {
		switch kind := s.entries[0].value; {
		case kind == "Transform":
			s.keep(func(id string) bool { return !f.deadWrite(i, id) })
		case len(s.writes) != 1 || kind != "Agent" && kind != "LLMInference" || !f.deadWrite(i, s.writes[0]):
		default:
			id := w.local(f.id+"_unused", w.typeOf(s.writes[0]))
			s.writes = []string{id}
			s.entries[len(s.entries)-1].value = inline{id}
		}
	}
	f.steps = slices.DeleteFunc(f.steps, func(s *step) bool { return s.entries[0].value == "Transform" && len(s.writes) == 0 })
	w.idle(f)
}

// sharedBy tells of the variables that flows hand each other: the data, and which state is next.
func (w *workflow) sharedBy(id string) bool { return w.locals[id] == nil || w.handed[id] }

// newFlow begins a flow.
func (w *workflow) newFlow(name string) *flow {
	f := &flow{id: w.ids.id(name, "flow"), types: w.typeOf, shared: w.sharedBy}
	w.app.flows = append(w.app.flows, f)
	return f
}

// idle gives a flow without steps one that does nothing; a flow has at least one.
func (w *workflow) idle(f *flow) {
	if len(f.steps) == 0 {
		w.reads = nil
		w.assign(f, f.id+"_step", w.local("ended", &inferredType{sort: isBool, declared: true}), "true")
	}
}

// shown are what the main flow takes and gives: what the caller gives, and the
// data that states make. Variables of the translation's own stay inside.
func (w *workflow) shown(given set, written []string) (inputs, outputs []string) {
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
	if w.root.form == mapping {
		id = either(w.textOf(w.root, "id"), w.textOf(w.root, "key"))
		name = w.textOf(w.root, "name")
		w.app.description = w.textOf(w.root, "description")
		for _, key := range []string{"version", "specVersion"} {
			if v := w.textOf(w.root, key); v != "" {
				w.app.head = append(w.app.head, fmt.Sprintf("The workflow's %s: %s.", key, v))
			}
		}
	}
	w.app.id = w.ids.id(either(id, name), "workflow")
	switch {
	case name == "" || name == w.app.id:
	case w.app.description == "":
		w.app.description = name
	default:
		w.app.head = append(w.app.head, fmt.Sprintf("The workflow's name: %s.", name))
	}
	if given := either(id, name); given != "" && given != w.app.id {
		w.app.head = append(w.app.head, fmt.Sprintf("The workflow's id: %s.", given))
	}
}

// either is the first of two texts that is not empty.
func either(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// typeOf is the shape of a variable.
func (w *workflow) typeOf(id string) *inferredType {
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
	id := either(strings.NewReplacer("-", "_", ".", "_").Replace(slug(name)), "data")
	if !isName(id) || contains(calledNames(), id) {
		id += "_"
	}
	for w.isData(id) || w.ids.taken[id] && !w.guess { // what else has the id gives way in the next look
		id += "_"
	}
	w.ids.taken[id] = true
	d := &dataVar{name: name, id: id, of: &inferredType{top: true}}
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
		w.app.head = append(w.app.head, "Data that has another name here: "+strings.Join(all, ", ")+".")
	}
}

// reading is data as an expression reads it.
func (w *workflow) reading(name string) (*translatedExpr, error) {
	d := w.datum(name)
	w.reads = append(w.reads, d.id)
	return &translatedExpr{text: d.id, prec: precAtom, of: d.of, null: d.of.optional, loose: d.asked, nulls: &d.nulls, root: d.of}, nil
}

// write says that a state sets data, and answers its variable; none where the value
// does not fit, which is told.
func (w *workflow) write(name string, of *inferredType, at *node) (id string, fits bool) {
	d := w.datum(name)
	switch {
	case !of.flat():
		w.unsupported(at, "%s is a list of lists, which no variable is; it is left out", name)
		return "", false
	case of.hasNullableElements() && of.elem.declared:
		w.unsupported(at, "%s: an element may be null there, and must not be here", name)
	case of.hasNullableElements():
		w.assumed(at, "%s: if an element is null, it stays so there; here that is an error", name)
	}
	if !w.guess {
		if _, fits = join(d.of, of); !fits {
			w.unsupported(at, "%s is %s here and %s elsewhere, and a variable is of one type; what is set here is left out", name, of.sort.noun(), d.of.sort.noun())
		}
		return d.id, fits
	}
	if of.sort == unknown && !of.declared && d.of.sort < isList {
		of.sort = d.of.sort // as the data is used, so is what it is made of
	}
	if !d.of.declared && d.of.sort != unknown { // what the file says counts, not how it is used
		d.of = &inferredType{optional: d.of.optional, top: true}
	}
	made, ok := join(d.of, of)
	if !ok {
		return d.id, false
	}
	if made != d.of {
		made2 := *made
		made2.optional = made2.optional || d.of.optional
		d.of = &made2
	}
	return d.id, true
}

// local is a variable of the translation's own.
func (w *workflow) local(name string, of *inferredType) string {
	id := w.ids.id(strings.NewReplacer("-", "_", ".", "_").Replace(slug(name)), "value")
	w.locals[id] = of
	return id
}

// jq translates expressions over the workflow's data.
func (w *workflow) jq() *jq {
	w.reads = nil
	t := &jq{root: &translatedExpr{member: w.reading}, vars: map[string]*translatedExpr{}, named: w.defined, guess: w.guess, strict: w.strict}
	if w.root.form == mapping && w.root.get("constants") != nil {
		t.vars["CONST"] = constants(w.root.get("constants"))
	}
	return t
}

// settle names the types of the data, once all is known of them.
func (w *workflow) settle() {
	for _, d := range w.data {
		if d.of.sort == unknown {
			d.of.sort = isText
		}
	}
}

// namedTypes are the records of all variables, named.
func (w *workflow) namedTypes() []*inferredType {
	all := w.parts.types
	for _, d := range w.data {
		if !w.guess {
			d.of.settle(w.ids, d.name, &all)
		}
	}
	for _, id := range w.order() {
		w.locals[id].settle(w.ids, id, &all)
	}
	return all
}

// order are the ids of the translation's own variables.
func (w *workflow) order() []string {
	s := set{}
	for id := range w.locals {
		s.add(id)
	}
	return s.sorted()
}

// chain writes the states from s on into a flow, until it ends or branches.
func (w *workflow) chain(s *state, f *flow) {
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
func (w *workflow) flow(s *state) *flow {
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
func (w *workflow) invoke(s *state, f *flow) {
	to := w.flow(s)
	w.push(f, &step{block: w.head("InvokeFlow", s.name+"_begin").set("flow", to.id), calls: []*flow{to}, binds: true})
}

// oneCase is a case of a Switch.
func (w *workflow) oneCase(when string, f *flow) *block {
	c := new(block).set("when", formula(when)).set("flow", f.id)
	c.inline = true
	return c
}

// head begins a step.
func (w *workflow) head(kind, id string) *block {
	return new(block).set("type", kind).set("id", w.ids.id(id, "step"))
}

// push adds a step to a flow.
func (w *workflow) push(f *flow, s *step) { f.steps = append(f.steps, s) }

// assign adds a Transform that sets one variable.
func (w *workflow) assign(f *flow, id, to, text string) {
	w.push(f, &step{block: w.head("Transform", id).set("set", new(block).set(to, formula(text))), reads: w.reads, writes: []string{to}})
}

// condition translates the condition of an outcome; false where it cannot be.
func (w *workflow) condition(s *state, o outcome) (text string, failed bool) {
	t := w.jq()
	w.outcomeVars(s, t)
	source := o.when.text
	switch {
	case o.when.form == boolean:
		return strings.ToLower(o.when.text), false
	case o.when.form != textual:
		w.malformed(o.when, "a condition is an expression, not %s", o.when.described())
		return "false", true
	}
	if tpl := readTemplate(strings.TrimSpace(source)); len(tpl.parts) == 1 {
		source = tpl.parts[0].text
	}
	c, err := t.translate(source)
	if err != nil {
		w.untranslated(o.when, "this condition is taken as false", err)
		w.reads = nil
		return "false", true
	}
	return t.truth(c).whole(), false
}

// choose adds the Switch behind a state with conditions.
func (w *workflow) choose(s *state, f *flow) {
	var cases []*block
	sw := &step{block: w.head("Switch", s.name+"_next"), branches: true}
	for i, o := range s.cases {
		when, failed := w.condition(s, o)
		if i == 0 {
			sw.sooner = w.reads
		}
		sw.reads = append(sw.reads, w.reads...)
		var to *flow
		if o.to.to != nil {
			to = w.flow(o.to.to)
		} else {
			to = w.end()
		}
		c := w.oneCase(when, to)
		if name := w.textOf(o.n, "name"); name != "" {
			c.inline, c.entries[0].note = false, name
		}
		if failed {
			c.inline = false
			c.entries[0].note = "TODO: not translated: " + oneLine(o.when.text)
		}
		cases = append(cases, c)
		sw.calls = append(sw.calls, to)
	}
	sw.set("cases", cases)
	if s.next.to != nil {
		to := w.flow(s.next.to)
		sw.set("else", to.id)
		sw.calls = append(sw.calls, to)
	}
	if s.kind == "switch" {
		w.describe(s, sw)
	}
	w.push(f, sw)
}

// end is a flow that does nothing: a case that ends the workflow must not fall
// through to the next one.
func (w *workflow) end() *flow {
	if w.parts.end == nil {
		w.parts.end = w.newFlow("End")
		w.parts.end.description = "The end of the workflow."
		w.idle(w.parts.end)
	}
	return w.parts.end
}
