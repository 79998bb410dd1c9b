package token

import "sync"

// Byte pair encoding of one piece: it begins as single bytes; of all pairs of
// neighbours whose bytes together are a token, the one of the lowest rank is
// merged, the leftmost of equals, until no such pair is left.

// scanned is the length of a piece, in bytes, up to which the best pair is
// sought by a scan of all pairs. Beyond it a heap is faster, and the time is
// n log n. The two meet between 32 and 48 bytes on Chinese and Japanese text.
const scanned = 40

// count returns the number of tokens of a piece, which must not be empty.
func (v *vocabulary) count(piece string) int {
	if len(piece) == 1 || v.rank(piece) != none {
		return 1
	}
	if len(piece) <= scanned {
		return v.mergeShort(piece)
	}
	m := mergers.Get().(*merger)
	defer m.release()
	return m.merge(v, piece)
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
type merger struct {
	next  []uint32 // of a part, the one after it; the length of the piece at the end
	prev  []uint32 // of a part, the one before it
	rank  []uint32 // of a part, the rank of its pair with the next part
	queue []uint64 // heap of pairs, rank<<32 | part; one whose rank has changed since is stale
}

// mergers keeps working memory between calls.
var mergers = sync.Pool{New: func() any { return new(merger) }}

// kept is the longest piece, in bytes, whose working memory is kept: 20 to 30
// bytes for each byte of the piece, so less than 2 MiB for each processor.
const kept = 1 << 16

// release gives the memory back.
func (m *merger) release() {
	if cap(m.next) <= kept {
		mergers.Put(m)
	}
}

// merge merges a piece and counts what is left.
func (m *merger) merge(v *vocabulary, piece string) int {
	m.begin(v, piece)
	end := uint32(len(piece))
	parts := len(piece)
	for len(m.queue) > 0 {
		pair := m.queue[0]
		at := uint32(pair)
		if m.rank[at] != uint32(pair>>32) {
			m.pop()
			continue
		}
		gone := m.next[at]
		after := m.next[gone]
		m.next[at] = after
		m.rank[gone] = none
		parts--
		m.pop()
		if after < end {
			m.prev[after] = at
			m.setPair(at, v.rank(piece[at:m.next[after]]))
		} else {
			m.rank[at] = none
		}
		if at > 0 {
			before := m.prev[at]
			m.setPair(before, v.rank(piece[before:after]))
		}
	}
	return parts
}

// begin makes every byte a part and queues all pairs.
func (m *merger) begin(v *vocabulary, piece string) {
	n := len(piece)
	if cap(m.next) < n {
		*m = merger{next: make([]uint32, n), prev: make([]uint32, n), rank: make([]uint32, n), queue: make([]uint64, 0, n)}
	}
	m.next, m.prev, m.rank, m.queue = m.next[:n], m.prev[:n], m.rank[:n], m.queue[:0]
	for i := range n {
		m.next[i], m.prev[i], m.rank[i] = uint32(i+1), uint32(i-1), none
		if i+1 < n {
			m.rank[i] = v.pair(piece[i], piece[i+1])
		}
		if m.rank[i] != none {
			m.queue = append(m.queue, uint64(m.rank[i])<<32|uint64(i))
		}
	}
	for i := len(m.queue)/2 - 1; i >= 0; i-- {
		m.sink(i)
	}
}

// setPair records the rank of the pair that begins at a part.
func (m *merger) setPair(part, rank uint32) {
	m.rank[part] = rank
	if rank == none {
		return
	}
	m.queue = append(m.queue, uint64(rank)<<32|uint64(part))
	for i := len(m.queue) - 1; i > 0; {
		parent := (i - 1) / 2
		if m.queue[parent] <= m.queue[i] {
			break
		}
		m.queue[parent], m.queue[i] = m.queue[i], m.queue[parent]
		i = parent
	}
}

// pop removes the first pair of the queue.
func (m *merger) pop() {
	last := len(m.queue) - 1
	m.queue[0] = m.queue[last]
	m.queue = m.queue[:last]
	m.sink(0)
}

// sink restores the order of the heap below i.
func (m *merger) sink(i int) {
	for {
		child := 2*i + 1
		if child >= len(m.queue) {
			return
		}
		if child+1 < len(m.queue) && m.queue[child+1] < m.queue[child] {
			child++
		}
		if m.queue[i] <= m.queue[child] {
			return
		}
		m.queue[i], m.queue[child] = m.queue[child], m.queue[i]
		i = child
	}
}
