package tokenizer

import "slices"

// A long piece is merged chunk by chunk, in memory that does not grow with it, and
// yet exactly. What makes that right: merges are taken in the order of rank and
// place, so parts within a span of the text that no merge crosses are merged as if
// the span stood alone. Hence
//
//   - neighbours among the tokens of a text are also the tokens of the two of them
//     alone, and
//   - tokens of which all neighbours are so are the tokens of the whole: the first
//     merge across a border would have been made in those two alone as well.
//
// So where two chunks overlap and have one token in common, at the same place, the
// tokens of the first chunk up to that one and those of the second chunk after it are
// the tokens of both together. Further text changes only the last few tokens of a
// chunk, so they nearly always have one.

// chunking is how a long piece is cut.
type chunking struct {
	length  int // bytes of a chunk
	overlap int // bytes of the end of a chunk that the next one begins with, at least
}

const (
	chunkLength  = 1 << 14 // its working memory fits a processor's own cache
	chunkOverlap = 1 << 9
)

// count counts the tokens of a piece.
func (m *bpeMerger) count(v *vocabulary, piece string, c chunking) int {
	if len(piece) <= c.length {
		return m.merge(v, piece)
	}
	tokens := 0 // of those that are certain
	start := 0  // where the chunk begins
	sure := 0   // in the chunk, where the first token begins that is not counted yet
	m.merge(v, piece[:c.length])
	for start+c.length < len(piece) {
		m.note(sure, c.length)
		again, counted, ok := m.join(v, piece[start:], sure, c)
		if !ok {
			return m.merge(v, piece)
		}
		start, sure, tokens = start+again.start, again.sure, tokens+counted
	}
	m.note(sure, len(piece)-start)
	return tokens + len(m.ends)
}

// note writes down where the tokens of a chunk end, from the one on that begins at from.
func (m *bpeMerger) note(from, length int) {
	m.ends = m.ends[:0]
	for at := from; at < length; at = int(m.next[at]) {
		m.ends = append(m.ends, m.next[at])
	}
}

// chunkBoundary is where a chunk begins, in the text of the one before, and where in the
// chunk its first token begins that is not counted yet.
type chunkBoundary struct{ start, sure int }

// join merges the next chunk of a text whose first chunk has been noted from sure
// on, and counts the tokens of the first one that are certain now. ok is false
// where the two have no token in common.
func (m *bpeMerger) join(v *vocabulary, text string, sure int, c chunking) (next chunkBoundary, counted int, ok bool) {
	for overlap := c.overlap; overlap < c.length; overlap *= 4 {
		known, _ := slices.BinarySearch(m.ends, uint32(c.length-overlap+1)) // tokens before the overlap
		begin := sure
		if known > 0 {
			begin = int(m.ends[known-1])
		}
		if begin == 0 {
			break // the chunk would be the same again
		}
		length := min(c.length, len(text)-begin)
		m.merge(v, text[begin:begin+length])
		if n, end := m.common(known, begin, length); n > 0 {
			return chunkBoundary{start: begin, sure: end}, n, true
		}
	}
	return chunkBoundary{}, 0, false
}

// common finds a token of the chunk, which begins at begin in the one before, that is
// also a token of that, one of those after the first known ones. It answers how many
// tokens the chunk before has up to and with it, 0 for none, and where it ends in the chunk.
func (m *bpeMerger) common(known, begin, length int) (tokens, end int) {
	theirs := begin // where the token number known begins
	for at := 0; known < len(m.ends) && at < length; {
		end, theirEnd := int(m.next[at]), int(m.ends[known])
		switch {
		case theirEnd < begin+end:
			theirs = theirEnd
			known++
		case theirEnd > begin+end:
			at = end
		case theirs == begin+at:
			return known + 1, end
		default:
			at, theirs = end, theirEnd
			known++
		}
	}
	return 0, 0
}
