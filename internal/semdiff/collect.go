package semdiff

import (
	"fmt"
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

// compareApplication compares the settings of the applications themselves.
func (c *comparison) compareApplication() {
	before, after := c.old.document.Application, c.new.document.Application
	c.rules = rules()
	c.typeUses = typeUsesOf(c.old, c.read)
	for id, u := range typeUsesOf(c.new, c.read) {
		c.typeUses[id] |= u
	}
	if before == nil || after == nil {
		if (before == nil) != (after == nil) {
			c.add(Change{Impact: Breaking, Action: Changed, Kind: spec.KindApplication, Message: "an application became a list of components, or vice versa"})
		}
		return
	}
	if before.ID != after.ID {
		change := Change{Impact: Harmless, Action: Renamed, Kind: spec.KindApplication, ID: after.ID,
			Message: renamedFrom(before.ID), Old: Version{idSpan(before), printable(before.ID)}, New: Version{idSpan(after), printable(after.ID)}}
		if len(before.Memories) > 0 {
			change.Impact, change.Reason = Breaking, "stored conversations are keyed by the application's id: they will not be found"
		}
		c.add(change)
	}
	if before.Description != after.Description {
		c.add(Change{Impact: Harmless, Action: Changed, Kind: spec.KindApplication, ID: after.ID, Field: "description", Message: "description: text changed",
			Old: Version{Span: before.Position().Field("description").Span()}, New: Version{Span: after.Position().Field("description").Span()}})
	}
	c.compareDefaultStore(before, after)
}

// compareDefaultStore compares the first stores, which hold the memories that name
// no store.
func (c *comparison) compareDefaultStore(before, after *spec.Application) {
	first := func(app *spec.Application) (string, Version) {
		if len(app.Stores) == 0 {
			return "", Version{app.Position().Field("stores").Span(), "the embedded file"}
		}
		return c.read.idOf(app.Stores[0]), Version{idSpan(app.Stores[0]), printable(app.Stores[0].ID)}
	}
	old, was := first(before)
	now, is := first(after)
	if old == now {
		return
	}
	for _, m := range before.Memories {
		if m.Store.IsZero() {
			c.add(Change{Impact: Breaking, Action: Changed, Kind: spec.KindApplication, ID: after.ID, Field: "stores",
				Message: fmt.Sprintf("memories that name no store live in %s, not in %s", is.Value, was.Value),
				Reason:  "stored conversations will not be found", Old: was, New: is})
			return
		}
	}
}

// compareEntities compares the entities of both documents and adds entities of only one.
func (c *comparison) compareEntities() {
	paired := map[*comparedEntity]bool{}
	for _, p := range c.pairs {
		paired[p.old], paired[p.new] = true, true
		c.comparePair(p)
	}
	for _, s := range c.old.entities {
		if !paired[s] && s.entity.Kind() != spec.KindStep {
			change := entityChange(Removed, s)
			change.Old = Version{Span: s.span()}
			verdict := rulesOf(s.entity.Kind()).removed
			change.Impact, change.Reason = verdict.impact, verdict.reason
			c.add(change)
		}
	}
	for _, s := range c.new.entities {
		if !paired[s] && s.entity.Kind() != spec.KindStep {
			change := entityChange(Added, s)
			change.New = Version{Span: s.span()}
			change.Impact = Harmless
			c.add(change)
		}
	}
}

// comparePair compares an entity of both documents key by key.
func (c *comparison) comparePair(p pair) {
	rules := rulesOf(p.new.entity.Kind())
	if p.old.id() != p.new.id() {
		change := entityChange(Renamed, p.new)
		change.Message = renamedFrom(p.old.id())
		change.Impact, change.Reason = rules.renamed.impact, rules.renamed.reason
		change.Old, change.New = Version{p.old.span(), printable(p.old.id())}, Version{p.new.span(), printable(p.new.id())}
		c.add(change)
	}
	excluded := append([]string{"id"}, rules.excluded...)
	c.read.variableNames = c.read.renamedVariables(p.old.flow)
	before := c.read.readEntity(p.old.entity, excluded...)
	c.read.variableNames = nil
	after := c.read.readEntity(p.new.entity, excluded...)
	c.compareTrees(p, "", before, after)
	if rules.compare != nil {
		rules.compare(c, p)
	}
}

// compareTrees adds the differences of two trees, at the deepest keys that both
// have.
func (c *comparison) compareTrees(p pair, path string, before, after *tree) {
	unordered := isUnordered(path)
	if before.equal(after) || unordered && before.sorted().equal(after.sorted()) {
		return
	}
	switch {
	case before.shape == record && after.shape == record:
		for _, key := range keysOf(before, after) {
			c.compareTrees(p, join(path, key), before.get(key), after.get(key))
		}
	case before.shape == list && after.shape == list && len(before.parts) == len(after.parts) && !unordered && !before.isFlat():
		for i := range before.parts {
			c.compareTrees(p, fmt.Sprintf("%s[%d]", path, i+1), before.parts[i].tree, after.parts[i].tree)
		}
	default:
		d := valueChange{pair: p, key: path, old: before, new: after}
		change := entityChange(Changed, p.new)
		change.Field = path
		change.Impact, change.Reason = c.rules.judge(p.new.entity.Kind(), d)
		d.describe(&change)
		c.add(change)
	}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func renamedFrom(id string) string { return "renamed from " + printable(id) }
