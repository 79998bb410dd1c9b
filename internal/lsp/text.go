package lsp

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/internal/lsp/outline"
	"github.com/qtype-dev/qtype/internal/lsp/protocol"
	"github.com/qtype-dev/qtype/spec"
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

// token is a word with its type, for highlighting.
type token struct {
	start, end int // byte offsets
	tokenType  int
	modifiers  uint32
}

// Indexes of the token types in the legend.
const (
	tokenVariable = iota
	tokenFunction
	tokenClass
	tokenType
	tokenProperty
	tokenParameter
	tokenEnumMember
	tokenNamespace
)

// tokenTypes returns the legend in the order of the indexes.
func tokenTypes() []string {
	return []string{"variable", "function", "class", "type", "property", "parameter", "enumMember", "namespace"}
}

// Bits of the token modifiers.
const (
	tokenDeclaration uint32 = 1 << iota
	tokenReadOnly
)

// tokenModifiers returns the legend in the order of the bits.
func tokenModifiers() []string { return []string{"declaration", "readonly"} }

// semanticTokens handles textDocument/semanticTokens: the words that YAML
// highlighting does not distinguish, such as ids, types and placeholders.
func (s *server) semanticTokens(_ context.Context, p protocol.SemanticTokensParams) (protocol.SemanticTokens, error) {
	packed := protocol.SemanticTokens{Data: []uint32{}}
	d, err := s.openDocument(p.TextDocument)
	if err != nil {
		return packed, err
	}
	from, to := 0, len(d.text)
	if p.Range != nil {
		from, to = d.offset(p.Range.Start), d.offset(p.Range.End)
	}
	var last protocol.Position
	for _, t := range tokensOf(s.syntaxOf(d), d) {
		if t.end <= from || t.start >= to {
			continue
		}
		at := d.position(t.start)
		if at.Line != last.Line {
			last.Character = 0
		}
		packed.Data = append(packed.Data, uint32(at.Line-last.Line), uint32(at.Character-last.Character),
			uint32(utf16Len(d.text[t.start:t.end])), uint32(t.tokenType), t.modifiers)
		last = at
	}
	return packed, nil
}

// tokensOf returns the tokens of a document in order. They do not overlap, and each
// is on one line.
func tokensOf(syntax *syntaxIndex, d *document) []token {
	var all []token
	for i := range syntax.words[d.path] {
		all = append(all, wordTokens(syntax.lang, &syntax.words[d.path][i], d.text)...)
	}
	slices.SortStableFunc(all, func(a, b token) int { return a.start - b.start })
	end := 0
	return slices.DeleteFunc(all, func(t token) bool {
		if t.start < end || t.end <= t.start || strings.ContainsAny(d.text[t.start:t.end], "\n\r") {
			return true
		}
		end = t.end
		return false
	})
}

// wordTokens returns the tokens of a word; none if YAML highlighting suffices.
func wordTokens(lang *language, m *syntaxWord, text string) []token {
	start, end := m.start, m.end
	if m.node != nil && (m.node.Style == outline.SingleQuoted || m.node.Style == outline.DoubleQuoted) && end-start >= 2 {
		start, end = start+1, end-1
	}
	one := func(kind int, modifiers uint32) []token { return []token{{start, end, kind, modifiers}} }
	switch m.role {
	case roleTag:
		return one(tokenClass, 0)
	case roleID:
		if m.mapping == nil || m.mapping.class == nil {
			return nil
		}
		return one(presentationOf(m.mapping.class.kind()).token, tokenDeclaration)
	case roleReference:
		return one(presentationOf(spec.Kind(lang.kindName(targetType(m.goType)))).token, 0)
	case roleType:
		return one(tokenType, 0)
	case roleBinding:
		return one(tokenParameter, 0)
	case roleProperty:
		return one(tokenProperty, tokenDeclaration)
	case roleValue:
		return valueTokens(m, text)
	}
	return nil
}

// valueTokens returns the token of an enumeration value, or those of the
// placeholders in a text.
func valueTokens(m *syntaxWord, text string) []token {
	if m.field != nil && slices.Contains(m.field.enum, m.text) {
		return []token{{m.start, m.end, tokenEnumMember, 0}}
	}
	if !m.field.holdsPlaceholders() {
		return nil
	}
	var all []token
	for _, h := range placeholders(text[m.start:m.end]) {
		all = append(all, token{m.start + h.start, m.start + h.end, tokenParameter, tokenReadOnly})
	}
	return all
}
