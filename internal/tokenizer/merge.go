package tokenizer

import "sync"

// Byte pair encoding of one piece: it begins as single bytes. Of all pairs of adjacent
// parts whose bytes together are a token, the one with the lowest rank is merged, the
// leftmost of equals, until there is no such pair.

// maxScan is the length of a piece, in bytes, up to which the best pair is found by a
// scan of all pairs. For longer ones a heap is faster; the break-even is between 32
// and 48 bytes for Chinese and Japanese text.
const maxScan = 40

// count returns the number of tokens of a piece, which must not be empty. Without a
// vocabulary it is an estimate.
func (v *vocabulary) count(piece string) int {
	if v == nil {
		return estimate(piece)
	}
	if len(piece) == 1 || v.rank(piece) != none {
		return 1
	}
	if len(piece) <= maxScan {
		return v.mergeShort(piece)
	}
	m := mergers.Get().(*bpeMerger)
	defer m.release()
	return m.count(v, piece, chunking{length: chunkLength, overlap: chunkOverlap})
}

// mergeShort merges a piece of at most maxScan bytes and returns the number of parts.
func (v *vocabulary) mergeShort(piece string) int {
	var start [maxScan + 1]uint8 // start of each part, then the end of the piece
	var rank [maxScan]uint32     // of the pair of each part and the next one
	parts := len(piece)
	for i := range parts {
		start[i] = uint8(i)
		if i+1 < parts {
			rank[i] = v.pair(piece[i], piece[i+1])
		}
	}
	start[parts] = uint8(parts)
	for parts > 1 {
		best, at := none, 0
		for i, r := range rank[:parts-1] {
			if r < best {
				best, at = r, i
			}
		}
		if best == none {
			break
		}
		copy(start[at+1:parts], start[at+2:parts+1])
		parts--
		if at+1 < parts {
			copy(rank[at+1:parts-1], rank[at+2:parts])
			rank[at] = v.rank(piece[start[at]:start[at+2]])
		}
		if at > 0 {
			rank[at-1] = v.rank(piece[start[at-1]:start[at+1]])
		}
	}
	return parts
}

// A bpeMerger holds the buffers for merging a long piece. A part is identified by the
// offset of its first byte. The heap is not container/heap, whose Push allocates:
// TestCount_NoAllocations forbids that.
type bpeMerger struct {
	next []uint32 // by part: the next part, or the length of the piece
	prev []uint32 // by part: the previous part
	rank []uint32 // by part: the rank of its pair with the next part
	ends []uint32 // ends of the tokens of the previous chunk

	// The queue of pairs. Pairs of one rank that are added from left to right, as
	// most are, form a run, and only the first pair of each run is in the heap.
	heap   []run
	pairs  []pair          // empty if the piece is too short for runs
	recent [numRecent]tail // newest runs of some ranks, by the lowest bits of the rank
}

// A run is a list of pairs of one rank, ordered by part.
type run struct {
	key   uint64 // rank<<32 | part of the first pair
	first uint32 // index in pairs of the first pair, 0 for a run of one pair
}

// A pair is an element of a run. After it leaves the queue its part is none.
type pair struct {
	part  uint32 // the first of the two; stale if its rank has changed
	after uint32 // index in pairs of the next one of the run, 0 for none
}

// A tail is the end of a run.
type tail struct{ rank, last uint32 }

const (
	numRecent = 1 << 10
	withRuns  = 1 << 9 // bytes of a piece from which on runs pay off
)

// mergers reuses buffers.
var mergers = sync.Pool{New: func() any { return new(bpeMerger) }}

// maxPooled is the length of a piece, in bytes, up to which its buffers are reused. They
// need 30 to 70 bytes for each byte of the piece, so about 1 MiB for each core. Only
// pieces that cannot be merged in chunks are longer.
const maxPooled = chunkLength

// release returns the buffers to the pool.
func (m *bpeMerger) release() {
	if cap(m.next) <= maxPooled {
		mergers.Put(m)
	}
}

// merge merges a piece and returns the number of parts.
func (m *bpeMerger) merge(v *vocabulary, piece string) int {
	m.begin(v, piece)
	end := uint32(len(piece))
	parts := len(piece)
	for len(m.heap) > 0 {
		at, rank := uint32(m.heap[0].key), uint32(m.heap[0].key>>32)
		m.advance(rank)
		if m.rank[at] != rank {
			continue // stale
		}
		removed := m.next[at]
		after := m.next[removed]
		m.next[at] = after
		m.rank[removed] = none
		parts--
		if at > 0 {
			previous := m.prev[at]
			if m.setPair(previous, v.rank(piece[previous:after])) {
				m.siftUp()
			}
		}
		if after < end {
			m.prev[after] = at
			if m.setPair(at, v.rank(piece[at:m.next[after]])) {
				m.siftUp()
			}
		} else {
			m.rank[at] = none
		}
	}
	return parts
}

// begin makes every byte a part and queues all pairs.
func (m *bpeMerger) begin(v *vocabulary, piece string) {
	n := len(piece)
	if cap(m.next) < n {
		*m = bpeMerger{next: make([]uint32, n), prev: make([]uint32, n), rank: make([]uint32, n), ends: m.ends}
	}
	m.next, m.prev, m.rank = m.next[:n], m.prev[:n], m.rank[:n]
	m.heap, m.pairs = m.heap[:0], m.pairs[:0]
	if n >= withRuns {
		m.pairs = append(m.pairs, pair{part: none}) // index 0 means none
		clear(m.recent[:])
	}
	for i := range n {
		m.next[i], m.prev[i], m.rank[i] = uint32(i+1), uint32(i-1), none
		if i+1 < n {
			m.setPair(uint32(i), v.pair(piece[i], piece[i+1]))
		}
	}
	for i := len(m.heap)/2 - 1; i >= 0; i-- {
		m.siftDown(i)
	}
}

// setPair records the rank of the pair that begins at a part, and queues it: at the
// end of the newest run of its rank, or as a new run at the end of the heap. It reports
// whether it added a run.
func (m *bpeMerger) setPair(part, rank uint32) bool {
	m.rank[part] = rank
	if rank == none {
		return false
	}
	index := uint32(len(m.pairs))
	if index > 0 {
		m.pairs = append(m.pairs, pair{part: part})
		t := &m.recent[rank%numRecent]
		last := *t
		*t = tail{rank: rank, last: index}
		if last.rank == rank && m.pairs[last.last].part < part { // false for index 0
			m.pairs[last.last].after = index
			return false
		}
	}
	m.heap = append(m.heap, run{key: uint64(rank)<<32 | uint64(part), first: index})
	return true
}

// advance removes the first pair from the queue, and stale pairs after it in its run.
func (m *bpeMerger) advance(rank uint32) {
	for index := m.heap[0].first; index != 0; {
		p := &m.pairs[index]
		p.part, index = none, p.after
		if part := m.pairs[index].part; index != 0 && m.rank[part] == rank {
			m.heap[0] = run{key: uint64(rank)<<32 | uint64(part), first: index}
			m.siftDown(0)
			return
		}
	}
	m.pop()
}

// siftUp restores the heap order after a run was appended.
func (m *bpeMerger) siftUp() {
	i := len(m.heap) - 1
	r := m.heap[i]
	for i > 0 {
		parent := (i - 1) / 2
		if m.heap[parent].key <= r.key {
			break
		}
		m.heap[i] = m.heap[parent]
		i = parent
	}
	m.heap[i] = r
}

// pop removes the first run.
func (m *bpeMerger) pop() {
	last := len(m.heap) - 1
	m.heap[0] = m.heap[last]
	m.heap = m.heap[:last]
	if last > 0 {
		m.siftDown(0)
	}
}

// siftDown restores the heap order below i.
func (m *bpeMerger) siftDown(i int) {
	heap, r := m.heap, m.heap[i]
	for {
		child := 2*i + 1
		if child >= len(heap) {
			break
		}
		if child+1 < len(heap) && heap[child+1].key < heap[child].key {
			child++
		}
		if r.key <= heap[child].key {
			break
		}
		heap[i] = heap[child]
		i = child
	}
	heap[i] = r
}
