package spec

import (
	"reflect"

	"github.com/qtype-dev/qtype/spec/source"
)

// Ref names another entity by its id. The loader fills ID and Span; validate
// fills To, once it has found the entity.
type Ref[T Entity] struct {
	ID   string      // the text of the document; empty means no reference
	Span source.Span // its position
	To   T           // the thing that the id names; the zero T before linking
}

// Reference is a Ref of any target type.
type Reference interface {
	// Target returns the id and its span.
	Target() (id string, span source.Span)
	// Set sets the text of the document; for the loader.
	Set(id string, span source.Span)
	// Link points the reference to e and reports whether e is of the right kind.
	Link(e Entity) bool
	// Linked reports whether Link succeeded.
	Linked() bool
	// Entity is what the reference was linked to, nil before.
	Entity() Entity
	// TargetType is the Go type that the reference accepts: a pointer to a struct or an interface of this package.
	TargetType() reflect.Type
}

// Target returns the id and its span.
func (r *Ref[T]) Target() (string, source.Span) { return r.ID, r.Span }

// Set sets the text of the document.
func (r *Ref[T]) Set(id string, span source.Span) { r.ID, r.Span = id, span }

// Link points the reference to e and reports whether e is of the right kind.
func (r *Ref[T]) Link(e Entity) bool {
	t, ok := e.(T)
	if ok {
		r.To = t
	}
	return ok
}

// Linked reports whether Link succeeded.
func (r *Ref[T]) Linked() bool { return !reflect.ValueOf(&r.To).Elem().IsZero() }

// Entity is what the reference was linked to, nil before.
func (r *Ref[T]) Entity() Entity {
	if !r.Linked() {
		return nil
	}
	return r.To
}

// TargetType is the Go type that the reference accepts.
func (r *Ref[T]) TargetType() reflect.Type { return reflect.TypeFor[T]() }

// IsZero reports whether the document names nothing here.
func (r *Ref[T]) IsZero() bool { return r.ID == "" && r.Span.IsZero() }
