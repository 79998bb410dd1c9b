package lsp

import (
	"reflect"
	"strings"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/source"
)

// useKind is how an entity is named at a place.
type nameKind uint8

const (
	declaredName  nameKind = iota // its id, where it is declared
	referenceName                 // a reference
	typeName                      // a type expression
	textName                      // a placeholder in a text
	bindingName                   // the name in a binding
)

// use is a place that names an entity.
type nameUse struct {
	kind       nameKind
	path       string
	file       *source.File
	start, end int // bytes of the name itself, without quotes
	entity     spec.Entity
	id         declaration // the entity's identity
	user       string      // who names it there: step "draft"; empty for a declaration
}

// declaration is where an entity is declared. An alias makes two values of one
// text; they are one entity to somebody who edits it.
type declaration struct {
	path  string
	start int
}

// index is every place of a document that names an entity.
type nameIndex struct {
	uses         []nameUse
	seen         map[placeKey]bool
	analysis     *analysis
	declarations map[spec.Entity]declaration
}

type placeKey struct {
	path       string
	start, end int
}

// indexOf walks a linked document.
func newNameIndex(a *analysis) *nameIndex {
	x := &nameIndex{analysis: a, seen: map[placeKey]bool{}, declarations: map[spec.Entity]declaration{}}
	x.walk(reflect.ValueOf(a.doc), nameScope{})
	return x
}

// scope is what stands around a value.
type nameScope struct {
	user string // the nearest entity in a user's words
}

// walk visits everything below v. References are leaves.
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

// structure visits the fields of a struct, unless it is a leaf.
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
		if !n.Ref.IsZero() {
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

// declare adds the place of an entity's id.
func (x *nameIndex) declare(e spec.Entity) {
	place, ok := e.Place().Lookup("id")
	if !ok || e.EntityID() == "" {
		return
	}
	x.addSpan(nameUse{kind: declaredName, entity: e}, place.Span(), e.EntityID())
}

// identity is where an entity is declared.
func (x *nameIndex) declarationOf(e spec.Entity) (declaration, bool) {
	if d, known := x.declarations[e]; known {
		return d, true
	}
	place, ok := e.Place().Lookup("id")
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

// reference adds a reference that was linked.
func (x *nameIndex) reference(r spec.Reference, at nameScope) {
	id, span := r.Target()
	if !r.Linked() {
		return
	}
	x.addSpan(nameUse{kind: referenceName, entity: r.Entity(), user: at.user}, span, id)
}

// add keeps a use at a span that holds a name, mostly the whole span.
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
	if i := strings.Index(written, name); i >= 0 && len(written)-len(name) <= 2 { // quotes around it
		start, end = start+i, start+i+len(name)
	}
	x.add(u, span.File, start, end)
}

// keep adds a use once; an alias leads to the same place several times.
func (x *nameIndex) add(u nameUse, file *source.File, start, end int) {
	id, ok := x.declarationOf(u.entity)
	key := placeKey{x.analysis.pathOf(file), start, end}
	if !ok || x.seen[key] {
		return
	}
	x.seen[key] = true
	u.path, u.file, u.start, u.end, u.id = key.path, file, start, end, id
	x.uses = append(x.uses, u)
}

// at finds the use at a byte of a file; nil for none.
func (x *nameIndex) at(path string, offset int) *nameUse {
	for i := range x.uses {
		if u := &x.uses[i]; u.path == path && u.start <= offset && offset <= u.end {
			return u
		}
	}
	return nil
}

// all are the uses of one entity, in the order in which they were found.
func (x *nameIndex) usesOf(id declaration) []nameUse {
	var found []nameUse
	for _, u := range x.uses {
		if u.id == id {
			found = append(found, u)
		}
	}
	return found
}
