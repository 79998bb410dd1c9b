package lsp

import (
	"fmt"
	"sort"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/internal/lsp/outline"
	"github.com/qtype-dev/qtype/internal/lsp/protocol"
	"github.com/qtype-dev/qtype/spec/source"
)

// lineIndex converts between positions of the protocol (UTF-16 code units), of
// package source (characters) and byte offsets. In the protocol a carriage return
// alone also ends a line; in package source it does not.
type lineIndex struct {
	text       string
	starts     []int // offsets of the protocol's lines
	feedStarts []int // offsets of package source's lines
	hasBOM     bool  // a byte order mark preceded the text; it counts as one unit of the first line
}

// byteOrderMark may precede a text. It is removed, as in package loader.
const byteOrderMark = "\ufeff"

func newLineIndex(text string) *lineIndex {
	text, marked := strings.CutPrefix(text, byteOrderMark)
	l := &lineIndex{text: text, starts: []int{0}, feedStarts: []int{0}, hasBOM: marked}
	for i := range len(text) {
		switch {
		case text[i] == '\n':
			l.starts, l.feedStarts = append(l.starts, i+1), append(l.feedStarts, i+1)
		case text[i] == '\r' && (i+1 == len(text) || text[i+1] != '\n'):
			l.starts = append(l.starts, i+1)
		}
	}
	return l
}

// line returns the 0-based line of the protocol at an offset.
func (l *lineIndex) line(offset int) int { return sort.SearchInts(l.starts, offset+1) - 1 }

// position converts an offset.
func (l *lineIndex) position(offset int) protocol.Position {
	offset = min(max(offset, 0), len(l.text))
	n := l.line(offset)
	return protocol.Position{Line: n, Character: utf16Len(l.text[l.starts[n]:offset]) + l.bomUnits(n)}
}

// bomUnits returns the number of units that precede the text of a line: one for a
// byte order mark.
func (l *lineIndex) bomUnits(line int) int {
	if l.hasBOM && line == 0 {
		return 1
	}
	return 0
}

// rangeOf converts two offsets.
func (l *lineIndex) rangeOf(start, end int) protocol.Range {
	return protocol.Range{Start: l.position(start), End: l.position(end)}
}

// utf16Len returns the length of a text in UTF-16 code units.
func utf16Len(text string) int {
	n := 0
	for _, r := range text {
		n++
		if r > 0xffff {
			n++
		}
	}
	return n
}

// offset converts a position. Positions beyond the end of a line mean that end,
// those beyond the last line the end of the text.
func (l *lineIndex) offset(p protocol.Position) int {
	if p.Line < 0 {
		return 0
	}
	if p.Line >= len(l.starts) {
		return len(l.text)
	}
	at := l.starts[p.Line]
	end := l.lineEnd(p.Line)
	for n := p.Character - l.bomUnits(p.Line); n > 0 && at < end; {
		r, size := utf8.DecodeRuneInString(l.text[at:end])
		if n--; r > 0xffff {
			n--
		}
		if n < 0 {
			break // within a surrogate pair: the position before it
		}
		at += size
	}
	return at
}

// withBOM returns a part of the text with the byte order mark that preceded it.
func (l *lineIndex) withBOM(start, end int) string {
	if l.hasBOM {
		return byteOrderMark + l.text[start:end]
	}
	return l.text[start:end]
}

// lineEnd returns the offset of the end of a line, without its line break.
func (l *lineIndex) lineEnd(n int) int {
	end := len(l.text)
	if n+1 < len(l.starts) {
		end = l.starts[n+1]
	}
	return l.starts[n] + len(strings.TrimRight(l.text[l.starts[n]:end], "\r\n"))
}

// sourceOffset converts a position of package source.
func (l *lineIndex) sourceOffset(p source.Pos) int {
	if p.Line < 1 {
		return 0
	}
	if p.Line > len(l.feedStarts) {
		return len(l.text)
	}
	at := l.feedStarts[p.Line-1]
	for n := p.Column; n > 1 && at < len(l.text) && l.text[at] != '\n'; n-- {
		_, size := utf8.DecodeRuneInString(l.text[at:])
		at += size
	}
	return at
}

// sourceOffsets returns the start and end of a span.
func (l *lineIndex) sourceOffsets(s source.Span) (start, end int) {
	start = l.sourceOffset(s.Start)
	return start, max(l.sourceOffset(s.End), start)
}

// document is a version of an open document. It is immutable.
type document struct {
	uri     string
	path    string // the loader's name
	version int
	lang    string // the editor's language identifier
	*lineIndex
	outline func() *outline.Node // computed on first use
}

func newDocument(uri, path string, version int, lang, text string) *document {
	l := newLineIndex(text)
	return &document{uri: uri, path: path, version: version, lang: lang, lineIndex: l,
		outline: sync.OnceValue(func() *outline.Node { return outline.Parse(l.text) })}
}

// edit applies changes in order.
func (d *document) edit(version int, changes []protocol.TextDocumentContentChangeEvent) (*document, error) {
	text := d.lineIndex
	for _, c := range changes {
		if c.Range == nil {
			text = newLineIndex(c.Text)
			continue
		}
		start, end := text.offset(c.Range.Start), text.offset(c.Range.End)
		if start > end {
			return nil, fmt.Errorf("the change ends before it starts")
		}
		text = newLineIndex(text.withBOM(0, start) + c.Text + text.text[end:])
	}
	return newDocument(d.uri, d.path, version, d.lang, text.withBOM(0, len(text.text))), nil
}
