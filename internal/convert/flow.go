package convert

import (
	"maps"
	"slices"
)

// set is a set of the ids of variables.
type set map[string]bool

func (s set) add(ids ...string) {
	for _, id := range ids {
		s[id] = true
	}
}

func (s set) sorted() []string { return slices.Sorted(maps.Keys(s)) }

// flow is a flow of the document.
type flow struct {
	id          string
	description string
	steps       []*step
	types       func(id string) *inferredType // of variables
	shared      func(id string) bool          // tells of the variables that flows hand each other; the others stay inside

	talks           bool // it is conversational
	inputs, outputs []string
	available       set // variables that may have a value where the flow is called
	sure            set // variables that it sets whatever happens
}

// step is a step of a flow, and which variables it reads and writes itself.
type step struct {
	*block
	reads, writes []string
	calls         []*flow    // the flows that it runs, by the ids of variables
	loops         bool       // it runs its flow again and again, at least once
	binds         bool       // it names what the flow is given and gives, each by its own name
	first         *flow      // of a loop: the flow that runs first, whatever happens
	turns         []loopBody // of a loop: what its rounds can run
	branches      bool       // which of the flows runs is found out by its conditions
	sooner        []string   // of one that branches: what its first condition reads
}

// loopBody is a flow that a round of a loop can run.
type loopBody struct {
	flow   *flow
	before []*flow // those that may have run before it runs for the first time
}

// addUnsetInputs adds what a flow reads when it runs for the first time though nothing can
// have set it then.
func (t loopBody) addUnsetInputs(now, missing set) {
	early := maps.Clone(now)
	for _, f := range t.before {
		for _, s := range f.steps {
			early.add(s.produced()...)
		}
	}
	for _, s := range t.flow.steps {
		for _, id := range s.reads {
			if !early[id] {
				missing.add(id)
			}
		}
		early.add(s.produced()...)
	}
}

// produced are the variables that a step may set.
func (s *step) produced() []string {
	all := slices.Clone(s.writes)
	for _, f := range s.calls {
		all = append(all, f.outputs...)
	}
	return all
}

// definitelySet are the variables that a step sets whatever happens.
func (s *step) definitelySet() set {
	sure := set{}
	sure.add(s.writes...)
	if s.loops || s.binds {
		sure.add(s.calls[0].sure.sorted()...)
	}
	return sure
}

// callers lists a flow and all that it calls, each once, callers before the flows
// that they call. Flows call each other without circles.
func (f *flow) callers() []*flow {
	var order []*flow
	seen := map[*flow]bool{}
	var visit func(*flow)
	visit = func(f *flow) {
		if seen[f] {
			return
		}
		seen[f] = true
		for _, s := range f.steps {
			for _, c := range s.calls {
				visit(c)
			}
		}
		order = append(order, f)
	}
	visit(f)
	slices.Reverse(order)
	return order
}

// plan finds out what each of the flows gives, and what for certain.
func plan(order []*flow) {
	for _, f := range slices.Backward(order) {
		written, sure := set{}, set{}
		for _, s := range f.steps {
			written.add(s.produced()...)
			sure.add(s.definitelySet().sorted()...)
		}
		inside := func(id string) bool { return !f.shared(id) }
		f.outputs = slices.DeleteFunc(written.sorted(), inside)
		f.sure = set{}
		f.sure.add(slices.DeleteFunc(sure.sorted(), inside)...)
	}
}

// availableIn finds out which variables may have a value where each of the flows is
// called, and answers those that are read though nothing can have set them. The
// first of the flows is given what is given.
func availableIn(order []*flow, given set) (missing set) {
	missing = set{}
	for _, f := range order {
		f.available = set{}
	}
	order[0].available = maps.Clone(given)
	for _, f := range order {
		now := maps.Clone(f.available)
		for _, s := range f.steps {
			for _, id := range s.reads {
				if !now[id] {
					missing.add(id)
				}
			}
			for _, t := range s.turns {
				t.addUnsetInputs(now, missing)
			}
			if s.loops {
				now.add(s.produced()...)
			}
			for _, c := range s.calls {
				c.available.add(now.sorted()...)
			}
			now.add(s.produced()...)
		}
	}
	return missing
}

// requiredInputs finds the inputs of each of the flows: what it needs, and what it may set
// or not, so that what was there stays.
func requiredInputs(order []*flow) {
	for _, f := range slices.Backward(order) {
		needed, sure := set{}, set{}
		need := func(ids []string) {
			for _, id := range ids {
				if !sure[id] && f.available[id] {
					needed.add(id)
				}
			}
		}
		for _, s := range f.steps {
			for _, c := range s.calls {
				need(c.inputs)
			}
			need(s.reads)
			certain := s.definitelySet()
			for _, id := range s.produced() {
				if !certain[id] {
					need([]string{id})
				}
			}
			sure.add(certain.sorted()...)
		}
		f.inputs = needed.sorted()
	}
}

// needed adds what a flow reads whatever happens: before it branches, and in the
// condition that is looked at first.
func (f *flow) needed(found set) {
	for _, s := range f.steps {
		switch {
		case s.branches:
			found.add(s.sooner...)
			return
		case s.loops && s.first != nil:
			s.first.needed(found)
		case s.binds:
			s.calls[0].needed(found)
		default:
			found.add(s.reads...)
		}
	}
}

// maybeUnset finds the variables that are read where they may not be set; given are
// those that are set where the first of the flows begins.
func maybeUnset(order []*flow, given set) set {
	found := set{}
	before := map[*flow]set{order[0]: given} // what is set wherever a flow is called
	for _, f := range order {
		now := maps.Clone(before[f])
		for _, s := range f.steps {
			for _, id := range s.reads {
				if !now[id] {
					found.add(id)
				}
			}
			for _, c := range s.calls {
				if before[c] == nil {
					before[c] = maps.Clone(now)
				}
				maps.DeleteFunc(before[c], func(id string, _ bool) bool { return !now[id] })
			}
			now.add(s.definitelySet().sorted()...)
		}
	}
	return found
}

// begin gives variables a value that a called flow reads though nothing has set
// them on this way: in the first round of a loop, or where another branch does.
// It answers which these are.
func (f *flow) begin(enter func(*flow, []string) *step) []string {
	var found []string
	written := set{}
	written.add(f.inputs...)
	for i := 0; i < len(f.steps); i++ {
		s := f.steps[i]
		var missing []string
		for _, c := range s.calls {
			for _, id := range c.inputs {
				if !written[id] && !slices.Contains(missing, id) {
					missing = append(missing, id)
				}
			}
		}
		if len(missing) > 0 {
			found = append(found, missing...)
			f.steps = slices.Insert(f.steps, i, enter(f, missing))
			i++
		}
		written.add(append(s.produced(), missing...)...)
	}
	return found
}

// keep drops what a Transform sets, but for some of it.
func (s *step) keep(wanted func(id string) bool) {
	for _, e := range s.entries {
		if sets, ok := e.value.(*block); ok && e.key == "set" {
			sets.entries = slices.DeleteFunc(sets.entries, func(e entry) bool { return !wanted(e.key) })
		}
	}
	s.writes = slices.DeleteFunc(s.writes, func(id string) bool { return !wanted(id) })
}

// deadWrite tells whether what step i writes is written again by a later step of the
// flow, for certain and before anything reads it.
func (f *flow) deadWrite(i int, id string) bool {
	for _, s := range f.steps[i+1:] {
		switch {
		case slices.Contains(s.reads, id) || len(s.calls) > 0 && !s.binds || s.binds && slices.Contains(s.calls[0].inputs, id):
			return false
		case slices.Contains(s.writes, id) || s.binds && s.calls[0].sure[id]:
			return true
		}
	}
	return false
}

// declared is the flow in the document.
func (f *flow) declared() *block {
	b := new(block).set("id", f.id)
	if f.description != "" {
		b.set("description", f.description)
	}
	if f.talks {
		how := new(block).set("type", "Conversational")
		how.inline = true
		b.set("interface", how)
	}
	used := set{}
	used.add(f.inputs...)
	used.add(f.outputs...)
	var steps []*block
	for _, s := range f.steps {
		used.add(s.reads...)
		used.add(s.produced()...)
		given := set{}
		for _, c := range s.calls {
			used.add(c.inputs...)
			given.add(c.inputs...)
		}
		if s.binds {
			s.set("input_bindings", bindings(given.sorted())).set("output_bindings", bindings(s.produced()))
		} else if len(s.calls) > 0 {
			s.fill("inputs", given.sorted())
			s.fill("outputs", s.produced())
		}
		steps = append(steps, s.block)
	}
	var variables []*block
	for _, id := range used.sorted() {
		v := new(block).set("id", id).set("type", f.types(id).variableType())
		v.inline = true
		variables = append(variables, v)
	}
	if len(variables) > 0 {
		b.set("variables", variables)
	}
	for _, side := range []struct {
		key string
		ids []string
	}{{"inputs", f.inputs}, {"outputs", f.outputs}} {
		if len(side.ids) > 0 {
			b.set(side.key, inline(side.ids))
		}
	}
	return b.set("steps", steps)
}

// bindings map each id to itself.
func bindings(ids []string) *block {
	b := &block{inline: true}
	for _, id := range ids {
		b.set(id, id)
	}
	return b
}

// fill sets a list of ids, each once, unless it is empty.
func (s *step) fill(key string, ids []string) {
	slices.Sort(ids)
	if ids = slices.Compact(ids); len(ids) > 0 {
		s.set(key, inline(ids))
	}
}
