package lsp

import (
	"context"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/lsp/outline"
	"github.com/qtype-dev/qtype/internal/lsp/protocol"
	"github.com/qtype-dev/qtype/spec"
)

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
