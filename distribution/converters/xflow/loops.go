package xflow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/distribution/converters/jq"
	"github.com/qtype-dev/qtype/internal/convert/document"
)

// maxRounds is the iteration limit of loops, which workflows do not have.
const maxRounds = 100

// writeLoop converts a cycle of states to a Loop. Its flow runs the current state
// and sets the name of the next one.
func (w *workflow) writeLoop(s *state, f *document.Flow) {
	next := w.local("next_state", &document.Type{Kind: document.Text, Declared: true})
	w.sharedLocals[next] = true
	var members []*state
	for _, m := range w.states {
		if w.cycles[m] == w.cycles[s] {
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
	loop := w.newBlock("Loop", s.name+"_loop").Set("flow", body.ID).
		Set("until", document.Expression(fmt.Sprintf("not (%s in [%s])", next, strings.Join(inside, ", ")))).
		Set("max_iterations", maxRounds).Note("A Loop needs a limit; the workflow has none.")
	w.Assumed(s.n, "states %s form a cycle; the loop ends after at most %d iterations", stateNames(members), maxRounds)
	w.push(f, &document.Step{Block: loop, Reads: []string{next}, Calls: []*document.Flow{body}, Loop: true, First: runs[s], Rounds: loopBodies(s, members, runs)})
	w.leave(s, members, next, f)
}

// leave continues after a cycle.
func (w *workflow) leave(s *state, members []*state, next string, f *document.Flow) {
	var cases []*document.Block
	sw := &document.Step{Reads: []string{next}, Branch: true}
	for _, to := range w.states {
		leads := slices.ContainsFunc(members, func(m *state) bool { return slices.Contains(m.successors(), to) })
		if !leads || slices.Contains(members, to) {
			continue
		}
		cases = append(cases, w.newCase(next+" == "+jq.Quote(to.name), w.flow(to)))
		sw.Calls = append(sw.Calls, w.flow(to))
	}
	if len(cases) > 0 {
		sw.Block = w.newBlock("Switch", s.name+"_leave").Set("cases", cases)
		w.push(f, sw)
	}
}

// round returns the flow of one iteration, which runs the current state, and the
// flow of each state.
func (w *workflow) round(s *state, members []*state, next string) (body *document.Flow, runs map[*state]*document.Flow) {
	runs = map[*state]*document.Flow{}
	var cases []*document.Block
	sw := &document.Step{Reads: []string{next}, Branch: true}
	for _, m := range members {
		one := w.newFlow(m.name)
		runs[m] = one
		w.state(m, one)
		w.successor(m, next, one)
		cases = append(cases, w.newCase(next+" == "+jq.Quote(m.name), one))
		sw.Calls = append(sw.Calls, one)
	}
	if len(members) == 1 {
		return runs[s], runs
	}
	body = w.newFlow(s.name + "_round")
	sw.Block = w.newBlock("Switch", s.name+"_turn").Set("cases", cases)
	w.push(body, sw)
	return body, runs
}

// loopBodies returns the flows that iterations of a cycle that begins with s can
// run.
func loopBodies(s *state, members []*state, runs map[*state]*document.Flow) []document.LoopBody {
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

// successor sets the name of the next state, "" at the end.
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
