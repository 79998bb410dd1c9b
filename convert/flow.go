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
	types       func(id string) *shape // of variables
	shared      func(id string) bool   // tells of the variables that flows hand each other; the others stay inside

	talks           bool // it is conversational
	inputs, outputs []string
	available       set // variables that may have a value where the flow is called
}

// step is a step of a flow, and which variables it reads and writes itself.
type step struct {
	*block
	reads, writes []string
	calls         []*flow // the flows that it runs, by the ids of variables
	loops         bool    // it runs its flow again and again, at least once
	binds         bool    // it names what the flow is given and gives, each by its own name
}

// produced are the variables that a step may set.
func (s *step) produced() []string {
	all := slices.Clone(s.writes)
	for _, f := range s.calls {
		all = append(all, f.outputs...)
	}
	return all
}

// plan finds out what each flow is given and gives: the variables that it, or what
// it calls, reads and sets. Flows call each other without circles.
func (f *flow) plan() {
	written := set{}
	for _, s := range f.steps {
		for _, c := range s.calls {
			c.plan()
		}
		written.add(s.produced()...)
	}
	f.outputs = slices.DeleteFunc(written.sorted(), func(id string) bool { return !f.shared(id) })
}

// offer tells each flow which variables may have a value when it is called, and
// answers those that the flow reads before anything can have set them.
func (f *flow) offer(available set) (missing set) {
	missing = set{}
	if f.available == nil {
		f.available = set{}
	}
	f.available.add(available.sorted()...)
	now := maps.Clone(available)
	for _, s := range f.steps {
		for _, id := range s.reads {
			if !now[id] {
				missing.add(id)
			}
		}
		if s.loops {
			now.add(s.produced()...)
		}
		for _, c := range s.calls {
			missing.add(c.offer(now).sorted()...)
		}
		now.add(s.produced()...)
	}
	return missing
}

// take finds the inputs of each flow: what it needs, and what it may set or not,
// so that what was there stays.
func (f *flow) take() {
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
			c.take()
			need(c.inputs)
		}
		need(s.reads)
		certain := s.certain()
		for _, id := range s.produced() {
			if !certain[id] {
				need([]string{id})
			}
		}
		sure.add(certain.sorted()...)
	}
	f.inputs = needed.sorted()
}

// certain are the variables that a step sets whatever happens.
func (s *step) certain() set {
	sure := set{}
	sure.add(s.writes...)
	if s.loops || len(s.calls) == 1 && !s.chooses() {
		sure.add(s.calls[0].certain().sorted()...)
	}
	return sure
}

// chooses tells whether the step runs one of its flows, or none.
func (s *step) chooses() bool { return s.entries[0].value == "Switch" }

func (f *flow) certain() set {
	sure := set{}
	for _, s := range f.steps {
		for id := range s.certain() {
			if f.shared(id) {
				sure.add(id)
			}
		}
	}
	return sure
}

// begin gives the variables of loops a value that are read in a round before
// another round has set them, and answers which these are.
func (f *flow) begin(enter func(*flow, []string) *step) set {
	found, written := set{}, set{}
	written.add(f.inputs...)
	for i := 0; i < len(f.steps); i++ {
		s := f.steps[i]
		var missing []string
		for _, c := range s.calls {
			found.add(c.begin(enter).sorted()...)
			for _, id := range c.inputs {
				if s.loops && !written[id] {
					missing = append(missing, id)
				}
			}
		}
		if len(missing) > 0 {
			found.add(missing...)
			f.steps = slices.Insert(f.steps, i, enter(f, missing))
			i++
		}
		written.add(append(s.produced(), missing...)...)
	}
	return found
}

// vain tells whether what step i writes is written again by a later step of the
// flow, for certain and before anything reads it.
func (f *flow) vain(i int, id string) bool {
	for _, s := range f.steps[i+1:] {
		if slices.Contains(s.reads, id) || len(s.calls) > 0 {
			return false
		}
		if slices.Contains(s.writes, id) {
			return true
		}
	}
	return false
}

// doubtful finds the variables that are read where they may not be set; sure are
// those that are set where the flow is called.
func (f *flow) doubtful(sure set) set {
	found, now := set{}, maps.Clone(sure)
	for _, s := range f.steps {
		for _, id := range s.reads {
			if !now[id] {
				found.add(id)
			}
		}
		for _, c := range s.calls {
			found.add(c.doubtful(now).sorted()...)
		}
		now.add(s.certain().sorted()...)
	}
	return found
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
		v := new(block).set("id", id).set("type", f.types(id).typeText())
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
