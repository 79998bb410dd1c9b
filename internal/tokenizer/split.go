package tokenizer

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
