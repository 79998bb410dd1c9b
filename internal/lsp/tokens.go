package lsp

import (
	"context"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/lsp/outline"
	"github.com/qtype-dev/qtype/spec"
)

// token is a word with its colour.
type token struct {
	start, end int // bytes
	kind       int
	modifiers  uint32
}

// The legend's indexes.
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

// tokenTypes is the legend, in the order of the indexes.
func tokenTypes() []string {
	return []string{"variable", "function", "class", "type", "property", "parameter", "enumMember", "namespace"}
}

// The legend's modifiers, as bits.
const (
	tokenDeclaration uint32 = 1 << iota
	tokenReadOnly
)

// tokenModifiers is the legend of the modifiers, in the order of their bits.
func tokenModifiers() []string { return []string{"declaration", "readonly"} }

// tokens answers the words of a document that YAML's own colours cannot tell
// apart: ids where they are declared and named, types, and what is filled into texts.
func (s *server) tokens(_ context.Context, p semanticTokensParams) (semanticTokens, error) {
	packed := semanticTokens{Data: []uint32{}}
	d, err := s.held(p.TextDocument)
	if err != nil {
		return packed, err
	}
	from, to := 0, len(d.text)
	if p.Range != nil {
		from, to = d.offset(p.Range.Start), d.offset(p.Range.End)
	}
	var last position
	for _, t := range tokensOf(s.surveyOf(d), d) {
		if t.end <= from || t.start >= to {
			continue
		}
		at := d.position(t.start)
		if at.Line != last.Line {
			last.Character = 0
		}
		packed.Data = append(packed.Data, uint32(at.Line-last.Line), uint32(at.Character-last.Character),
			uint32(utf16Len(d.text[t.start:t.end])), uint32(t.kind), t.modifiers)
		last = at
	}
	return packed, nil
}

// tokensOf are the tokens of a document in order, none over another, each on one line.
func tokensOf(survey *syntaxIndex, d *document) []token {
	var all []token
	for i := range survey.marks[d.path] {
		all = append(all, markTokens(&survey.marks[d.path][i], d.text)...)
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

// markTokens are the tokens of one word; none for what YAML colours well enough.
func markTokens(m *word, text string) []token {
	start, end := m.start, m.end
	if m.node != nil && (m.node.Style == outline.SingleQuoted || m.node.Style == outline.DoubleQuoted) && end-start >= 2 {
		start, end = start+1, end-1
	}
	one := func(kind int, modifiers uint32) []token { return []token{{start, end, kind, modifiers}} }
	switch m.role {
	case asTag:
		return one(tokenClass, 0)
	case asID:
		if m.in == nil || m.in.class == nil {
			return nil
		}
		return one(entityToken(m.in.class.kind()), tokenDeclaration)
	case asRef:
		return one(entityToken(noun(wantedBy(m.of))), 0)
	case asType:
		return one(tokenType, 0)
	case asBinding:
		return one(tokenParameter, 0)
	case asProperty:
		return one(tokenProperty, tokenDeclaration)
	case asValue:
		return valueTokens(m, text)
	}
	return nil
}

// valueTokens are a word of an enumeration, or the placeholders of a text.
func valueTokens(m *word, text string) []token {
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

// entityToken is the colour of an entity's id.
func entityToken(kind string) int {
	switch {
	case kind == string(spec.KindVariable):
		return tokenVariable
	case kind == string(spec.KindFlow), kind == string(spec.KindTool), kind == string(spec.KindStep):
		return tokenFunction
	case kind == string(spec.KindType):
		return tokenType
	}
	return tokenNamespace
}
