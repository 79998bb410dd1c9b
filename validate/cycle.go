package validate

import (
	"slices"
	"strings"
)

// edge leads to a node of a graph of entities. The value via describes the reference.
type edge[N comparable, V any] struct {
	to  N
	via V
}

// cycleSearch finds the cycles of a graph by a depth-first search.
type cycleSearch[N comparable, V any] struct {
	edges  func(N) []edge[N, V]     // the edges from a node
	report func(cycle []edge[N, V]) // is called for each cycle; the first and the last edge lead to the same node
	state  map[N]visitState
	path   []edge[N, V]
}

type visitState int

const (
	onPath visitState = iota + 1
	visited
)

// findCycles searches all nodes that can be reached from start.
func findCycles[N comparable, V any](start []N, edges func(N) []edge[N, V], report func(cycle []edge[N, V])) {
	s := cycleSearch[N, V]{edges: edges, report: report, state: map[N]visitState{}}
	for _, n := range start {
		s.visit(edge[N, V]{to: n})
	}
}

func (s *cycleSearch[N, V]) visit(to edge[N, V]) {
	if s.state[to.to] != 0 {
		return
	}
	s.state[to.to] = onPath
	s.path = append(s.path, to)
	for _, e := range s.edges(to.to) {
		if s.state[e.to] != onPath {
			s.visit(e)
			continue
		}
		first := slices.IndexFunc(s.path, func(p edge[N, V]) bool { return p.to == e.to })
		s.report(append(slices.Clone(s.path[first:]), e))
	}
	s.path = s.path[:len(s.path)-1]
	s.state[to.to] = visited
}

// joinIDs returns the ids of the entities in a cycle, for a message.
func joinIDs[N interface {
	comparable
	EntityID() string
}, V any](cycle []edge[N, V]) string {
	ids := make([]string, len(cycle))
	for i, e := range cycle {
		ids[i] = e.to.EntityID()
	}
	return strings.Join(ids, " → ")
}
