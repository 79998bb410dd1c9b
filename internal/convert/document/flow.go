package document

import (
	"maps"
	"slices"
)

// Set is a set of variable ids.
type Set map[string]bool

// Add adds ids.
func (s Set) Add(ids ...string) {
	for _, id := range ids {
		s[id] = true
	}
}

// Sorted returns the ids in ascending order.
func (s Set) Sorted() []string { return slices.Sorted(maps.Keys(s)) }

// Flow is a flow of the document.
type Flow struct {
	ID          string                // id of the flow
	Description string                // may be empty
	Steps       []*Step               // in order, at least one
	Types       func(id string) *Type // type of a variable
	Shared      func(id string) bool  // reports whether a variable is passed between flows; others are local to this flow

	Conversational  bool     // has a Conversational interface
	Inputs, Outputs []string // ids of variables
	available       Set      // variables that may have a value where the flow is called
	Sure            Set      // variables that the flow sets on every path
}

// Step is a step with the variables that it reads and writes itself.
type Step struct {
	*Block
	Reads, Writes []string   // ids of variables
	Calls         []*Flow    // the flows that it runs; they share variables by id
	Loop          bool       // a Loop: runs its flow at least once
	Bind          bool       // an InvokeFlow: binds the inputs and outputs of its flow by name
	MayFail       bool       // of an InvokeFlow: its outputs are unset if it fails
	All           bool       // a Parallel: all of the flows run
	First         *Flow      // of a loop: the flow of the first iteration
	Rounds        []LoopBody // of a loop: the flows that iterations can run
	Branch        bool       // conditions choose which of the flows runs
	FirstReads    []string   // of a branch: what the first condition reads
}

// LoopBody is a flow that an iteration of a loop can run.
type LoopBody struct {
	Flow   *Flow   // the flow
	Before []*Flow // those that may run before its first run
}

// block returns the flow as YAML.
func (f *Flow) block() *Block {
	b := new(Block).Set("id", f.ID)
	if f.Description != "" {
		b.Set("description", f.Description)
	}
	if f.Conversational {
		how := new(Block).Set("type", "Conversational")
		how.Inline = true
		b.Set("interface", how)
	}
	used := Set{}
	used.Add(f.Inputs...)
	used.Add(f.Outputs...)
	var steps []*Block
	for _, s := range f.Steps {
		used.Add(s.Reads...)
		used.Add(s.produced()...)
		given := Set{}
		for _, c := range s.Calls {
			used.Add(c.Inputs...)
			given.Add(c.Inputs...)
		}
		if s.Bind {
			s.Set("input_bindings", bindings(given.Sorted())).Set("output_bindings", bindings(s.produced()))
		} else if len(s.Calls) > 0 {
			s.fill("inputs", given.Sorted())
			s.fill("outputs", s.produced())
		}
		steps = append(steps, s.Block)
	}
	var variables []*Block
	for _, id := range used.Sorted() {
		v := new(Block).Set("id", id).Set("type", f.Types(id).VariableType())
		v.Inline = true
		variables = append(variables, v)
	}
	if len(variables) > 0 {
		b.Set("variables", variables)
	}
	for _, side := range []struct {
		key string
		ids []string
	}{{"inputs", f.Inputs}, {"outputs", f.Outputs}} {
		if len(side.ids) > 0 {
			b.Set(side.key, NameList(side.ids))
		}
	}
	return b.Set("steps", steps)
}

func bindings(ids []string) *Block {
	b := &Block{Inline: true}
	for _, id := range ids {
		b.Set(id, id)
	}
	return b
}

// fill sets a list of ids, sorted and without duplicates, unless it is empty.
func (s *Step) fill(key string, ids []string) {
	slices.Sort(ids)
	if ids = slices.Compact(ids); len(ids) > 0 {
		s.Set(key, NameList(ids))
	}
}
