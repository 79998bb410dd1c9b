package semdiff

import (
	"slices"

	"github.com/qtype-dev/qtype/spec"
)

// use is what a custom type's values are used for.
type use uint

// The uses that somebody outside of the document relies on.
const (
	given  use = 1 << iota // callers give it: a flow's input
	got                    // callers get it: a flow's output
	called                 // a tool takes it or gives it
)

// usage tells for each custom type, by its new id, what it is used for,
// directly or as a part of another type.
func usage(inv *inventory, r *reader) map[string]use {
	roles := map[string]use{}
	for _, f := range inv.flows {
		for _, in := range f.Inputs {
			r.mark(roles, in.To, given)
		}
		for _, out := range f.Outputs {
			r.mark(roles, out.To, got)
		}
	}
	for _, s := range inv.of(spec.KindTool) {
		t := s.entity.(spec.Tool)
		for _, v := range slices.Concat(toolInputs(t), t.Common().Outputs) {
			r.mark(roles, v, called)
		}
	}
	return roles
}

func (r *reader) mark(roles map[string]use, v *spec.Variable, u use) {
	if v != nil {
		r.markType(roles, v.Type, u)
	}
}

func (r *reader) markType(roles map[string]use, t spec.Type, u use) {
	for t.Elem != nil {
		t = *t.Elem
	}
	if t.Custom == nil || roles[r.idOf(t.Custom)]&u != 0 {
		return // also where a type holds itself
	}
	roles[r.idOf(t.Custom)] |= u
	for _, p := range t.Custom.Properties {
		r.markType(roles, p.Type, u)
	}
}

// properties compares the fields of a custom type.
func (c *comparison) properties(p pair) {
	before, after := p.old.entity.(*spec.CustomType), p.new.entity.(*spec.CustomType)
	role := c.roles[after.ID]
	place := func(t *spec.CustomType, name, value string) Version {
		return Version{t.Place().Field("properties").Field(name).Span(), plain(value)}
	}
	for _, old := range before.Properties {
		now, ok := property(after, old.Name)
		was := c.read.typeText(old.Type)
		if !ok {
			c.add(c.property(p, old.Name, Removed, "removed", role != 0).at(place(before, old.Name, was), Version{}))
			continue
		}
		is := c.read.typeText(now.Type)
		if was == is {
			continue
		}
		safe := use(0)
		switch { // the same type but for its ?
		case was == is+"?":
			safe = got
		case was+"?" == is:
			safe = given
		}
		change := c.property(p, old.Name, Changed, plain(was)+" → "+plain(is), role != 0)
		if role != 0 && role == safe {
			change.Class, change.Reason = Harmless, ""
		}
		c.add(change.at(place(before, old.Name, was), place(after, old.Name, is)))
	}
	for _, now := range after.Properties {
		if _, ok := property(before, now.Name); ok {
			continue
		}
		is := c.read.typeText(now.Type)
		breaks := role&(given|called) != 0 && !now.Type.Optional
		change := c.property(p, now.Name, Added, "added, "+plain(is), breaks).at(Version{}, place(after, now.Name, is))
		if now.Type.Optional {
			change.Class = Harmless
		}
		c.add(change)
	}
}

// property is a change of a type's field; it breaks callers, or else changes
// what is made and checked inside.
func (c *comparison) property(p pair, name string, what ChangeKind, message string, breaks bool) Change {
	change := whole(what, p.new)
	change.Field, change.Message, change.Class = "properties."+name, "field "+plain(name)+": "+message, Behaviour
	if breaks {
		change.Class, change.Reason = Breaking, roleReason(c.roles[p.new.id()])
	}
	return change
}

func roleReason(u use) string {
	switch {
	case u&given != 0 && u&got != 0:
		return "callers give and get values of the type"
	case u&given != 0:
		return "callers give values of the type"
	case u&got != 0:
		return "callers are given values of the type"
	}
	return "tools take or give values of the type"
}

func property(t *spec.CustomType, name string) (spec.Property, bool) {
	for _, p := range t.Properties {
		if p.Name == name {
			return p, true
		}
	}
	return spec.Property{}, false
}
