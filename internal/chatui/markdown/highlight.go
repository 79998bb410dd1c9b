package markdown

import (
	"strings"
	"unicode/utf8"
)

// highlighter colors the lines of one code block, in order.
type highlighter struct {
	*syntax
	until string // what ends the comment or text that is open at the end of the line
	style style  // of what is open
}

// line returns the spans of a line.
func (h *highlighter) line(text string) []span {
	var spans []span
	add := func(n int, s style) {
		if last := len(spans) - 1; last >= 0 && spans[last].style == s {
			spans[last].text += text[:n]
		} else if n > 0 {
			spans = append(spans, span{text[:n], s})
		}
		text = text[n:]
	}
	space := true // before the text, or its beginning
	for text != "" {
		n, s := h.next(text, space)
		space = text[n-1] == ' ' || text[n-1] == '\t'
		add(n, s)
	}
	return spans
}

// next returns the length and the style of the token that a text begins with. space is
// whether it is at the beginning of the line or after a space.
func (h *highlighter) next(text string, space bool) (int, style) {
	if h.until != "" {
		return h.rest(text, 0)
	}
	for _, multi := range []struct {
		pairs []string
		style style
	}{{h.blocks, dim}, {h.texts, quoted}} {
		for i := 0; i < len(multi.pairs); i += 2 {
			if strings.HasPrefix(text, multi.pairs[i]) {
				h.until, h.style = multi.pairs[i+1], multi.style
				return h.rest(text, len(multi.pairs[i]))
			}
		}
	}
	for mark := range strings.FieldsSeq(h.comments) {
		if strings.HasPrefix(text, mark) && (space || len(mark) > 1) {
			return len(text), dim
		}
	}
	if strings.IndexByte(h.quotes, text[0]) >= 0 {
		if n := quotedLength(text); n > 0 {
			return n, quoted
		}
	}
	return h.word(text)
}

// rest returns the length of the rest of what is open, which it closes where it ends.
func (h *highlighter) rest(text string, from int) (int, style) {
	if i := strings.Index(text[from:], h.until); i >= 0 {
		from += i + len(h.until)
		h.until = ""
		return from, h.style
	}
	return len(text), h.style
}

// quotedLength returns the length of the text in quotes at the beginning; 0 if it does not end.
func quotedLength(text string) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case text[0]:
			return i + 1
		}
	}
	return 0
}

// stringPrefixes are the letters that languages write before a text in quotes.
const stringPrefixes = "rbfuRBFUL"

// word returns the length and the style of a word, a number or one character.
func (h *highlighter) word(text string) (int, style) {
	n := 0
	for n < len(text) && isWordByte(text[n]) {
		n++
	}
	switch {
	case n == 0:
		_, n = utf8.DecodeRuneInString(text)
		return n, 0
	case text[0] >= '0' && text[0] <= '9':
		for n < len(text) && (isWordByte(text[n]) || text[n] == '.') {
			n++
		}
		return n, number
	case contains(h.keywords, text[:n]) || h.anyCase && contains(h.keywords, strings.ToLower(text[:n])):
		return n, accent
	}
	if n+1 < len(text) && text[n] == '\'' && isWordByte(text[n+1]) && strings.Trim(text[:n], stringPrefixes) != "" {
		n++ // the apostrophe of a word, such as don't
	}
	return n, 0
}

// isWordByte reports whether a byte is part of a word. All characters beyond ASCII are.
func isWordByte(b byte) bool {
	return b == '_' || b >= utf8.RuneSelf || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}
