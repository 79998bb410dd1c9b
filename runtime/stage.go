package runtime

import (
	"slices"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec"
)

// stage is a sequence of steps that one goroutine takes a row through before it
// takes the next one: there is no channel between them.
type stage struct {
	nodes    []*node
	workers  int          // rows at once
	sessions bool         // the rows of a session are processed one after the other, in order
	scope    memory.Scope // those of a session, of a user, or all
	isBatch  bool         // it is one batch step: its results belong to no single row
	segment  int          // the number of batch steps up to here, itself included
}

// newStages groups the steps of a flow into stages.
//
// A batch step is a stage, and so is Aggregate, unless it is between steps of one
// conversation. Other steps are joined as far as possible. A new stage begins
// before a step with workers if the stage so far makes many rows of one, because
// workers take whole input rows. From the first to the last step that uses a
// memory, rows of a session keep their order through all steps, so that a
// conversation does not depend on the number of workers: these steps always stay
// in one stage.
func newStages(nodes []*node) []stage {
	first, last := memorySpan(nodes)
	var stages []stage
	var open *stage
	makesMany, segment := false, 0
	for i, n := range nodes {
		inSpan := i > first && i <= last && first >= 0
		switch {
		case n.batch != nil, n.closer != nil && !inSpan:
			segment++
			stages = append(stages, stage{nodes: []*node{n}, workers: 1, isBatch: true, segment: segment})
			open = nil
			continue
		case open == nil, makesMany && !inSpan && n.limit > 1, i == first && makesMany && maxLimit(nodes[first:last+1]) > 1:
			stages = append(stages, stage{workers: 1, segment: segment})
			open, makesMany = &stages[len(stages)-1], false
		}
		open.nodes = append(open.nodes, n)
		open.workers = max(open.workers, n.limit)
		if i >= first && i <= last && first >= 0 {
			open.sessions = true
			open.scope = memory.Scope(spec.Scope(open.scope).Widest(n.plan.MemoryScope()))
		}
		makesMany = makesMany || n.plan.Rows == spec.RowsMany
	}
	for _, s := range stages {
		_, lastTurn := memorySpan(s.nodes)
		for i, n := range s.nodes {
			n.sessions, n.scope = s.sessions && i <= lastTurn, s.scope
			if n.limit > 0 && n.limit < s.workers {
				n.permits = make(chan struct{}, n.limit)
			}
		}
	}
	return stages
}

// memorySpan returns the indexes of the first and the last step that uses a
// memory; -1, -1 if none does.
func memorySpan(nodes []*node) (first, last int) {
	first, last = -1, -1
	for i, n := range nodes {
		if n.plan.UsesMemory() {
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	return first, last
}

// maxLimit returns the largest number of rows at once of some steps.
func maxLimit(nodes []*node) int {
	limit := 1
	for _, n := range nodes {
		limit = max(limit, n.limit)
	}
	return limit
}

func isBatch(s stage) bool { return s.isBatch }

// headOf returns the stages before the first batch step. If later stages use a memory of theirs there are
// none: turns after the step are between turns of later rows.
func headOf(stages []stage) []stage {
	first := slices.IndexFunc(stages, isBatch)
	if first < 0 {
		return stages
	}
	before := memoriesOf(stages[:first])
	for m := range memoriesOf(stages[first:]) {
		if before[m] {
			return nil
		}
	}
	return stages[:first]
}

// memoriesOf returns the memories that stages use, also in the flows that they run.
func memoriesOf(stages []stage) map[*spec.Memory]bool {
	used := map[*spec.Memory]bool{}
	for _, s := range stages {
		for _, n := range s.nodes {
			for p := range n.plan.All() {
				for _, m := range p.Memories() {
					used[m] = true
				}
			}
		}
	}
	return used
}
