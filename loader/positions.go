package loader

import (
	"bytes"
	"sort"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/qtype-dev/qtype/spec/source"
)

// positions converts positions of the YAML parser to byte offsets, and those to
// positions of package source. The parser also ends a line at a lone carriage return
// and at U+0085, U+2028 and U+2029; package source does not.
//
// It caches the last result: nodes come in document order, and a document may be one
// line of a megabyte.
type positions struct {
	text  []byte
	lines []int // offsets of the starts of the parser's lines
	ends  []int // offsets of the starts of the lines of package source

	line, column, byte int        // the last result of offset
	last               int        // the last argument of at
	lastPos            source.Pos // its result
}

func newPositions(text []byte) *positions {
	p := &positions{text: text, lines: []int{0}, ends: []int{0}, line: 1, column: 1, lastPos: source.Pos{Line: 1, Column: 1}}
	for i := range text {
		switch c := text[i]; {
		case c == '\n':
			p.lines, p.ends = append(p.lines, i+1), append(p.ends, i+1)
		case c == '\r' && (i+1 == len(text) || text[i+1] != '\n'):
			p.lines = append(p.lines, i+1)
		case c == 0xc2 && bytes.HasPrefix(text[i:], []byte("\u0085")):
			p.lines = append(p.lines, i+2)
		case c == 0xe2 && (bytes.HasPrefix(text[i:], []byte("\u2028")) || bytes.HasPrefix(text[i:], []byte("\u2029"))):
			p.lines = append(p.lines, i+3)
		}
	}
	return p
}

// offset returns the byte offset of a line and column of the parser, both from 1.
func (p *positions) offset(line, column int) int {
	if line < 1 || column < 1 {
		return 0
	}
	if line > len(p.lines) {
		return len(p.text)
	}
	at, from := p.lines[line-1], 1
	if line == p.line && column >= p.column {
		at, from = p.byte, p.column
	}
	for ; from < column && at < len(p.text); from++ {
		_, n := utf8.DecodeRune(p.text[at:])
		at += n
	}
	p.line, p.column, p.byte = line, from, at
	return at
}

// at returns the position of a byte offset.
func (p *positions) at(offset int) source.Pos {
	offset = min(offset, len(p.text))
	line := p.lastPos.Line
	if offset < p.last || line < len(p.ends) && offset >= p.ends[line] {
		line = sort.SearchInts(p.ends, offset+1)
	}
	start, column := p.ends[line-1], 1
	if line == p.lastPos.Line && offset >= p.last {
		start, column = p.last, p.lastPos.Column
	}
	column += utf8.RuneCount(p.text[start:offset])
	p.last, p.lastPos = offset, source.Pos{Line: line, Column: column}
	return p.lastPos
}

// start returns the offset of a node's text, after its tag and anchor.
func (p *positions) start(n *yaml.Node) int {
	at := p.offset(n.Line, n.Column)
	if n.Anchor == "" && n.Style&yaml.TaggedStyle == 0 && !strings.HasPrefix(n.Tag, "!") {
		return at
	}
	begin := at
	for at < len(p.text) && (p.text[at] == '!' || p.text[at] == '&') {
		for at < len(p.text) && !isBlank(p.text[at]) {
			at++
		}
		at = p.skipBlank(at)
	}
	if at >= len(p.text) {
		return begin
	}
	return at
}

// skipBlank skips spaces, line ends and comments.
func (p *positions) skipBlank(at int) int {
	for at < len(p.text) {
		switch {
		case isBlank(p.text[at]):
			at++
		case p.text[at] == '#' && at > 0 && isBlank(p.text[at-1]):
			at = p.lineEnd(at)
		default:
			return at
		}
	}
	return at
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// lineEnd returns the offset of the line end after at.
func (p *positions) lineEnd(at int) int {
	if n := bytes.IndexByte(p.text[at:], '\n'); n >= 0 {
		return at + n
	}
	return len(p.text)
}

// scalarEnd returns the offset after a scalar whose text starts at start.
func (p *positions) scalarEnd(n *yaml.Node, start int) int {
	switch {
	case n.Style&yaml.DoubleQuotedStyle != 0:
		return p.quoteEnd(start, '"')
	case n.Style&yaml.SingleQuotedStyle != 0:
		return p.quoteEnd(start, '\'')
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return p.blockEnd(start)
	}
	return p.plainEnd(start, n.Value)
}

func (p *positions) quoteEnd(at int, quote byte) int {
	for at++; at < len(p.text); at++ {
		switch {
		case p.text[at] == '\\' && quote == '"':
			at++
		case p.text[at] == quote && quote == '\'' && at+1 < len(p.text) && p.text[at+1] == quote:
			at++
		case p.text[at] == quote:
			return at + 1
		}
	}
	return len(p.text)
}

// blockEnd returns the end of a block scalar: it continues while lines are blank or
// indented like the first one.
func (p *positions) blockEnd(start int) int {
	end, indent := p.lineEnd(start), -1
	for at := end + 1; at < len(p.text); {
		stop := p.lineEnd(at)
		line := bytes.TrimRight(p.text[at:stop], "\r ")
		depth := len(line) - len(bytes.TrimLeft(line, " "))
		switch {
		case len(line) == 0:
		case indent < 0 && depth > 0:
			indent, end = depth, at+len(line)
		case indent > 0 && depth >= indent:
			end = at + len(line)
		default:
			return end
		}
		at = stop + 1
	}
	return min(end, len(p.text))
}

// plainEnd returns the end of a plain scalar: a space or line end of the value may be
// a line break with any indentation in the source.
func (p *positions) plainEnd(at int, value string) int {
	if bytes.HasPrefix(p.text[at:], []byte(value)) {
		return at + len(value)
	}
	end := at
	for i := 0; i < len(value); {
		if isBlank(value[i]) {
			for i < len(value) && isBlank(value[i]) {
				i++
			}
			at = p.skipBlank(at)
			continue
		}
		if at >= len(p.text) || p.text[at] != value[i] {
			break
		}
		i, at = i+1, at+1
		end = at
	}
	return end
}

// close returns the offset after the closing bracket of a flow collection whose last
// part ends at at.
func (p *positions) close(at int, bracket byte) int {
	end := at
	for at < len(p.text) {
		switch c := p.text[at]; {
		case c == bracket:
			return at + 1
		case c == ',' || c == ':' || isBlank(c):
			at++
		case c == '#':
			at = p.lineEnd(at)
		default:
			return end
		}
	}
	return end
}
