package xflow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/jq"
)

// maxRounds is how often a circle of states is gone through at most.
const maxRounds = 100

// writeLoop writes states that lead back to each other: a Loop over a flow that runs
// the state whose turn it is and says which one is next.
func (w *workflow) writeLoop(s *state, f *document.Flow) {
	next := w.local("next_state", &document.Type{Kind: document.Text, Declared: true})
	w.handed[next] = true
	var members []*state
	for _, m := range w.states {
		if w.loops[m] == w.loops[s] {
			members = append(members, m)
		}
	}
	if len(members) > 1 {
		w.reads = nil
		w.assign(f, s.name+"_enter", next, jq.Quote(s.name))
	}
	body, runs := w.round(s, members, next)
	var inside []string
	for _, m := range members {
		inside = append(inside, jq.Quote(m.name))
	}
	loop := w.head("Loop", s.name+"_loop").Set("flow", body.Id).
		Set("until", document.Expression(fmt.Sprintf("not (%s in [%s])", next, strings.Join(inside, ", ")))).
		Set("max_iterations", maxRounds).Note("The workflow has no limit; a loop needs one.")
	w.Assumed(s.n, "the states %s lead back to each other; the loop ends after %d rounds at the latest", stateNames(members), maxRounds)
	w.push(f, &document.Step{Block: loop, Reads: []string{next}, Calls: []*document.Flow{body}, Loop: true, First: runs[s], Rounds: turns(s, members, runs)})
	w.leave(s, members, next, f)
}

// leave goes on behind a circle.
func (w *workflow) leave(s *state, members []*state, next string, f *document.Flow) {
	var cases []*document.Block
	sw := &document.Step{Reads: []string{next}, Branch: true}
	for _, to := range w.states {
		leads := slices.ContainsFunc(members, func(m *state) bool { return slices.Contains(m.successors(), to) })
		if !leads || slices.Contains(members, to) {
			continue
		}
		cases = append(cases, w.oneCase(next+" == "+jq.Quote(to.name), w.flow(to)))
		sw.Calls = append(sw.Calls, w.flow(to))
	}
	if len(cases) > 0 {
		sw.Block = w.head("Switch", s.name+"_leave").Set("cases", cases)
		w.push(f, sw)
	}
}

// round is the flow of one time through a circle: the state whose turn it is. It
// answers the flow of each state, too.
func (w *workflow) round(s *state, members []*state, next string) (body *document.Flow, runs map[*state]*document.Flow) {
	runs = map[*state]*document.Flow{}
	var cases []*document.Block
	sw := &document.Step{Reads: []string{next}, Branch: true}
	for _, m := range members {
		one := w.newFlow(m.name)
		runs[m] = one
		w.state(m, one)
		w.successor(m, next, one)
		cases = append(cases, w.oneCase(next+" == "+jq.Quote(m.name), one))
		sw.Calls = append(sw.Calls, one)
	}
	if len(members) == 1 {
		return runs[s], runs
	}
	body = w.newFlow(s.name + "_round")
	sw.Block = w.head("Switch", s.name+"_turn").Set("cases", cases)
	w.push(body, sw)
	return body, runs
}

// turns are what the rounds of a circle that begins with s can run.
func turns(s *state, members []*state, runs map[*state]*document.Flow) []document.LoopBody {
	var all []document.LoopBody
	for _, m := range members {
		t := document.LoopBody{Flow: runs[m]}
		seen := map[*state]bool{m: true}
		for todo := []*state{s}; len(todo) > 0; todo = todo[1:] {
			if at := todo[0]; !seen[at] && runs[at] != nil {
				seen[at] = true
				t.Before = append(t.Before, runs[at])
				todo = append(todo, at.successors()...)
			}
		}
		all = append(all, t)
	}
	return all
}

// successor says which state is next; an empty name is the end.
func (w *workflow) successor(m *state, next string, f *document.Flow) {
	name := func(t target) string {
		if t.to == nil {
			return `""`
		}
		return jq.Quote(t.to.name)
	}
	text := name(m.next)
	var reads []string
	for _, o := range slices.Backward(m.cases) {
		when, _ := w.condition(m, o)
		reads = append(reads, w.reads...)
		text = fmt.Sprintf("(%s) ? %s : %s", when, name(o.to), text)
	}
	w.reads = reads
	w.assign(f, m.name+"_then", next, text)
}

func stateNames(all []*state) string {
	var names []string
	for _, s := range all {
		names = append(names, s.name)
	}
	return strings.Join(names, ", ")
}
