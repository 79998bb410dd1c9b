package semdiff

import (
	"reflect"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/source"
)

// comparedEntity is an entity of a document and the flow that it belongs to.
type comparedEntity struct {
	entity spec.Entity
	flow   *spec.Flow // for a step the flow that it is written in; nil otherwise
}

func (s *comparedEntity) id() string { return s.entity.EntityID() }

func (s *comparedEntity) flowID() string {
	if s.flow == nil {
		return ""
	}
	return s.flow.ID
}

// place is where the entity's id stands.
func (s *comparedEntity) place() source.Span { return idPlace(s.entity) }

func idPlace(e spec.Entity) source.Span { return e.Place().Field("id").Span() }

// key tells entities apart: ids are unique in a document, but a kind may change.
type key struct {
	kind spec.Kind
	id   string
}

// inventory is everything that a document and its references declare.
type inventory struct {
	document *spec.Document
	subjects []*comparedEntity // in document order; flows' variables and tools' arguments aside
	by       map[key]*comparedEntity
	flows    []*spec.Flow
}

func collect(doc *spec.Document) *inventory {
	inv := &inventory{document: doc, by: map[key]*comparedEntity{}}
	inv.add(doc)
	return inv
}

// add collects a document: every field that holds entities, whatever its name.
func (inv *inventory) add(doc *spec.Document) {
	inv.fields(reflect.ValueOf(doc).Elem())
	app := doc.Application
	if app == nil {
		return
	}
	inv.fields(reflect.ValueOf(app).Elem())
	for _, ref := range app.References {
		if ref != nil {
			inv.add(ref)
		}
	}
}

// fields collects the entities that a struct's fields hold, alone or in lists.
func (inv *inventory) fields(v reflect.Value) {
	for i := range v.NumField() {
		f := v.Field(i)
		if !v.Type().Field(i).IsExported() {
			continue
		}
		if f.Kind() != reflect.Slice {
			inv.one(f)
			continue
		}
		for j := range f.Len() {
			inv.one(f.Index(j))
		}
	}
}

// one collects an entity; the application itself is compared apart.
func (inv *inventory) one(v reflect.Value) {
	if k := v.Kind(); k != reflect.Pointer && k != reflect.Interface || v.IsNil() {
		return
	}
	e, ok := v.Interface().(spec.Entity)
	if !ok || e.Kind() == spec.KindApplication {
		return
	}
	inv.put(&comparedEntity{entity: e})
	f, ok := e.(*spec.Flow)
	if !ok {
		return
	}
	inv.flows = append(inv.flows, f)
	for _, item := range f.Steps {
		if item != nil && item.Step != nil && item.Ref.IsZero() {
			inv.put(&comparedEntity{entity: item.Step, flow: f})
		}
	}
}

func (inv *inventory) put(s *comparedEntity) {
	k := key{s.entity.Kind(), s.id()}
	if inv.by[k] == nil {
		inv.by[k] = s
		inv.subjects = append(inv.subjects, s)
	}
}

// kinds are the kinds of a document's entities, in the order of their first.
func (inv *inventory) of(kind spec.Kind) []*comparedEntity {
	var found []*comparedEntity
	for _, s := range inv.subjects {
		if s.entity.Kind() == kind {
			found = append(found, s)
		}
	}
	return found
}
