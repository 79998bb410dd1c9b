package lsp

import (
	"regexp"
	"strings"

	"github.com/qtype-dev/qtype/internal/lsp/outline"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/source"
)

// texts adds the names that stand inside of texts: types, placeholders, bindings.
func (x *nameIndex) textNames(n spec.Node, at nameScope) {
	switch n := n.(type) {
	case *spec.Variable:
		x.typeExpression(n.Type, n.Place().Field("type"), at)
	case *spec.CustomType:
		for _, p := range n.Properties {
			x.typeExpression(p.Type, n.Place().Field("properties").Field(p.Name), at)
		}
	case *spec.PromptTemplate:
		x.placeholders(n.Place(), "template", variablesOf(n.Inputs), at)
	case *spec.SQLSource:
		x.pattern(n.Place(), "query", `:(%s)\b`, variablesOf(n.Inputs), at)
	case *spec.APITool:
		x.placeholders(n.Place(), "endpoint", append(append([]*spec.Variable{}, n.Inputs...), n.Parameters...), at)
	case *spec.InvokeFlow:
		if n.Flow.To != nil {
			x.bindings(n.Place().Field("input_bindings"), variablesOf(n.Flow.To.Inputs), at)
			x.bindings(n.Place().Field("output_bindings"), variablesOf(n.Flow.To.Outputs), at)
		}
	case *spec.InvokeTool:
		if n.Tool.To != nil {
			inputs := n.Tool.To.Common().Inputs
			if api, ok := n.Tool.To.(*spec.APITool); ok {
				inputs = append(append([]*spec.Variable{}, inputs...), api.Parameters...)
			}
			x.bindings(n.Place().Field("input_bindings"), inputs, at)
			x.bindings(n.Place().Field("output_bindings"), n.Tool.To.Common().Outputs, at)
		}
	}
}

// variablesOf are the variables that references were linked to.
func variablesOf(refs []spec.Ref[*spec.Variable]) []*spec.Variable {
	var all []*spec.Variable
	for _, r := range refs {
		if r.To != nil {
			all = append(all, r.To)
		}
	}
	return all
}

// typeName adds the name of a custom type in an expression such as list[Order]?.
func (x *nameIndex) typeExpression(t spec.Type, place *spec.Position, at nameScope) {
	for t.Elem != nil {
		t = *t.Elem
	}
	if t.Custom == nil {
		return
	}
	x.addWord(nameUse{kind: typeName, entity: t.Custom, user: at.user}, place.Field("element_type").Span(), t.Name)
}

// wordIn adds the first occurrence of a name inside of a span.
func (x *nameIndex) addWord(u nameUse, span source.Span, name string) {
	if span.File == nil {
		return
	}
	l := x.analysis.linesOf(span.File)
	start, end := l.sourceOffsets(span)
	if i := strings.Index(l.text[start:end], name); i >= 0 {
		x.add(u, span.File, start+i, start+i+len(name))
	}
}

// placeholders adds the {name} of a text that stand for variables. They are
// looked for in the text as it is written, where ${NAME} is the environment's.
func (x *nameIndex) placeholders(place *spec.Position, key string, variables []*spec.Variable, at nameScope) {
	field, ok := place.Lookup(key)
	if !ok || field.Span().File == nil {
		return
	}
	l := x.analysis.linesOf(field.Span().File)
	start, end := l.sourceOffsets(field.Span())
	for _, hole := range placeholders(l.text[start:end]) {
		for _, v := range variables {
			if v.ID == hole.name {
				x.add(nameUse{kind: textName, entity: v, user: at.user}, field.Span().File, start+hole.start, start+hole.end)
			}
		}
	}
}

// pattern adds the matches of an expression that holds a variable's name.
func (x *nameIndex) pattern(place *spec.Position, key, expression string, variables []*spec.Variable, at nameScope) {
	field, ok := place.Lookup(key)
	if !ok || field.Span().File == nil {
		return
	}
	l := x.analysis.linesOf(field.Span().File)
	start, end := l.sourceOffsets(field.Span())
	for _, v := range variables {
		re := regexp.MustCompile(strings.Replace(expression, "%s", regexp.QuoteMeta(v.ID), 1))
		for _, m := range re.FindAllStringSubmatchIndex(l.text[start:end], -1) {
			x.add(nameUse{kind: textName, entity: v, user: at.user}, field.Span().File, start+m[2], start+m[3])
		}
	}
}

// expression adds every place of an expression that names a variable; the
// validator links each variable once.
func (x *nameIndex) expression(e *spec.Expression, at nameScope) {
	if e.Span.File == nil {
		return
	}
	l := x.analysis.linesOf(e.Span.File)
	start, end := l.sourceOffsets(e.Span)
	for _, word := range expressionNames(l.text[start:end]) {
		for i := range e.Vars {
			if v := e.Vars[i].To; v != nil && v.ID == word.name {
				x.add(nameUse{kind: textName, entity: v, user: at.user}, e.Span.File, start+word.start, start+word.end)
			}
		}
	}
}

// formulaWords finds the names in an expression as it is written, outside of its
// texts and not behind a dot.
func expressionNames(text string) []placeholder {
	var found []placeholder
	from := 0
	if len(text) > 1 && (text[0] == '"' || text[0] == '\'') && text[len(text)-1] == text[0] {
		from, text = 1, text[:len(text)-1] // YAML's own quotes
	}
	var quote byte
	for at := from; at < len(text); at++ {
		c := text[at]
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'' || c == '`':
			quote = c
		case outline.IsWordByte(c) && c != '-':
			end := at
			for end < len(text) && outline.IsWordByte(text[end]) && text[end] != '-' {
				end++
			}
			if at == from || text[at-1] != '.' {
				found = append(found, placeholder{text[at:end], at, end})
			}
			at = end - 1
		}
	}
	return found
}

// bindings adds the names on the left of bindings.
func (x *nameIndex) bindings(place *spec.Position, variables []*spec.Variable, at nameScope) {
	for _, v := range variables {
		if p, ok := place.Lookup(v.ID); ok {
			x.addSpan(nameUse{kind: bindingName, entity: v, user: at.user}, p.Key, v.ID)
		}
	}
}

// placeholder is a placeholder in a text.
type placeholder struct {
	name       string
	start, end int // the name
}

// placeholders finds {name}, {name!r} and {name:>8} in a text as it is written; {{ and
// }} are braces, ${NAME} is the environment's.
func placeholders(text string) []placeholder {
	var found []placeholder
	for at := 0; at < len(text); at++ {
		switch {
		case strings.HasPrefix(text[at:], "${"):
			end := strings.IndexByte(text[at:], '}')
			if end < 0 {
				return found
			}
			at += end
		case strings.HasPrefix(text[at:], "{{"):
			at++
		case text[at] == '{':
			end := strings.IndexAny(text[at+1:], "{}")
			if end < 0 || text[at+1+end] == '{' {
				continue
			}
			name := text[at+1 : at+1+end]
			if i := strings.IndexAny(name, "!:"); i >= 0 {
				name = name[:i]
			}
			found = append(found, placeholder{name, at + 1, at + 1 + len(name)})
			at += end + 1
		}
	}
	return found
}
