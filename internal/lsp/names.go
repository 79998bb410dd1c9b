package lsp

import (
	"reflect"
	"regexp"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/internal/lsp/outline"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/source"
)

// nameKind is how a document names an entity.
type nameKind uint8

const (
	declaredName  nameKind = iota // the id in its declaration
	referenceName                 // a reference
	typeName                      // a type expression
	textName                      // a name within a text
	bindingName                   // the left side of a binding
)

// nameUse is an occurrence of the name of an entity.
type nameUse struct {
	kind       nameKind
	path       string
	file       *source.File
	start, end int // offsets of the name, without quotes
	entity     spec.Entity
	id         declaration
	user       string // the entity with the occurrence, such as step "draft"; empty for a declaration
}

// declaration identifies an entity by the position of its declaration. An alias
// yields two values of one text, which are one entity to the user.
type declaration struct {
	path  string
	start int
}

// nameIndex holds all names of entities in a document.
type nameIndex struct {
	uses         []nameUse
	seen         map[spanKey]bool
	analysis     *analysis
	declarations map[spec.Entity]declaration
}

type spanKey struct {
	path       string
	start, end int
}

// newNameIndex indexes a linked document.
func newNameIndex(a *analysis) *nameIndex {
	x := &nameIndex{analysis: a, seen: map[spanKey]bool{}, declarations: map[spec.Entity]declaration{}}
	x.walk(reflect.ValueOf(a.doc), nameScope{})
	return x
}

// nameScope is the context of a value.
type nameScope struct {
	user string // see nameUse
}

// walk indexes the values below v. References are leaves.
func (x *nameIndex) walk(v reflect.Value, at nameScope) {
	switch v.Kind() {
	case reflect.Interface:
		x.walk(v.Elem(), at)
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		if e, ok := v.Interface().(spec.Entity); ok {
			at.user = string(e.Kind()) + " " + quote(e.EntityID())
			x.declare(e)
		}
		if n, ok := v.Interface().(spec.Node); ok {
			x.textNames(n, at)
		}
		x.walk(v.Elem(), at)
	case reflect.Slice:
		for i := range v.Len() {
			x.walk(v.Index(i), at)
		}
	case reflect.Struct:
		x.structFields(v, at)
	}
}

// structFields indexes the fields of a struct, unless it is a leaf.
func (x *nameIndex) structFields(v reflect.Value, at nameScope) {
	if !v.CanAddr() {
		return
	}
	switch n := v.Addr().Interface().(type) {
	case *spec.Type, *spec.Positioned:
		return
	case spec.Reference:
		x.reference(n, at)
		return
	case *spec.Expression:
		x.expression(n, at)
		return
	case *spec.StepItem:
		if !spec.IsEmpty(&n.Ref) {
			x.reference(&n.Ref, at)
			return
		}
	}
	t := v.Type()
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() && f.Tag.Get("yaml") != "-" {
			x.walk(v.Field(i), at)
		}
	}
}

// declare adds the id of an entity.
func (x *nameIndex) declare(e spec.Entity) {
	place, ok := e.Position().Lookup("id")
	if !ok || e.EntityID() == "" {
		return
	}
	x.addSpan(nameUse{kind: declaredName, entity: e}, place.Span(), e.EntityID())
}

// declarationOf returns the declaration of an entity.
func (x *nameIndex) declarationOf(e spec.Entity) (declaration, bool) {
	if d, known := x.declarations[e]; known {
		return d, true
	}
	place, ok := e.Position().Lookup("id")
	if !ok {
		return declaration{}, false
	}
	span := place.Span()
	if span.File == nil {
		return declaration{}, false
	}
	start, _ := x.analysis.linesOf(span.File).sourceOffsets(span)
	d := declaration{x.analysis.pathOf(span.File), start}
	x.declarations[e] = d
	return d, true
}

// reference adds a linked reference.
func (x *nameIndex) reference(r spec.Reference, at nameScope) {
	id, span := spec.Target(r)
	if r.Entity() == nil {
		return
	}
	x.addSpan(nameUse{kind: referenceName, entity: r.Entity(), user: at.user}, span, id)
}

// addSpan adds a name at a span that contains it, usually nothing else.
func (x *nameIndex) addSpan(u nameUse, span source.Span, name string) {
	if span.File == nil {
		return
	}
	l := x.analysis.linesOf(span.File)
	start, end := l.sourceOffsets(span)
	if end > len(l.text) {
		return
	}
	written := l.text[start:end]
	if i := strings.Index(written, name); i >= 0 && len(written)-len(name) <= 2 { // in quotes
		start, end = start+i, start+i+len(name)
	}
	x.add(u, span.File, start, end)
}

// add adds a name. An alias leads to the same text several times; it is added once.
func (x *nameIndex) add(u nameUse, file *source.File, start, end int) {
	id, ok := x.declarationOf(u.entity)
	key := spanKey{x.analysis.pathOf(file), start, end}
	if !ok || x.seen[key] {
		return
	}
	x.seen[key] = true
	u.path, u.file, u.start, u.end, u.id = key.path, file, start, end, id
	x.uses = append(x.uses, u)
}

// at returns the name at an offset of a file, nil for none.
func (x *nameIndex) at(path string, offset int) *nameUse {
	for i := range x.uses {
		if u := &x.uses[i]; u.path == path && u.start <= offset && offset <= u.end {
			return u
		}
	}
	return nil
}

// usesOf returns the names of an entity in the order of the walk.
func (x *nameIndex) usesOf(id declaration) []nameUse {
	var found []nameUse
	for _, u := range x.uses {
		if u.id == id {
			found = append(found, u)
		}
	}
	return found
}

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
