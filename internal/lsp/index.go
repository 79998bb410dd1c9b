package lsp

import (
	"reflect"
	"strings"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/source"
)

// useKind is how an entity is named at a place.
type useKind uint8

const (
	declared useKind = iota // its id, where it is declared
	named                   // a reference
	typed                   // a type expression
	filledIn                // a placeholder in a text
	boundTo                 // the name in a binding
)

// use is a place that names an entity.
type use struct {
	kind       useKind
	path       string
	file       *source.File
	start, end int // bytes of the name itself, without quotes
	entity     spec.Entity
	id         declaration // the entity's identity
	by         string      // who names it there: step "draft"; empty for a declaration
}

// declaration is where an entity is declared. An alias makes two values of one
// text; they are one entity to somebody who edits it.
type declaration struct {
	path  string
	start int
}

// index is every place of a document that names an entity.
type index struct {
	uses  []use
	seen  map[placeKey]bool
	of    *analysis
	decls map[spec.Entity]declaration
}

type placeKey struct {
	path       string
	start, end int
}

// indexOf walks a linked document.
func indexOf(a *analysis) *index {
	x := &index{of: a, seen: map[placeKey]bool{}, decls: map[spec.Entity]declaration{}}
	x.walk(reflect.ValueOf(a.doc), scope{})
	return x
}

// scope is what stands around a value.
type scope struct {
	by string // the nearest entity in a user's words
}

// walk visits everything below v. References are leaves.
func (x *index) walk(v reflect.Value, at scope) {
	switch v.Kind() {
	case reflect.Interface:
		x.walk(v.Elem(), at)
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		if e, ok := v.Interface().(spec.Entity); ok {
			at.by = string(e.Kind()) + " " + quote(e.EntityID())
			x.declare(e)
		}
		if n, ok := v.Interface().(spec.Node); ok {
			x.texts(n, at)
		}
		x.walk(v.Elem(), at)
	case reflect.Slice:
		for i := range v.Len() {
			x.walk(v.Index(i), at)
		}
	case reflect.Struct:
		x.structure(v, at)
	}
}

// structure visits the fields of a struct, unless it is a leaf.
func (x *index) structure(v reflect.Value, at scope) {
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
func (x *index) declare(e spec.Entity) {
	place, ok := e.Place().Lookup("id")
	if !ok || e.EntityID() == "" {
		return
	}
	x.add(use{kind: declared, entity: e}, place.Span(), e.EntityID())
}

// identity is where an entity is declared.
func (x *index) identity(e spec.Entity) (declaration, bool) {
	if d, known := x.decls[e]; known {
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
	start, _ := x.of.linesOf(span.File).bytesOf(span)
	d := declaration{x.of.pathOf(span.File), start}
	x.decls[e] = d
	return d, true
}

// reference adds a reference that was linked.
func (x *index) reference(r spec.Reference, at scope) {
	id, span := r.Target()
	if !r.Linked() {
		return
	}
	to := reflect.ValueOf(r).Elem().FieldByName("To")
	if e, ok := to.Interface().(spec.Entity); ok {
		x.add(use{kind: named, entity: e, by: at.by}, span, id)
	}
}

// add keeps a use at a span that holds a name, mostly the whole span.
func (x *index) add(u use, span source.Span, name string) {
	if span.File == nil {
		return
	}
	l := x.of.linesOf(span.File)
	start, end := l.bytesOf(span)
	if end > len(l.text) {
		return
	}
	written := l.text[start:end]
	if i := strings.Index(written, name); i >= 0 && len(written)-len(name) <= 2 { // quotes around it
		start, end = start+i, start+i+len(name)
	}
	x.keep(u, span.File, start, end)
}

// keep adds a use once; an alias leads to the same place several times.
func (x *index) keep(u use, file *source.File, start, end int) {
	id, ok := x.identity(u.entity)
	key := placeKey{x.of.pathOf(file), start, end}
	if !ok || x.seen[key] {
		return
	}
	x.seen[key] = true
	u.path, u.file, u.start, u.end, u.id = key.path, file, start, end, id
	x.uses = append(x.uses, u)
}

// at finds the use at a byte of a file; nil for none.
func (x *index) at(path string, offset int) *use {
	for i := range x.uses {
		if u := &x.uses[i]; u.path == path && u.start <= offset && offset <= u.end {
			return u
		}
	}
	return nil
}

// all are the uses of one entity, in the order in which they were found.
func (x *index) all(id declaration) []use {
	var found []use
	for _, u := range x.uses {
		if u.id == id {
			found = append(found, u)
		}
	}
	return found
}
