package semdiff

import (
	"slices"

	"github.com/qtype-dev/qtype/spec"
)

// typeUse is a set of uses of a custom type.
type typeUse uint

// The uses that others rely on.
const (
	flowInput  typeUse = 1 << iota // an input of a flow
	flowOutput                     // an output of a flow
	toolPort                       // an input or output of a tool
)

// typeUsesOf returns the uses of custom types by new id, including uses as a part
// of another type.
func typeUsesOf(inv *inventory, r *reader) map[string]typeUse {
	roles := map[string]typeUse{}
	for _, f := range inv.flows {
		for _, in := range f.Inputs {
			r.markVariable(roles, in.To, flowInput)
		}
		for _, out := range f.Outputs {
			r.markVariable(roles, out.To, flowOutput)
		}
	}
	for _, s := range inv.ofKind(spec.KindTool) {
		t := s.entity.(spec.Tool)
		for _, v := range slices.Concat(toolInputs(t), t.Common().Outputs) {
			r.markVariable(roles, v, toolPort)
		}
	}
	return roles
}

func (r *reader) markVariable(roles map[string]typeUse, v *spec.Variable, u typeUse) {
	if v != nil {
		r.markType(roles, v.Type, u)
	}
}

func (r *reader) markType(roles map[string]typeUse, t spec.Type, u typeUse) {
	for t.Elem != nil {
		t = *t.Elem
	}
	if t.Custom == nil || roles[r.idOf(t.Custom)]&u != 0 {
		return // visited already; types may be recursive
	}
	roles[r.idOf(t.Custom)] |= u
	for _, p := range t.Custom.Properties {
		r.markType(roles, p.Type, u)
	}
}

// compareProperties compares the fields of a custom type.
func (c *comparison) compareProperties(p pair) {
	before, after := p.old.entity.(*spec.CustomType), p.new.entity.(*spec.CustomType)
	role := c.typeUses[after.ID]
	place := func(t *spec.CustomType, name, value string) Version {
		return Version{t.Position().Field("properties").Field(name).Span(), printable(value)}
	}
	for _, old := range before.Properties {
		now, ok := findProperty(after, old.Name)
		was := c.read.typeText(old.Type)
		if !ok {
			c.add(c.propertyChange(p, old.Name, Removed, "removed", role != 0).withVersions(place(before, old.Name, was), Version{}))
			continue
		}
		is := c.read.typeText(now.Type)
		if was == is {
			continue
		}
		safe := typeUse(0)
		switch { // the types differ only in "?"
		case was == is+"?":
			safe = flowOutput
		case was+"?" == is:
			safe = flowInput
		}
		change := c.propertyChange(p, old.Name, Changed, printable(was)+" → "+printable(is), role != 0)
		if role != 0 && role == safe {
			change.Impact, change.Reason = Harmless, ""
		}
		c.add(change.withVersions(place(before, old.Name, was), place(after, old.Name, is)))
	}
	for _, now := range after.Properties {
		if _, ok := findProperty(before, now.Name); ok {
			continue
		}
		is := c.read.typeText(now.Type)
		breaks := role&(flowInput|toolPort) != 0 && !now.Type.Optional
		change := c.propertyChange(p, now.Name, Added, "added, "+printable(is), breaks).withVersions(Version{}, place(after, now.Name, is))
		if now.Type.Optional {
			change.Impact = Harmless
		}
		c.add(change)
	}
}

// propertyChange returns a change of a field. It breaks the users of the type, or
// else affects values within the document.
func (c *comparison) propertyChange(p pair, name string, action ChangeKind, message string, breaks bool) Change {
	change := entityChange(action, p.new)
	change.Field, change.Message, change.Impact = "properties."+name, "field "+printable(name)+": "+message, Behaviour
	if breaks {
		change.Impact, change.Reason = Breaking, useReason(c.typeUses[p.new.id()])
	}
	return change
}

func useReason(u typeUse) string {
	switch {
	case u&flowInput != 0 && u&flowOutput != 0:
		return "callers give and get values of the type"
	case u&flowInput != 0:
		return "callers give values of the type"
	case u&flowOutput != 0:
		return "callers get values of the type"
	}
	return "tools take or give values of the type"
}

func findProperty(t *spec.CustomType, name string) (spec.Property, bool) {
	for _, p := range t.Properties {
		if p.Name == name {
			return p, true
		}
	}
	return spec.Property{}, false
}
