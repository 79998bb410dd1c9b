package lsp

import (
	"reflect"
	"regexp"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/internal/lsp/outline"
	"github.com/qtype-dev/qtype/spec"
)

// textNames adds the names within texts of an entity, as the tags of its fields
// declare them: types, placeholders, parameters of queries, and bindings.
func (x *nameIndex) textNames(n spec.Node, at nameScope) {
	v := reflect.ValueOf(n).Elem()
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() {
			continue
		}
		key := f.Tag.Get("yaml")
		switch value := v.Field(i).Addr().Interface().(type) {
		case *spec.Type:
			x.typeExpression(*value, n.Position().Field(key), at)
		case *spec.Properties:
			for _, p := range *value {
				x.typeExpression(p.Type, n.Position().Field(key).Field(p.Name), at)
			}
		case *spec.Bindings:
			x.bindings(n.Position().Field(key), boundVariables(n, f.Tag.Get("binds") == "outputs"), at)
		case *string:
			switch syntax := f.Tag.Get("syntax"); {
			case hasPlaceholders(syntax):
				x.namesIn(n.Position(), key, textVariables(n), placeholders, at)
			case syntax == "sql":
				x.namesIn(n.Position(), key, textVariables(n), queryParameters, at)
			}
		}
	}
}

// hasPlaceholders reports whether texts of a syntax, by the tag `syntax` of a
// field, contain {name}.
func hasPlaceholders(syntax string) bool { return syntax == "template" || syntax == "endpoint" }

// textVariables returns the variables that the texts of an entity may name: the
// inputs of a step, the arguments of a tool.
func textVariables(n spec.Node) []*spec.Variable {
	switch n := n.(type) {
	case spec.Step:
		return variablesOf(n.Common().Inputs)
	case spec.Tool:
		return n.Arguments()
	}
	return nil
}

// boundVariables returns the variables that the bindings of a step name: the
// inputs or outputs of the flow or tool that it invokes.
func boundVariables(n spec.Node, outputs bool) []*spec.Variable {
	uses := spec.UsesOf(n)
	var all []*spec.Variable
	for _, f := range spec.Linked[*spec.Flow](uses, spec.RoleFlow) {
		if outputs {
			all = append(all, variablesOf(f.Outputs)...)
		} else {
			all = append(all, variablesOf(f.Inputs)...)
		}
	}
	for _, t := range spec.Linked[spec.Tool](uses, spec.RoleTool) {
		declared := t.Arguments()
		if outputs {
			declared, _ = t.Results()
		}
		all = append(all, declared...)
	}
	return all
}

// variablesOf returns the variables that references are linked to.
func variablesOf(refs []spec.Ref[*spec.Variable]) []*spec.Variable {
	var all []*spec.Variable
	for _, r := range refs {
		if r.To != nil {
			all = append(all, r.To)
		}
	}
	return all
}

// typeExpression adds the custom type in an expression such as list[Order]?.
func (x *nameIndex) typeExpression(t spec.Type, place *spec.Position, at nameScope) {
	for t.Elem != nil {
		t = *t.Elem
	}
	if t.Custom == nil {
		return
	}
	span := place.Field("element_type").Span()
	if span.File == nil {
		return
	}
	l := x.analysis.linesOf(span.File)
	start, end := l.sourceOffsets(span)
	if i := strings.Index(l.text[start:end], t.Name); i >= 0 {
		x.add(nameUse{kind: typeName, entity: t.Custom, user: at.user}, span.File, start+i, start+i+len(t.Name))
	}
}

// namesIn adds the variables that the text of a key names. The text is read as it
// is written in the document, before environment variables are replaced.
func (x *nameIndex) namesIn(place *spec.Position, key string, variables []*spec.Variable, find func(string) []textSpan, at nameScope) {
	field, ok := place.Lookup(key)
	if !ok || field.Span().File == nil {
		return
	}
	l := x.analysis.linesOf(field.Span().File)
	start, end := l.sourceOffsets(field.Span())
	for _, found := range find(l.text[start:end]) {
		for _, v := range variables {
			if v.ID == found.name {
				x.add(nameUse{kind: textName, entity: v, user: at.user}, field.Span().File, start+found.start, start+found.end)
			}
		}
	}
}

// expression adds all occurrences of variables in an expression; the validator
// links each variable once.
func (x *nameIndex) expression(e *spec.Expression, at nameScope) {
	if e.Span.File == nil {
		return
	}
	l := x.analysis.linesOf(e.Span.File)
	start, end := l.sourceOffsets(e.Span)
	for _, found := range expressionNames(l.text[start:end]) {
		for i := range e.Vars {
			if v := e.Vars[i].To; v != nil && v.ID == found.name {
				x.add(nameUse{kind: textName, entity: v, user: at.user}, e.Span.File, start+found.start, start+found.end)
			}
		}
	}
}

// bindings adds the left sides of bindings.
func (x *nameIndex) bindings(place *spec.Position, variables []*spec.Variable, at nameScope) {
	for _, v := range variables {
		if p, ok := place.Lookup(v.ID); ok {
			x.addSpan(nameUse{kind: bindingName, entity: v, user: at.user}, p.Key, v.ID)
		}
	}
}

// textSpan is a name in a text, with its offsets in bytes.
type textSpan struct {
	name       string
	start, end int
}

// queryParameter matches :name in an SQL text.
var queryParameter = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`:([\pL_][\pL\pN_]*)`) })

// queryParameters returns the names of the parameters in an SQL text.
func queryParameters(text string) []textSpan {
	var found []textSpan
	for _, m := range queryParameter().FindAllStringSubmatchIndex(text, -1) {
		found = append(found, textSpan{text[m[2]:m[3]], m[2], m[3]})
	}
	return found
}

// expressionNames returns the names in an expression as it is written: outside of
// its string literals and not after a dot.
func expressionNames(text string) []textSpan {
	var found []textSpan
	from := 0
	if len(text) > 1 && (text[0] == '"' || text[0] == '\'') && text[len(text)-1] == text[0] {
		from, text = 1, text[:len(text)-1] // the quotes of YAML
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
				found = append(found, textSpan{text[at:end], at, end})
			}
			at = end - 1
		}
	}
	return found
}

// placeholders returns the names of {name}, {name!r} and {name:>8} in a text as it
// is written. {{ and }} are braces, ${NAME} is an environment variable.
func placeholders(text string) []textSpan {
	var found []textSpan
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
			found = append(found, textSpan{name, at + 1, at + 1 + len(name)})
			at += end + 1
		}
	}
	return found
}
