package tokenizer

import "slices"

// A long piece is merged chunk by chunk, with constant memory, and yet exactly. Proof:
// merges are made in the order of rank and position, so the parts of a span that no
// merge crosses are merged as if the span were the whole text. Hence
//
//   - two adjacent tokens of a text are also the tokens of their concatenation, and
//   - a sequence in which this holds for all adjacent tokens is the tokens of the whole
//     text: the first merge across a border would also be made in those two alone.
//
// So if two overlapping chunks have one token in common, at the same position, the
// tokens of the first chunk up to that one and those of the second chunk after it are
// the tokens of both together. More text changes only the last few tokens of a chunk,
// so they nearly always have one in common.

// chunking holds the sizes of chunks.
type chunking struct {
	length  int // of a chunk, in bytes
	overlap int // minimum bytes that two chunks share
}

const (
	chunkLength  = 1 << 14 // its buffers fit the cache of a core
	chunkOverlap = 1 << 9
)

// count returns the number of tokens of a piece.
func (m *bpeMerger) count(v *vocabulary, piece string, c chunking) int {
	if len(piece) <= c.length {
		return m.merge(v, piece)
	}
	tokens := 0 // final ones
	start := 0  // of the chunk
	final := 0  // offset in the chunk of the first token that is not counted yet
	m.merge(v, piece[:c.length])
	for start+c.length < len(piece) {
		m.recordEnds(final, c.length)
		boundary, counted, ok := m.join(v, piece[start:], final, c)
		if !ok {
			return m.merge(v, piece)
		}
		start, final, tokens = start+boundary.start, boundary.final, tokens+counted
	}
	m.recordEnds(final, len(piece)-start)
	return tokens + len(m.ends)
}

// recordEnds records where the tokens of a chunk end, beginning with that at from.
func (m *bpeMerger) recordEnds(from, length int) {
	m.ends = m.ends[:0]
	for at := from; at < length; at = int(m.next[at]) {
		m.ends = append(m.ends, m.next[at])
	}
}

// chunkBoundary is the start of a chunk, relative to the previous one, and the offset in
// the chunk of its first uncounted token.
type chunkBoundary struct{ start, final int }

// join merges the next chunk of a text, and counts the tokens of the first one that
// are now final. ok is false if the two have no token in common.
func (m *bpeMerger) join(v *vocabulary, text string, final int, c chunking) (next chunkBoundary, counted int, ok bool) {
	for overlap := c.overlap; overlap < c.length; overlap *= 4 {
		known, _ := slices.BinarySearch(m.ends, uint32(c.length-overlap+1)) // tokens before the overlap
		begin := final
		if known > 0 {
			begin = int(m.ends[known-1])
		}
		if begin == 0 {
			break // the chunk would be the same
		}
		length := min(c.length, len(text)-begin)
		m.merge(v, text[begin:begin+length])
		if n, end := m.common(known, begin, length); n > 0 {
			return chunkBoundary{start: begin, final: end}, n, true
		}
	}
	return chunkBoundary{}, 0, false
}

// common finds a token that the chunk, which starts at begin in the previous one, has
// in common with it, after the first known tokens. It returns the number of tokens of
// the previous chunk up to and including it, 0 for none, and its end in the chunk.
func (m *bpeMerger) common(known, begin, length int) (tokens, end int) {
	prevStart := begin // start of the token with the index known
	for at := 0; known < len(m.ends) && at < length; {
		end, prevEnd := int(m.next[at]), int(m.ends[known])
		switch {
		case prevEnd < begin+end:
			prevStart = prevEnd
			known++
		case prevEnd > begin+end:
			at = end
		case prevStart == begin+at:
			return known + 1, end
		default:
			at, prevStart = end, prevEnd
			known++
		}
	}
	return 0, 0
}
