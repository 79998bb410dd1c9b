package convert

import (
	"errors"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/spec/source"
)

// template is one text of a file: jq between ${ and }, the rest as it stands.
type template struct {
	parts []templatePart
}

// templatePart is a piece of a template.
type templatePart struct {
	text string // the piece, without ${ and }
	jq   bool   // it is an expression
}

// readTemplate takes a text apart. Where ${ has no end it is text.
func readTemplate(s string) template {
	var t template
	for s != "" {
		i := strings.Index(s, "${")
		if i < 0 {
			break
		}
		end := expressionEnd(s[i+2:])
		if end < 0 {
			break
		}
		if i > 0 {
			t.parts = append(t.parts, templatePart{text: s[:i]})
		}
		t.parts = append(t.parts, templatePart{text: strings.TrimSpace(s[i+2 : i+2+end]), jq: true})
		s = s[i+2+end+1:]
	}
	if s != "" {
		t.parts = append(t.parts, templatePart{text: s})
	}
	return t
}

// expressionEnd is where the } stands that closes an expression: behind all that
// is opened in it, and outside of its texts; -1 where there is none.
func expressionEnd(s string) int {
	var open []byte // what is open: { and ( as they are, " for a text
	for i := 0; i < len(s); i++ {
		c := s[i]
		inside := byte(0)
		if len(open) > 0 {
			inside = open[len(open)-1]
		}
		switch {
		case inside == '"' && c == '\\':
			if i++; i < len(s) && s[i] == '(' {
				open = append(open, '(')
			}
		case c == '}' && inside == 0:
			return i
		case inside != 0 && c == closes(inside):
			open = open[:len(open)-1]
		case inside != '"' && (c == '"' || c == '{' || c == '('):
			open = append(open, c)
		}
	}
	return -1
}

// closes is the sign that closes another one.
func closes(sign byte) byte {
	switch sign {
	case '{':
		return '}'
	case '(':
		return ')'
	}
	return sign
}

// dynamic tells whether there is an expression in it.
func (t template) dynamic() bool {
	return slices.ContainsFunc(t.parts, func(p templatePart) bool { return p.jq })
}

// text translates a template to an expression that gives a text: expressions
// give their texts, as jq's string interpolation does.
func (t *jq) text(tpl template) (*translatedExpr, error) {
	if len(tpl.parts) == 0 {
		return constant(`""`, isText), nil
	}
	var sum *translatedExpr
	for _, p := range tpl.parts {
		next := quotedCode(p.text)
		if p.jq {
			c, err := t.translate(p.text)
			if err != nil {
				return nil, err
			}
			t.assumeType(c, isText)
			if next, err = t.asText(c); err != nil {
				return nil, err
			}
		}
		if sum == nil {
			sum = next
			continue
		}
		sum = made(isText, precAdd, "%s + %s", sum.wrap(precAdd), next.wrap(precMultiply))
	}
	if len(sum.text) > longestFormula {
		return nil, unsupportedJQ("", "it is longer than the %d characters that an expression has at most", longestFormula)
	}
	return sum, nil
}

// placeOf is where a word of a scalar stands; the scalar's own place where the
// word cannot be found in the file's text.
func placeOf(n *node, word string) source.Span {
	if word == "" || n.span.File == nil {
		return n.mark()
	}
	for line := n.span.Start.Line; line <= n.span.End.Line; line++ {
		text := []rune(n.span.File.Line(line))
		from, to := 0, len(text)
		if line == n.span.Start.Line {
			from = min(n.span.Start.Column-1, len(text))
		}
		if line == n.span.End.Line {
			to = min(n.span.End.Column-1, len(text))
		}
		if at := strings.Index(string(text[from:max(to, from)]), word); at >= 0 {
			column := from + len([]rune(string(text[from:])[:at])) + 1
			return source.Span{File: n.span.File, Start: source.Pos{Line: line, Column: column},
				End: source.Pos{Line: line, Column: column + len([]rune(word))}}
		}
	}
	return n.mark()
}

// untranslated tells of an expression that cannot be translated.
func (r *report) untranslated(n *node, what string, err error) {
	var e *jqError
	word := ""
	if errors.As(err, &e) {
		word = e.word
	}
	r.add(ruleJQ.At(placeOf(n, word), "%s: %s", what, err))
}
