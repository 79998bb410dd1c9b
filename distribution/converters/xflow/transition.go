package xflow

import (
	"fmt"
	"slices"

	"github.com/qtype-dev/qtype/internal/convert/input"
	"github.com/qtype-dev/qtype/spec/diag"
)

// readState reads the transitions of a state.
func (w *workflow) readState(s *state) {
	s.next = w.target(s.n, "state "+s.name)
	switch s.kind {
	case "aiagent":
		s.cases = w.outcomes(s, "agentOutcomes")
	case "switch":
		s.cases = w.outcomes(s, "dataConditions")
		if d := w.Map(s.n, "defaultCondition"); d != nil {
			w.CheckKeys(d, "defaultCondition", "name", "transition", "end", "metadata")
			s.next = w.target(d, "defaultCondition")
		}
		if s.n.Get("eventConditions") != nil {
			w.Unsupported(s.n.Get("eventConditions"), "state %s waits for events, which a flow cannot", s.name)
		}
	}
	w.readErrors(s)
	if s.next == (target{}) {
		s.next.end = true
		branches := len(s.cases) > 0
		if !branches && s.n.Get("transition") == nil && s.n.Get("end") == nil {
			w.Assumed(s.n, "state %s has neither transition nor end; the flow ends there", s.name)
		}
	}
}

// target reads a transition or an end. It returns the zero target if there is
// neither.
func (w *workflow) target(n *input.Node, owner string) target {
	to := n.Get("transition")
	end := n.Get("end")
	if end != nil && end.Kind == input.Map {
		w.CheckKeys(end, "end", "terminate", "produceEvents", "compensate", "continueAs")
		w.Skip(end, "a flow ends with its last state", "terminate")
		for _, key := range []string{"produceEvents", "compensate", "continueAs"} {
			if v := end.Get(key); v != nil && !(v.Kind == input.Bool && v.Text == "false") {
				w.Unsupported(v, "%s at the end of %s has no counterpart", key, owner)
			}
		}
	}
	unsetAtEnd := end != nil && (end.Kind == input.Map || w.Bool(n, "end"))
	if to == nil {
		return target{end: unsetAtEnd}
	}
	if unsetAtEnd {
		w.Malformed(end, "%s has a transition and an end; using the transition", owner)
	}
	name := to
	if to.Kind == input.Map {
		w.CheckKeys(to, "transition", "nextState", "produceEvents", "compensate")
		for _, key := range []string{"produceEvents", "compensate"} {
			if v := to.Get(key); v != nil && !(v.Kind == input.Bool && v.Text == "false") {
				w.Unsupported(v, "%s of a transition has no counterpart", key)
			}
		}
		if name = to.Get("nextState"); name == nil {
			w.Malformed(to, `transition has no "nextState"`)
			return target{end: true}
		}
	}
	return w.resolve(name)
}

// resolve returns the state with the name in a scalar, and reports unknown names.
func (w *workflow) resolve(name *input.Node) target {
	if name.Kind >= input.List {
		w.Malformed(name, "the name of a state must be a string, not %s", name.Describe())
		return target{end: true}
	}
	if s := w.named(name.Text); s != nil {
		return target{to: s}
	}
	var names []string
	for _, s := range w.states {
		names = append(names, s.name)
	}
	w.Add(input.Malformed.At(name.Span, "unknown state %q; the flow ends here", name.Text).WithNearest(name.Text, names))
	return target{end: true}
}

// outcomes reads conditional transitions.
func (w *workflow) outcomes(s *state, key string) []outcome {
	var all []outcome
	for i, n := range w.List(s.n, key) {
		m := w.AsMap(n, fmt.Sprintf("%s %d", key, i+1))
		if m == nil {
			continue
		}
		w.CheckKeys(m, key, "name", "condition", "transition", "end", "finish", "dataFilter", "metadata")
		o := outcome{n: m, when: m.Get("condition"), to: w.target(m, key)}
		if o.when == nil {
			w.Malformed(m, "an entry of %s has no \"condition\"", key)
			continue
		}
		if o.to == (target{}) {
			o.to = s.next // the transition of the state is the default
		}
		if o.to == (target{}) {
			o.to.end = true
		}
		if m.Get("metadata") != nil {
			w.Ignored(m.KeySpan("metadata"), "%s: metadata ignored", key)
		}
		if f := m.Get("dataFilter"); f != nil {
			w.Unsupported(f, "a data filter has no counterpart")
		}
		if f := m.Get("finish"); f != nil && !w.Bool(m, "finish") {
			w.Ignored(m.KeySpan("finish"), "finish: false ignored: the first condition that holds decides")
		}
		all = append(all, o)
	}
	return all
}

// findStart sets the first state of the workflow.
func (w *workflow) findStart() {
	w.start = w.states[0]
	if w.root.Kind != input.Map {
		return
	}
	start := w.root.Get("start")
	if start != nil && start.Kind == input.Map {
		w.CheckKeys(start, "start", "stateName", "schedule")
		if start.Get("schedule") != nil {
			w.Unsupported(start.Get("schedule"), "a schedule has no counterpart: schedule calls of qtype run instead")
		}
		if start = start.Get("stateName"); start == nil {
			w.Malformed(w.root.Get("start"), `start has no "stateName"; using the first state`)
			return
		}
	}
	switch {
	case start == nil && len(w.states) > 1:
		w.Add(input.Malformed.At(w.root.Mark(), "the workflow has no \"start\"; using its first state, %s", w.start.name).WithSeverity(diag.Warning))
	case start == nil:
	case w.named(start.Text) != nil:
		w.start = w.named(start.Text)
	default:
		w.resolve(start)
	}
}

// successors returns the states that a state can lead to.
func (s *state) successors() []*state {
	var all []*state
	for _, o := range s.cases {
		all = append(all, o.to.to)
	}
	all = append(all, s.next.to)
	return slices.DeleteFunc(all, func(s *state) bool { return s == nil })
}

// reached returns the states that can be reached from s. It contains s only if s is
// in a cycle.
func (s *state) reached() map[*state]bool {
	found := map[*state]bool{}
	for todo := s.successors(); len(todo) > 0; todo = todo[1:] {
		if !found[todo[0]] {
			found[todo[0]] = true
			todo = append(todo, todo[0].successors()...)
		}
	}
	return found
}

func (w *workflow) reportUnreached() {
	reached := w.start.reached()
	for _, s := range w.states {
		if s != w.start && !reached[s] {
			w.Ignored(s.n.Use().Mark(), "state %s is skipped: no transition leads to it", s.name)
		}
	}
	// Two states are in the same cycle if each can be reached from the other.
	w.cycles = map[*state]int{}
	for i, s := range w.states {
		from := s.reached()
		if !from[s] || w.cycles[s] > 0 {
			continue
		}
		for _, other := range w.states {
			if from[other] && other.reached()[s] {
				w.cycles[other] = i + 1
			}
		}
	}
}
