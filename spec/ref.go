package spec

import (
	"reflect"

	"github.com/qtype-dev/qtype/spec/source"
)

// Ref names another entity by its id. The loader fills ID and Span; validate
// fills To, once it has found the entity.
//
// Each package that uses an entity compiles the methods of its Refs again, once for each type of target: they are few,
// and mention nothing of package reflect, which has hundreds more.
type Ref[T Entity] struct {
	ID   string      // the text of the document; empty means no reference
	Span source.Span // its position
	To   T           // the thing that the id names; the zero T before linking
}

// Reference is a pointer to a Ref of any target type.
type Reference interface {
	// Text returns where the id and its position are stored. Only the loader changes them.
	Text() (id *string, span *source.Span)
	// Link points the reference to e and reports whether e is of the right kind.
	Link(e Entity) bool
	// Entity is what the reference was linked to, nil before.
	Entity() Entity
}

// Text returns where the id and its position are stored.
func (r *Ref[T]) Text() (id *string, span *source.Span) { return &r.ID, &r.Span }

// Link points the reference to e and reports whether e is of the right kind.
func (r *Ref[T]) Link(e Entity) bool {
	t, ok := e.(T)
	if ok {
		r.To = t
	}
	return ok
}

// Entity is what the reference was linked to, nil before.
func (r *Ref[T]) Entity() Entity {
	var none T
	if any(r.To) == any(none) {
		return nil
	}
	return r.To
}

// Target returns the id of a reference and its position. Both are empty if the document names nothing there.
func Target(r Reference) (id string, span source.Span) {
	text, at := r.Text()
	return *text, *at
}

// TargetType is the Go type that a reference accepts: a pointer to a struct or an interface of this package.
func TargetType(r Reference) reflect.Type {
	to, _ := reflect.TypeOf(r).Elem().FieldByName("To")
	return to.Type
}

// IsEmpty reports whether the document names nothing in the place of a reference.
func IsEmpty(r Reference) bool {
	id, span := r.Text()
	return *id == "" && span.IsZero()
}
