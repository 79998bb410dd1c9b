package semdiff

import (
	"reflect"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/source"
)

// comparedEntity is an entity with the flow that contains it.
type comparedEntity struct {
	entity spec.Entity
	flow   *spec.Flow // for a step; nil otherwise
}

func (s *comparedEntity) id() string { return s.entity.EntityID() }

func (s *comparedEntity) flowID() string {
	if s.flow == nil {
		return ""
	}
	return s.flow.ID
}

// span returns the position of the entity's id.
func (s *comparedEntity) span() source.Span { return idSpan(s.entity) }

func idSpan(e spec.Entity) source.Span { return e.Position().Field("id").Span() }

// key identifies an entity: ids are unique in a document, but an id may get another
// kind.
type key struct {
	kind spec.Kind
	id   string
}

// inventory lists the entities of a document and its references.
type inventory struct {
	document *spec.Document
	entities []*comparedEntity // in document order, without variables
	byKey    map[key]*comparedEntity
	flows    []*spec.Flow
}

func collect(doc *spec.Document) *inventory {
	inv := &inventory{document: doc, byKey: map[key]*comparedEntity{}}
	inv.add(doc)
	return inv
}

// add adds the entities in all fields of a document.
func (inv *inventory) add(doc *spec.Document) {
	inv.addFields(reflect.ValueOf(doc).Elem())
	app := doc.Application
	if app == nil {
		return
	}
	inv.addFields(reflect.ValueOf(app).Elem())
	for _, ref := range app.References {
		if ref != nil {
			inv.add(ref)
		}
	}
}

// addFields adds the entities in the fields of a struct and in their lists.
func (inv *inventory) addFields(v reflect.Value) {
	for i := range v.NumField() {
		f := v.Field(i)
		if !v.Type().Field(i).IsExported() {
			continue
		}
		if f.Kind() != reflect.Slice {
			inv.addValue(f)
			continue
		}
		for j := range f.Len() {
			inv.addValue(f.Index(j))
		}
	}
}

// addValue adds a value that is an entity, except applications, which are compared
// separately.
func (inv *inventory) addValue(v reflect.Value) {
	if k := v.Kind(); k != reflect.Pointer && k != reflect.Interface || v.IsNil() {
		return
	}
	e, ok := v.Interface().(spec.Entity)
	if !ok || e.Kind() == spec.KindApplication {
		return
	}
	inv.addEntity(&comparedEntity{entity: e})
	f, ok := e.(*spec.Flow)
	if !ok {
		return
	}
	inv.flows = append(inv.flows, f)
	for _, item := range f.Steps {
		if item != nil && item.Step != nil && spec.IsEmpty(&item.Ref) {
			inv.addEntity(&comparedEntity{entity: item.Step, flow: f})
		}
	}
}

func (inv *inventory) addEntity(s *comparedEntity) {
	k := key{s.entity.Kind(), s.id()}
	if inv.byKey[k] == nil {
		inv.byKey[k] = s
		inv.entities = append(inv.entities, s)
	}
}

func (inv *inventory) ofKind(kind spec.Kind) []*comparedEntity {
	var found []*comparedEntity
	for _, s := range inv.entities {
		if s.entity.Kind() == kind {
			found = append(found, s)
		}
	}
	return found
}
