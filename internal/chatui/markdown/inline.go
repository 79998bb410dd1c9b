package markdown

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// style is how a text looks.
type style uint16

const (
	bold style = 1 << iota
	dim
	italic
	underline
	strike
	code
	accent
	quoted // a text in a program
	number // in a program
)

// sequences are the parameters of the styles, in the order of their bits.
var sequences = []string{"1", "2", "3", "4", "9", "36", "35", "32", "33"}

// open returns the sequence that begins a style.
func (s style) open() string {
	var all []string
	for i, parameter := range sequences {
		if s&(1<<i) != 0 {
			all = append(all, parameter)
		}
	}
	return "\x1b[" + strings.Join(all, ";") + "m"
}

// span is a text of one style.
type span struct {
	text  string
	style style
}

// escapable are the characters that a backslash makes ordinary ones.
const escapable = "\\`*_{}[]()#+-.!~|<>"

// inline returns the spans of a text, whose marks are replaced by styles.
func inline(text string, s style) []span {
	var spans []span
	plain := ""
	end := func() {
		if plain != "" {
			spans = append(spans, span{plain, s})
		}
		plain = ""
	}
	for i := 0; i < len(text); {
		if text[i] == '\\' && i+1 < len(text) && strings.IndexByte(escapable, text[i+1]) >= 0 {
			plain += text[i+1 : i+2]
			i += 2
			continue
		}
		if found, size := marked(text, i, s); size > 0 {
			end()
			spans = append(spans, found...)
			i += size
			continue
		}
		size := 1
		for i+size < len(text) && !utf8.RuneStart(text[i+size]) {
			size++
		}
		plain += text[i : i+size]
		i += size
	}
	end()
	return spans
}

// delimiters are the marks before and after a text of another style. Longer ones come first.
var delimiters = []struct {
	mark  string
	style style
}{{"***", bold | italic}, {"**", bold}, {"__", bold}, {"~~", strike}, {"*", italic}, {"_", italic}}

// marked returns the spans of what begins with a mark at a position, and its length; 0 if
// there is no mark, or nothing that ends it.
func marked(text string, at int, s style) ([]span, int) {
	rest := text[at:]
	switch rest[0] {
	case '`':
		return codeSpan(rest, s)
	case '[':
		return link(rest, s)
	case '*', '_', '~':
	default:
		return nil, 0
	}
	for _, d := range delimiters {
		inner, ok := strings.CutPrefix(rest, d.mark)
		if !ok || inner == "" || unicode.IsSpace(rune(inner[0])) || d.mark[0] == '_' && isWordBefore(text, at) {
			continue
		}
		if end := closing(inner, d.mark); end > 0 {
			return inline(inner[:end], s|d.style), end + 2*len(d.mark)
		}
	}
	return nil, 0
}

// closing returns where a mark ends a text; -1 if it does not.
func closing(text, mark string) int {
	for from := 0; ; {
		i := strings.Index(text[from:], mark)
		if i < 0 {
			return -1
		}
		i += from
		after := text[i+len(mark):]
		switch {
		case i == 0 || text[i-1] == ' ' || text[i-1] == '\\':
		case len(mark) == 1 && strings.HasPrefix(after, mark): // a part of a longer mark
			from = i + 2
			continue
		case mark[0] == '_' && startsWord(after):
		default:
			return i
		}
		from = i + len(mark)
	}
}

func isWordBefore(text string, at int) bool {
	r, _ := utf8.DecodeLastRuneInString(text[:at])
	return unicode.IsLetter(r) || unicode.IsNumber(r)
}

func startsWord(text string) bool {
	r, _ := utf8.DecodeRuneInString(text)
	return unicode.IsLetter(r) || unicode.IsNumber(r)
}

// codeSpan returns the text between two runs of backquotes.
func codeSpan(text string, s style) ([]span, int) {
	mark := text[:len(text)-len(strings.TrimLeft(text, "`"))]
	inner, after, ok := strings.Cut(text[len(mark):], mark)
	if !ok || inner == "" || strings.HasPrefix(after, "`") {
		return nil, 0
	}
	shown := inner
	if len(inner) > 2 && inner[0] == ' ' && inner[len(inner)-1] == ' ' {
		shown = inner[1 : len(inner)-1]
	}
	return []span{{shown, s | code}}, len(inner) + 2*len(mark)
}

// link returns the text of a link and its address, which is always shown: the text may claim
// another one.
func link(text string, s style) ([]span, int) {
	label, rest, ok := strings.Cut(text[1:], "](")
	if !ok || strings.ContainsAny(label, "[]") {
		return nil, 0
	}
	address, _, ok := strings.Cut(rest, ")")
	if !ok || address == "" || strings.ContainsAny(address, " (") {
		return nil, 0
	}
	size := len("[") + len(label) + len("](") + len(address) + len(")")
	if label == address {
		return []span{{address, s | underline}}, size
	}
	return append(inline(label, s|underline), span{" (" + address + ")", s | dim}), size
}
