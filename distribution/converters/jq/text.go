package jq

import (
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/convert/document"
)

// Template is a text with expressions between ${ and }.
type Template struct {
	Parts []TemplatePart // in order
}

// TemplatePart is a piece of a Template.
type TemplatePart struct {
	Text   string // without ${ and }
	IsExpr bool   // whether the piece is an expression
}

// ParseTemplate splits a text. An unclosed ${ is text.
func ParseTemplate(s string) Template {
	var t Template
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
			t.Parts = append(t.Parts, TemplatePart{Text: s[:i]})
		}
		t.Parts = append(t.Parts, TemplatePart{Text: strings.TrimSpace(s[i+2 : i+2+end]), IsExpr: true})
		s = s[i+2+end+1:]
	}
	if s != "" {
		t.Parts = append(t.Parts, TemplatePart{Text: s})
	}
	return t
}

// expressionEnd returns the index of the } that closes an expression, outside of
// its braces, parentheses and strings; -1 if there is none.
func expressionEnd(s string) int {
	var open []byte // { and ( as written, " for a string
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

// closes returns the character that closes another one.
func closes(sign byte) byte {
	switch sign {
	case '{':
		return '}'
	case '(':
		return ')'
	}
	return sign
}

// HasExpressions reports whether the text has an expression.
func (t Template) HasExpressions() bool {
	return slices.ContainsFunc(t.Parts, func(p TemplatePart) bool { return p.IsExpr })
}

// Template translates a template to a string expression, as jq's string
// interpolation does.
func (t *Translator) Template(tpl Template) (*Expr, error) {
	if len(tpl.Parts) == 0 {
		return Constant(`""`, document.Text), nil
	}
	var sum *Expr
	for _, p := range tpl.Parts {
		next := QuoteExpr(p.Text)
		if p.IsExpr {
			c, err := t.Translate(p.Text)
			if err != nil {
				return nil, err
			}
			t.AssumeType(c, document.Text)
			if next, err = t.AsText(c); err != nil {
				return nil, err
			}
		}
		if sum == nil {
			sum = next
			continue
		}
		sum = newExpr(document.Text, PrecAdd, "%s + %s", sum.Wrap(PrecAdd), next.Wrap(PrecMultiply))
	}
	if len(sum.Source) > maxExpression {
		return nil, Unsupported("", "it exceeds the limit of %d characters", maxExpression)
	}
	return sum, nil
}
