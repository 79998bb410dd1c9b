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

// lineIndex knows where the lines of a text start, and turns places of the protocol
// (UTF-16 units), of package source (characters) and of Go (bytes) into each
// other. The protocol also ends a line at a lone carriage return; source does not.
type lineIndex struct {
	text       string
	starts     []int // offsets at which the protocol's lines start
	feedStarts []int // offsets at which package source's lines start
	hasBOM     bool  // a byte order mark stood before the text; it is one unit of the first line
}

// byteOrderMark may stand before a text; it is taken away, as package loader does.
const byteOrderMark = "\ufeff"

// newLines finds the lines of a text.
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

// line is the number of the protocol's line that holds an offset, from 0.
func (l *lineIndex) line(offset int) int { return sort.SearchInts(l.starts, offset+1) - 1 }

// position is where a byte stands.
func (l *lineIndex) position(offset int) protocol.Position {
	offset = min(max(offset, 0), len(l.text))
	n := l.line(offset)
	return protocol.Position{Line: n, Character: utf16Len(l.text[l.starts[n]:offset]) + l.bomUnits(n)}
}

// extra is how many units stand before a line's text: one for a byte order mark.
func (l *lineIndex) bomUnits(line int) int {
	if l.hasBOM && line == 0 {
		return 1
	}
	return 0
}

// span is the range between two bytes.
func (l *lineIndex) rangeOf(start, end int) protocol.Range {
	return protocol.Range{Start: l.position(start), End: l.position(end)}
}

// utf16Len counts the UTF-16 units of a text.
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

// offset is the byte at a position; one behind a line's end is that end, and one
// behind the last line the text's.
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
			break // in the middle of a pair: the place before it
		}
		at += size
	}
	return at
}

// whole is a stretch of the text with the byte order mark before it, if there was one.
func (l *lineIndex) withBOM(start, end int) string {
	if l.hasBOM {
		return byteOrderMark + l.text[start:end]
	}
	return l.text[start:end]
}

// lineEnd is the offset at which a line's text ends, without its line break.
func (l *lineIndex) lineEnd(n int) int {
	end := len(l.text)
	if n+1 < len(l.starts) {
		end = l.starts[n+1]
	}
	return l.starts[n] + len(strings.TrimRight(l.text[l.starts[n]:end], "\r\n"))
}

// byteAt is the byte at a place of package source.
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

// bytesOf are the first byte of a span and the one after its last.
func (l *lineIndex) sourceOffsets(s source.Span) (start, end int) {
	start = l.sourceOffset(s.Start)
	return start, max(l.sourceOffset(s.End), start)
}

// document is one version of a document that the editor holds. It never changes.
type document struct {
	uri     string
	path    string // what the loader calls it
	version int
	lang    string // the editor's name of its language
	*lineIndex
	outline func() *outline.Node // made when it is first asked for
}

// newDocument takes a text of the editor.
func newDocument(uri, path string, version int, lang, text string) *document {
	l := newLineIndex(text)
	return &document{uri: uri, path: path, version: version, lang: lang, lineIndex: l,
		outline: sync.OnceValue(func() *outline.Node { return outline.Parse(l.text) })}
}

// edit applies changes in their order.
func (d *document) edit(version int, changes []protocol.TextDocumentContentChangeEvent) (*document, error) {
	text := d.lineIndex
	for _, c := range changes {
		if c.Range == nil {
			text = newLineIndex(c.Text)
			continue
		}
		start, end := text.offset(c.Range.Start), text.offset(c.Range.End)
		if start > end {
			return nil, fmt.Errorf("a change ends before it starts")
		}
		text = newLineIndex(text.withBOM(0, start) + c.Text + text.text[end:])
	}
	return newDocument(d.uri, d.path, version, d.lang, text.withBOM(0, len(text.text))), nil
}
