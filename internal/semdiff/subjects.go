package semdiff

import (
	"fmt"

	"github.com/qtype-dev/qtype/spec"
)

// application compares what the documents say of themselves.
func (c *comparison) application() {
	before, after := c.old.document.Application, c.new.document.Application
	c.rules = rules()
	c.roles = usage(c.old, c.read)
	for id, u := range usage(c.new, c.read) {
		c.roles[id] |= u
	}
	if before == nil || after == nil {
		if (before == nil) != (after == nil) {
			c.add(Change{Class: Breaking, What: Changed, Kind: spec.KindApplication, Message: "an application became a list of components, or the other way round"})
		}
		return
	}
	if before.ID != after.ID {
		change := Change{Class: Harmless, What: Renamed, Kind: spec.KindApplication, ID: after.ID,
			Message: renamedFrom(before.ID), Old: Version{idPlace(before), plain(before.ID)}, New: Version{idPlace(after), plain(after.ID)}}
		if len(before.Memories) > 0 {
			change.Class, change.Reason = Breaking, "stored conversations are kept under the application's id: they are not found again"
		}
		c.add(change)
	}
	if before.Description != after.Description {
		c.add(Change{Class: Harmless, What: Changed, Kind: spec.KindApplication, ID: after.ID, Field: "description", Message: "description: another text",
			Old: Version{Span: before.Place().Field("description").Span()}, New: Version{Span: after.Place().Field("description").Span()}})
	}
	c.defaultStore(before, after)
}

// defaultStore tells where memories that name no store live now: in the first one.
func (c *comparison) defaultStore(before, after *spec.Application) {
	first := func(app *spec.Application) (string, Version) {
		if len(app.Stores) == 0 {
			return "", Version{app.Place().Field("stores").Span(), "the embedded file"}
		}
		return c.read.idOf(app.Stores[0]), Version{idPlace(app.Stores[0]), plain(app.Stores[0].ID)}
	}
	old, was := first(before)
	now, is := first(after)
	if old == now {
		return
	}
	for _, m := range before.Memories {
		if m.Store.IsZero() {
			c.add(Change{Class: Breaking, What: Changed, Kind: spec.KindApplication, ID: after.ID, Field: "stores",
				Message: fmt.Sprintf("memories that name no store live in %s, not in %s", is.Value, was.Value),
				Reason:  "conversations that are stored already are not found again", Old: was, New: is})
			return
		}
	}
}

// subjects compares everything that has an id, flows' variables and the lists
// of a flow aside.
func (c *comparison) subjects() {
	paired := map[*comparedEntity]bool{}
	for _, p := range c.pairs {
		paired[p.old], paired[p.new] = true, true
		c.pair(p)
	}
	for _, s := range c.old.subjects {
		if !paired[s] && s.entity.Kind() != spec.KindStep {
			change := whole(Removed, s)
			change.Old = Version{Span: s.place()}
			verdict := rulesOf(s.entity.Kind()).removed
			change.Class, change.Reason = verdict.impact, verdict.reason
			c.add(change)
		}
	}
	for _, s := range c.new.subjects {
		if !paired[s] && s.entity.Kind() != spec.KindStep {
			change := whole(Added, s)
			change.New = Version{Span: s.place()}
			change.Class = Harmless
			c.add(change)
		}
	}
}

// pair compares an entity of both documents key by key.
func (c *comparison) pair(p pair) {
	rules := rulesOf(p.new.entity.Kind())
	if p.old.id() != p.new.id() {
		change := whole(Renamed, p.new)
		change.Message = renamedFrom(p.old.id())
		change.Class, change.Reason = rules.renamed.impact, rules.renamed.reason
		change.Old, change.New = Version{p.old.place(), plain(p.old.id())}, Version{p.new.place(), plain(p.new.id())}
		c.add(change)
	}
	apart := append([]string{"id"}, rules.excluded...)
	c.read.words = c.read.wordsOf(p.old.flow)
	before := c.read.entity(p.old.entity, apart...)
	c.read.words = nil
	after := c.read.entity(p.new.entity, apart...)
	c.fields(p, "", before, after)
	if rules.compare != nil {
		rules.compare(c, p)
	}
}

// fields compares two trees and adds what differs, as deep as the keys are the same.
func (c *comparison) fields(p pair, path string, before, after *tree) {
	unordered := isSet(path)
	if before.same(after) || unordered && before.sorted().same(after.sorted()) {
		return
	}
	switch {
	case before.shape == record && after.shape == record:
		for _, key := range keysOf(before, after) {
			c.fields(p, join(path, key), before.find(key), after.find(key))
		}
	case before.shape == list && after.shape == list && len(before.parts) == len(after.parts) && !unordered && !before.flat():
		for i := range before.parts {
			c.fields(p, fmt.Sprintf("%s[%d]", path, i+1), before.parts[i].tree, after.parts[i].tree)
		}
	default:
		d := valueChange{pair: p, key: path, old: before, new: after}
		change := whole(Changed, p.new)
		change.Field = path
		change.Class, change.Reason = c.rules.judge(p.new.entity.Kind(), d)
		d.show(&change)
		c.add(change)
	}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func renamedFrom(id string) string { return "renamed from " + plain(id) }
