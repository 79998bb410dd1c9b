package document

import (
	"maps"
	"slices"
)

// addUnsetInputs adds the variables that a flow reads in its first run although no
// step can have set them.
func (t LoopBody) addUnsetInputs(now, missing Set) {
	early := maps.Clone(now)
	for _, f := range t.Before {
		for _, s := range f.Steps {
			early.Add(s.produced()...)
		}
	}
	for _, s := range t.Flow.Steps {
		for _, id := range s.Reads {
			if !early[id] {
				missing.Add(id)
			}
		}
		early.Add(s.produced()...)
	}
}

// ComputeOutputs computes the outputs of each flow, and which of them it sets on
// every path.
func ComputeOutputs(order []*Flow) {
	for _, f := range slices.Backward(order) {
		written, sure := Set{}, Set{}
		for _, s := range f.Steps {
			written.Add(s.produced()...)
			sure.Add(s.definitelySet().Sorted()...)
		}
		inside := func(id string) bool { return !f.Shared(id) }
		f.Outputs = slices.DeleteFunc(written.Sorted(), inside)
		f.Sure = Set{}
		f.Sure.Add(slices.DeleteFunc(sure.Sorted(), inside)...)
	}
}

// ComputeAvailable computes the variables that may have a value at the call of each flow.
// It returns variables that are read but never set before. given are available to the
// first flow.
func ComputeAvailable(order []*Flow, given Set) (missing Set) {
	missing = Set{}
	for _, f := range order {
		f.available = Set{}
	}
	order[0].available = maps.Clone(given)
	for _, f := range order {
		now := maps.Clone(f.available)
		for _, s := range f.Steps {
			for _, id := range s.Reads {
				if !now[id] {
					missing.Add(id)
				}
			}
			for _, t := range s.Rounds {
				t.addUnsetInputs(now, missing)
			}
			if s.Loop {
				now.Add(s.produced()...)
			}
			for _, c := range s.Calls {
				c.available.Add(now.Sorted()...)
			}
			now.Add(s.produced()...)
		}
	}
	return missing
}

// ComputeInputs computes the inputs of each flow: the variables that it reads before it
// sets them, and the variables that keep their value on some paths.
func ComputeInputs(order []*Flow) {
	for _, f := range slices.Backward(order) {
		needed, sure := Set{}, Set{}
		need := func(ids []string) {
			for _, id := range ids {
				if !sure[id] && f.available[id] {
					needed.Add(id)
				}
			}
		}
		for _, s := range f.Steps {
			for _, c := range s.Calls {
				need(c.Inputs)
			}
			need(s.Reads)
			certain := s.replaced()
			for _, id := range s.produced() {
				if !certain[id] {
					need([]string{id})
				}
			}
			sure.Add(certain.Sorted()...)
		}
		f.Inputs = needed.Sorted()
	}
}

// MaybeUnset returns the variables that are read on a path where they may be unset;
// given are set at the start of the first flow.
func MaybeUnset(order []*Flow, given Set) Set {
	found := Set{}
	before := map[*Flow]Set{order[0]: given} // set at every call of a flow
	for _, f := range order {
		now := maps.Clone(before[f])
		for _, s := range f.Steps {
			for _, id := range s.Reads {
				if !now[id] {
					found.Add(id)
				}
			}
			for _, c := range s.Calls {
				if before[c] == nil {
					before[c] = maps.Clone(now)
				}
				maps.DeleteFunc(before[c], func(id string, _ bool) bool { return !now[id] })
			}
			if s.MayFail {
				maps.DeleteFunc(now, func(id string, _ bool) bool { return slices.Contains(s.produced(), id) })
			}
			now.Add(s.definitelySet().Sorted()...)
		}
	}
	return found
}

// AddNeeded adds the variables that a flow reads on every path: before its first
// branch, and in the first condition of it.
func (f *Flow) AddNeeded(found Set) {
	for _, s := range f.Steps {
		switch {
		case s.Branch:
			found.Add(s.FirstReads...)
			return
		case s.Loop && s.First != nil:
			s.First.AddNeeded(found)
		case s.Bind:
			s.Calls[0].AddNeeded(found)
		default:
			found.Add(s.Reads...)
		}
	}
}

// InitUnset inserts steps, made by enter, before calls of flows whose inputs may be
// unset there, for example in the first iteration of a loop. It returns the ids of
// these variables.
func (f *Flow) InitUnset(enter func(*Flow, []string) *Step) []string {
	var found []string
	written := Set{}
	written.Add(f.Inputs...)
	for i := 0; i < len(f.Steps); i++ {
		s := f.Steps[i]
		var missing []string
		for _, c := range s.Calls {
			for _, id := range c.Inputs {
				if !written[id] && !slices.Contains(missing, id) {
					missing = append(missing, id)
				}
			}
		}
		if len(missing) > 0 {
			found = append(found, missing...)
			f.Steps = slices.Insert(f.Steps, i, enter(f, missing))
			i++
		}
		written.Add(append(s.produced(), missing...)...)
	}
	return found
}

// Keep removes the variables from a Transform that are not wanted.
func (s *Step) Keep(wanted func(id string) bool) {
	for _, e := range s.Entries {
		if sets, ok := e.Value.(*Block); ok && e.Key == "set" {
			sets.Entries = slices.DeleteFunc(sets.Entries, func(e Entry) bool { return !wanted(e.Key) })
		}
	}
	s.Writes = slices.DeleteFunc(s.Writes, func(id string) bool { return !wanted(id) })
}

// IsDeadWrite reports whether a later step certainly overwrites what step i writes
// to a variable before any step reads it.
func (f *Flow) IsDeadWrite(i int, id string) bool {
	for _, s := range f.Steps[i+1:] {
		switch {
		case s.Loop || slices.Contains(s.Reads, id) || slices.ContainsFunc(s.Calls, func(c *Flow) bool { return slices.Contains(c.Inputs, id) }):
			return false
		case s.replaced()[id]:
			return true
		}
	}
	return false
}

// HideOverwritten makes variables local to the flows that a step calls if the values that it writes to
// them are never read. It reports whether there are any: what depends on outputs of flows is then out of
// date.
func HideOverwritten(order []*Flow) (found bool) {
	callers := map[*Flow]int{}
	for _, f := range order {
		for _, s := range f.Steps {
			for _, c := range s.Calls {
				callers[c]++
			}
		}
	}
	for _, f := range order {
		for i, s := range f.Steps {
			if s.Loop || slices.ContainsFunc(s.Calls, func(c *Flow) bool { return callers[c] > 1 }) {
				continue // another caller may read the value
			}
			for _, c := range s.Calls {
				for _, id := range c.Outputs {
					if f.IsDeadWrite(i, id) {
						found = true
						shared := c.Shared
						c.Shared = func(other string) bool { return other != id && shared(other) }
					}
				}
			}
		}
	}
	return found
}

// CallOrder returns a flow and all flows that it calls, each once, callers first.
// The calls are acyclic.
func (f *Flow) CallOrder() []*Flow {
	var order []*Flow
	seen := map[*Flow]bool{}
	var visit func(*Flow)
	visit = func(f *Flow) {
		if seen[f] {
			return
		}
		seen[f] = true
		for _, s := range f.Steps {
			for _, c := range s.Calls {
				visit(c)
			}
		}
		order = append(order, f)
	}
	visit(f)
	slices.Reverse(order)
	return order
}

func (s *Step) produced() []string {
	all := slices.Clone(s.Writes)
	for _, f := range s.Calls {
		all = append(all, f.Outputs...)
	}
	return all
}

// replaced returns the variables that do not keep their values on any path.
func (s *Step) replaced() Set {
	lost := s.definitelySet()
	if s.MayFail {
		lost.Add(s.produced()...) // which are unset if it fails
	}
	return lost
}

// definitelySet returns the variables that a step sets on every path.
func (s *Step) definitelySet() Set {
	sure := Set{}
	sure.Add(s.Writes...)
	if s.Loop || s.Bind && !s.MayFail {
		sure.Add(s.Calls[0].Sure.Sorted()...)
	}
	for _, f := range s.Calls {
		if s.All {
			sure.Add(f.Sure.Sorted()...)
		}
	}
	return sure
}
