package tokenizer

import "sync"

// Byte pair encoding of one piece: it begins as single bytes; of all pairs of
// neighbours whose bytes together are a token, the one of the lowest rank is
// merged, the leftmost of equals, until no such pair is left.

// scanned is the length of a piece, in bytes, up to which the best pair is
// sought by a scan of all pairs. Beyond it a heap is faster. The two meet between 32 and 48 bytes on Chinese and Japanese text.
const scanned = 40

// count returns the number of tokens of a piece, which must not be empty.
func (v *vocabulary) count(piece string) int {
	if len(piece) == 1 || v.rank(piece) != none {
		return 1
	}
	if len(piece) <= scanned {
		return v.mergeShort(piece)
	}
	m := mergers.Get().(*bpeMerger)
	defer m.release()
	return m.count(v, piece, chunking{length: chunkLength, overlap: chunkOverlap})
}

// mergeShort merges a piece of at most scanned bytes and counts what is left.
func (v *vocabulary) mergeShort(piece string) int {
	var start [scanned + 1]uint8 // where each part begins, then the end of the piece
	var rank [scanned]uint32     // of the pair of each part and the next one
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

// A merger is the working memory for a long piece. Parts are named by the
// position of their first byte.
type bpeMerger struct {
	next []uint32 // of a part, the one after it; the length of the piece at the end
	prev []uint32 // of a part, the one before it
	rank []uint32 // of a part, the rank of its pair with the next part
	ends []uint32 // of the tokens of the chunk before, where each ends

	// The queue of pairs. Pairs of one rank that come from left to right, as they
	// mostly do, are one run, and only the first pair of each run is in the heap.
	heap   []run
	pairs  []pair          // empty for a piece that is too short for runs
	recent [numRecent]tail // of some ranks, the newest run, at the rank's lowest bits
}

// A run is some pairs of one rank, by rising part.
type run struct {
	key   uint64 // rank<<32 | part of the first pair
	first uint32 // that pair's place in pairs, 0 for a run that is this pair and no more
}

// A pair is one of a run. Once it has left the queue, its part is none.
type pair struct {
	part  uint32 // the first of the two; one whose rank is another by now is stale
	after uint32 // the place in pairs of the next one of the run, 0 for none
}

// A tail is the end of a run.
type tail struct{ rank, last uint32 }

const (
	numRecent = 1 << 10
	withRuns  = 1 << 9 // bytes of a piece from which on runs are worth it
)

// mergers keeps working memory between calls.
var mergers = sync.Pool{New: func() any { return new(bpeMerger) }}

// kept is how long a piece may be, in bytes, for its working memory to be kept: 30 to
// 70 bytes for each byte of the piece, so about 1 MiB for each processor. Only a
// piece that chunks do not do for is longer.
const kept = chunkLength

// release gives the memory back.
func (m *bpeMerger) release() {
	if cap(m.next) <= kept {
		mergers.Put(m)
	}
}

// merge merges a piece and counts what is left.
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
		gone := m.next[at]
		after := m.next[gone]
		m.next[at] = after
		m.rank[gone] = none
		parts--
		if at > 0 {
			before := m.prev[at]
			if m.setPair(before, v.rank(piece[before:after])) {
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
		m.pairs = append(m.pairs, pair{part: none}) // the place 0 is nobody's
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
// end of the newest run of its rank, or as a new one, behind the heap. It tells
// whether that is so.
func (m *bpeMerger) setPair(part, rank uint32) bool {
	m.rank[part] = rank
	if rank == none {
		return false
	}
	place := uint32(len(m.pairs))
	if place > 0 {
		m.pairs = append(m.pairs, pair{part: part})
		t := &m.recent[rank%numRecent]
		last := *t
		*t = tail{rank: rank, last: place}
		if last.rank == rank && m.pairs[last.last].part < part { // of place 0 it never is
			m.pairs[last.last].after = place
			return false
		}
	}
	m.heap = append(m.heap, run{key: uint64(rank)<<32 | uint64(part), first: place})
	return true
}

// advance takes the first pair out of the queue, and those of its run that are stale.
func (m *bpeMerger) advance(rank uint32) {
	for place := m.heap[0].first; place != 0; {
		p := &m.pairs[place]
		p.part, place = none, p.after
		if part := m.pairs[place].part; place != 0 && m.rank[part] == rank {
			m.heap[0] = run{key: uint64(rank)<<32 | uint64(part), first: place}
			m.siftDown(0)
			return
		}
	}
	m.pop()
}

// siftUp restores the order of the heap once a run was put behind it.
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

// siftDown restores the order of the heap below i.
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
