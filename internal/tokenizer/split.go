package tokenizer

import (
	"slices"
	"sync"
	"unicode"
	"unicode/utf8"
)

// The encodings split a text into pieces by a regular expression, and merge bytes only
// within a piece. The functions of this file return the end of the piece that begins at
// text[i:], i < len(text), as a backtracking matcher that takes the first matching
// alternative would. The patterns are those of OpenAI's tiktoken. Each character is
// read a bounded number of times for any text.

// A splitter returns the end of the piece that begins at text[i:]. The text must be
// valid UTF-8.
type splitter func(c *classes, text string, i int) int

// splitO200k follows o200k_base:
//
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	\p{N}{1,3}
//	 ?[^\s\p{L}\p{N}]+[\r\n/]*
//	\s*[\r\n]+
//	\s+(?!\S)
//	\s+
func splitO200k(c *classes, text string, i int) int {
	first, size := c.at(text, i)
	if first&(number|newline) == 0 {
		start := i
		if first&letter == 0 {
			start += size
		}
		if end := casedWord(c, text, start, first); end > 0 {
			return end + contraction(text[end:], 0x20)
		}
	}
	switch {
	case first&number != 0:
		return numbers(c, text, i)
	case text[i] == ' ' && otherAt(c, text, i+1):
		i++
	case first&blank != 0:
		return blanksAndLines(c, text, i)
	}
	i = c.runOthers(text, i)
	for i < len(text) && (text[i] == '\r' || text[i] == '\n' || text[i] == '/') {
		i++
	}
	return i
}

// casedWord matches the letters of the first two alternatives of o200k_base,
// from start on, and returns their end, or 0 where they do not match. first is
// the class of the piece's first character: a letter at start, or another one
// before it.
//
// The run of [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}] is greedy. If lower
// case follows, that is taken too. Otherwise the matcher backtracks to the last
// character of the run that is in both sets. If there is none, the first alternative
// drops the character before start, which matches by itself if it is a mark. Only
// then does the second alternative, all upper case, apply.
func casedWord(c *classes, text string, start int, first class) int {
	end, both := start, 0
	for end < len(text) {
		is, size := c.at(text, end)
		if is&(upper|mark) == 0 {
			if is&lower != 0 {
				return c.run(text, end+size, lower|mark)
			}
			break
		}
		end += size
		if is != upper {
			both = end
		}
	}
	switch {
	case both > 0:
		return both
	case first&mark != 0:
		return start
	case end > start:
		return end
	}
	return 0
}

// splitCl100k follows cl100k_base:
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)
//	[^\r\n\p{L}\p{N}]?\p{L}+
//	\p{N}{1,3}
//	 ?[^\s\p{L}\p{N}]+[\r\n]*
//	\s*[\r\n]+
//	\s+(?!\S)
//	\s+
func splitCl100k(c *classes, text string, i int) int {
	if n := contraction(text[i:], 0x20); n > 0 {
		return i + n
	}
	first, size := c.at(text, i)
	switch {
	case first&letter != 0:
		return c.run(text, i+size, letter)
	case first&number != 0:
		return numbers(c, text, i)
	case first&newline == 0 && letterAt(c, text, i+size):
		return c.run(text, i+size, letter)
	case text[i] == ' ' && otherAt(c, text, i+1):
		i++
	case first&blank != 0:
		return blanksAndLines(c, text, i)
	}
	i = c.runOthers(text, i)
	for i < len(text) && (text[i] == '\r' || text[i] == '\n') {
		i++
	}
	return i
}

// splitGPT3 follows p50k_base, p50k_edit and r50k_base:
//
//	's|'t|'re|'ve|'m|'ll|'d
//	 ?\p{L}+
//	 ?\p{N}+
//	 ?[^\s\p{L}\p{N}]+
//	\s+(?!\S)
//	\s+
func splitGPT3(c *classes, text string, i int) int {
	if n := contraction(text[i:], 0); n > 0 {
		return i + n
	}
	first, _ := c.at(text, i)
	start := i
	if text[i] == ' ' && i+1 < len(text) {
		start++
		first, _ = c.at(text, start)
	}
	switch {
	case first&letter != 0:
		return c.run(text, start, letter)
	case first&number != 0:
		return c.run(text, start, number)
	case first&blank == 0:
		return c.runOthers(text, start)
	}
	return blanks(text, i, c.run(text, i, blank))
}

// numbers matches \p{N}{1,3}.
func numbers(c *classes, text string, i int) int {
	for n := 0; n < 3 && i < len(text); n++ {
		is, size := c.at(text, i)
		if is&number == 0 {
			break
		}
		i += size
	}
	return i
}

// blanksAndLines matches \s*[\r\n]+, \s+(?!\S) or \s+ on a blank at text[i:]:
// up to the last line end of the run if it has one.
func blanksAndLines(c *classes, text string, i int) int {
	end := c.run(text, i, blank)
	for j := end; j > i; j-- {
		if b := text[j-1]; b == '\n' || b == '\r' {
			return j
		}
	}
	return blanks(text, i, end)
}

// blanks matches \s+(?!\S) or \s+ on the run of blanks text[i:end]: all of it at
// the end of the text, all but the last one before another character, so that
// the last one can lead the next piece.
func blanks(text string, i, end int) int {
	if end == len(text) {
		return end
	}
	last := end - 1
	for text[last]&0xC0 == 0x80 { // a later byte of a character
		last--
	}
	if last > i {
		return last
	}
	return end
}

// contraction returns the length of 's 't 're 've 'm 'll 'd at the beginning of text,
// or 0. caseBit is 0x20, the bit between 'S' and 's', to accept upper case too, and 0
// otherwise. It maps ASCII only, as tiktoken-go does; OpenAI's implementation also
// maps U+017F (long s) to s.
func contraction(text string, caseBit byte) int {
	if len(text) < 2 || text[0] != '\'' {
		return 0
	}
	var second byte
	switch text[1] | caseBit {
	case 's', 't', 'm', 'd':
		return 2
	case 'r', 'v':
		second = 'e'
	case 'l':
		second = 'l'
	default:
		return 0
	}
	if len(text) > 2 && text[2]|caseBit == second {
		return 3
	}
	return 0
}

// letterAt reports whether a letter begins at text[i:].
func letterAt(c *classes, text string, i int) bool {
	if i >= len(text) {
		return false
	}
	is, _ := c.at(text, i)
	return is&letter != 0
}

// otherAt reports whether one of [^\s\p{L}\p{N}] begins at text[i:].
func otherAt(c *classes, text string, i int) bool {
	if i >= len(text) {
		return false
	}
	is, _ := c.at(text, i)
	return is&word == 0
}

// A class is a set of the character sets of the splitting patterns, 0 for other
// characters such as punctuation, symbols and control characters.
type class uint8

const (
	upper   class = 1 << iota // \p{Lu} \p{Lt}; \p{Lm} and \p{Lo} are upper and lower
	lower                     // \p{Ll}
	mark                      // \p{M}
	number                    // \p{N}
	blank                     // \s, which is White_Space
	newline                   // \r and \n, which are blank as well

	letter = upper | lower           // \p{L}
	word   = letter | number | blank // the complement of [^\s\p{L}\p{N}]
)

const (
	pageSize = 256 // characters per page
	lastPage = unicode.MaxRune / pageSize
)

// classes maps characters to classes in two stages, because most pages are equal.
type classes struct {
	ascii [utf8.RuneSelf]class
	page  [lastPage + 1]uint16 // index into pages, by character / pageSize
	pages [][pageSize]class
}

// unicodeClasses builds the table once.
var unicodeClasses = sync.OnceValue(newClasses)

func newClasses() *classes {
	all := make([]class, unicode.MaxRune+1)
	for _, set := range []struct {
		table *unicode.RangeTable
		class class
	}{
		{unicode.Lu, upper},
		{unicode.Lt, upper},
		{unicode.Ll, lower},
		{unicode.Lm, letter},
		{unicode.Lo, letter},
		{unicode.M, mark},
		{unicode.N, number},
		{unicode.White_Space, blank},
	} {
		assign(all, set.table, set.class)
	}
	all['\r'] |= newline
	all['\n'] |= newline

	c := &classes{}
	copy(c.ascii[:], all)
	seen := map[[pageSize]class]uint16{}
	for i := range c.page {
		page := [pageSize]class(all[i*pageSize:])
		at, ok := seen[page]
		if !ok {
			at = uint16(len(c.pages))
			seen[page] = at
			c.pages = append(c.pages, page)
		}
		c.page[i] = at
	}
	return c
}

// assign sets the class of all characters of a Unicode table.
func assign(all []class, table *unicode.RangeTable, to class) {
	for _, r := range table.R16 {
		for char := uint32(r.Lo); char <= uint32(r.Hi); char += uint32(r.Stride) {
			all[char] = to
		}
	}
	for _, r := range table.R32 {
		for char := r.Lo; char <= r.Hi; char += r.Stride {
			all[char] = to
		}
	}
}

// at returns the class of the character at text[i:] and its length in bytes.
func (c *classes) at(text string, i int) (class, int) {
	if b := text[i]; b < utf8.RuneSelf {
		return c.ascii[b], 1
	}
	return c.wide(text[i:])
}

// wide is at for a character that is not ASCII.
func (c *classes) wide(text string) (class, int) {
	char, size := utf8.DecodeRuneInString(text)
	return c.pages[c.page[char/pageSize]][char%pageSize], size
}

// run returns the end of the run of characters at text[i:] that have any bit
// of the set.
func (c *classes) run(text string, i int, set class) int {
	for i < len(text) {
		is, size := c.at(text, i)
		if is&set == 0 {
			break
		}
		i += size
	}
	return i
}

// runOthers returns the end of the run of [^\s\p{L}\p{N}] at text[i:].
func (c *classes) runOthers(text string, i int) int {
	for i < len(text) {
		is, size := c.at(text, i)
		if is&word != 0 {
			break
		}
		i += size
	}
	return i
}

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
