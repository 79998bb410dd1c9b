package jq

import (
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/convert/document"
)

// Template is one text of a file: jq between ${ and }, the rest as it stands.
type Template struct {
	Parts []TemplatePart
}

// TemplatePart is a piece of a template.
type TemplatePart struct {
	Text   string // the piece, without ${ and }
	IsExpr bool   // it is an expression
}

// ParseTemplate takes a text apart. Where ${ has no end it is text.
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

// HasExpressions tells whether there is an expression in it.
func (t Template) HasExpressions() bool {
	return slices.ContainsFunc(t.Parts, func(p TemplatePart) bool { return p.IsExpr })
}

// Template translates a template to an expression that gives a text: expressions
// give their texts, as jq's string interpolation does.
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
	if len(sum.Source) > longestFormula {
		return nil, Unsupported("", "it is longer than the %d characters that an expression has at most", longestFormula)
	}
	return sum, nil
}
