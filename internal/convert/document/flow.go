package document

import (
	"maps"
	"slices"
)

// Set is a set of the ids of variables.
type Set map[string]bool

func (s Set) Add(ids ...string) {
	for _, id := range ids {
		s[id] = true
	}
}

func (s Set) Sorted() []string { return slices.Sorted(maps.Keys(s)) }

// Flow is a flow of the document.
type Flow struct {
	Id          string
	Description string
	Steps       []*Step
	Types       func(id string) *Type // of variables
	Shared      func(id string) bool  // tells of the variables that flows hand each other; the others stay inside

	Conversational  bool // it is conversational
	Inputs, Outputs []string
	available       Set // variables that may have a value where the flow is called
	Sure            Set // variables that it sets whatever happens
}

// Step is a step of a flow, and which variables it reads and writes itself.
type Step struct {
	*Block
	Reads, Writes []string
	Calls         []*Flow    // the flows that it runs, by the ids of variables
	Loop          bool       // it runs its flow again and again, at least once
	Bind          bool       // it names what the flow is given and gives, each by its own name
	First         *Flow      // of a loop: the flow that runs first, whatever happens
	Rounds        []LoopBody // of a loop: what its rounds can run
	Branch        bool       // which of the flows runs is found out by its conditions
	FirstReads    []string   // of one that branches: what its first condition reads
}

// LoopBody is a flow that a round of a loop can run.
type LoopBody struct {
	Flow   *Flow
	Before []*Flow // those that may have run before it runs for the first time
}

// block is the flow in the document.
func (f *Flow) block() *Block {
	b := new(Block).Set("id", f.Id)
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

// bindings map each id to itself.
func bindings(ids []string) *Block {
	b := &Block{Inline: true}
	for _, id := range ids {
		b.Set(id, id)
	}
	return b
}

// fill sets a list of ids, each once, unless it is empty.
func (s *Step) fill(key string, ids []string) {
	slices.Sort(ids)
	if ids = slices.Compact(ids); len(ids) > 0 {
		s.Set(key, NameList(ids))
	}
}
