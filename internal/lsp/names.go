package lsp

import (
	"reflect"
	"strings"

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
