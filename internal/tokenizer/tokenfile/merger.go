//go:build !js

package tokenfile

import "container/heap"

// ranker returns the rank and the token of a merge; the lowest rank is merged first.
type ranker func(left, right int32) (rank float64, id int32, ok bool)

// merger merges adjacent symbols in the order of rank, then position.
type merger struct {
	ids        []int32 // -1 for a symbol that was merged into the one before
	prev, next []int32
	rank       ranker
	queue      candidates
}

// candidate is a possible merge of the symbol at with the next one.
type candidate struct {
	rank        float64
	at          int32
	left, right int32 // the tokens that it merges
	id          int32
}

func newMerger(ids []int32, rank ranker) *merger {
	m := &merger{ids: ids, prev: make([]int32, len(ids)), next: make([]int32, len(ids)), rank: rank}
	for i := range ids {
		m.prev[i], m.next[i] = int32(i-1), int32(i+1)
	}
	for i := range len(ids) - 1 {
		m.offer(int32(i))
	}
	heap.Init(&m.queue)
	return m
}

// offer adds the merge of the symbol at with the next one, if there is one.
func (m *merger) offer(at int32) bool {
	next := m.next[at]
	if int(next) >= len(m.ids) {
		return false
	}
	left, right := m.ids[at], m.ids[next]
	rank, id, ok := m.rank(left, right)
	if ok {
		m.queue = append(m.queue, candidate{rank, at, left, right, id})
	}
	return ok
}

// push offers a merge while the queue is a heap.
func (m *merger) push(at int32) {
	if at >= 0 && m.offer(at) {
		heap.Fix(&m.queue, len(m.queue)-1)
	}
}

// run merges until no merge is left and returns the number of symbols, of count at first.
func (m *merger) run(count int) int {
	for len(m.queue) > 0 {
		c, _ := heap.Pop(&m.queue).(candidate)
		next := m.next[c.at]
		if m.ids[c.at] != c.left || int(next) >= len(m.ids) || m.ids[next] != c.right {
			continue // one of them was merged since
		}
		m.ids[c.at], m.ids[next] = c.id, -1
		m.next[c.at] = m.next[next]
		if after := m.next[c.at]; int(after) < len(m.ids) {
			m.prev[after] = c.at
		}
		count--
		m.push(m.prev[c.at])
		m.push(c.at)
	}
	return count
}

// remaining yields the symbols that are left.
func (m *merger) remaining(yield func(at int) bool) {
	for at := 0; at < len(m.ids); at = int(m.next[at]) {
		if !yield(at) {
			return
		}
	}
}

// candidates is a heap.
type candidates []candidate

func (c candidates) Len() int { return len(c) }
func (c candidates) Less(i, j int) bool {
	return c[i].rank < c[j].rank || c[i].rank == c[j].rank && c[i].at < c[j].at
}
func (c candidates) Swap(i, j int) { c[i], c[j] = c[j], c[i] }

// Push appends a candidate.
func (c *candidates) Push(x any) {
	one, _ := x.(candidate)
	*c = append(*c, one)
}

// Pop removes the last candidate.
func (c *candidates) Pop() any {
	last := len(*c) - 1
	one := (*c)[last]
	*c = (*c)[:last]
	return one
}
