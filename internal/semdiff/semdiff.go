// Package semdiff compares the meaning of two documents and rates each change by
// whom it affects: callers of the flows, readers of the answers, or only its
// authors.
//
// Loaded and linked documents are compared entity by entity, by id. Layout,
// comments, the order of sections, explicit defaults and parts that move to an
// include are no differences. What is compared follows from the structs and tags of
// package spec, so a new key is compared without code here; this package only rates
// the changes.
package semdiff

import (
	"cmp"
	"slices"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/source"
)

// Impact rates a change.
type Impact string

// The impacts, worst first.
const (
	// Breaking changes affect callers and stored data: flow inputs and outputs,
	// memory settings and tools that no longer fit their users.
	Breaking Impact = "breaking"
	// Behaviour changes affect the answers, or what they cost.
	Behaviour Impact = "behaviour"
	// Harmless changes add something, or concern only the document's authors.
	Harmless Impact = "harmless"
)

// impacts returns the impacts, worst first.
func impacts() []Impact { return []Impact{Breaking, Behaviour, Harmless} }

// ChangeKind is what happened to the subject of a change.
type ChangeKind string

// The kinds of changes.
const (
	Added   ChangeKind = "added"
	Removed ChangeKind = "removed"
	Renamed ChangeKind = "renamed"
	Moved   ChangeKind = "moved"
	Changed ChangeKind = "changed"
)

// Version is the state in one of the two documents.
type Version struct {
	Span  source.Span // zero if the document does not have it
	Value string      // formatted and without secrets; empty if the change is not one of a value
}

// Change is a difference in meaning.
type Change struct {
	Impact  Impact     // its rating
	Action  ChangeKind // what happened
	Kind    spec.Kind  // the kind of the entity
	ID      string     // its id in the new document, or in the old one if it was removed
	Flow    string     // the flow of a step or variable; empty otherwise
	Field   string     // the key, with dots; empty if the whole entity changed
	Message string     // the change in one line, without the entity's name
	Reason  string     // of the impact, in one line; may be empty
	Lines   []string   // for texts of several lines: removed lines after "- ", added ones after "+ "
	Old     Version    // in the old document
	New     Version    // in the new document
}

// Count returns the number of changes with an impact.
func Count(changes []Change, impact Impact) int {
	n := 0
	for _, c := range changes {
		if c.Impact == impact {
			n++
		}
	}
	return n
}

// Documents compares two documents that are free of errors. The changes are sorted
// by impact, worst first, then by the kind of entity.
func Documents(before, after *spec.Document) []Change {
	c := &comparison{old: collect(before), new: collect(after), read: &reader{}}
	c.matchEntities()
	c.compareApplication()
	c.compareEntities()
	c.compareFlows()
	slices.SortStableFunc(c.changes, func(a, b Change) int {
		return cmp.Or(impactRank(a.Impact)-impactRank(b.Impact), kindRank(a.Kind)-kindRank(b.Kind))
	})
	return c.changes
}

// comparison is the state of one Documents call.
type comparison struct {
	old, new *inventory
	read     *reader // reads entities as trees; those of the old document under their new names
	pairs    []pair  // the entities that both documents have
	rules    impactRules
	typeUses map[string]typeUse // the uses of custom types, by new id
	changes  []Change
}

// pair is an entity that both documents have.
type pair struct {
	old, new *comparedEntity
}

func (c *comparison) add(change Change) { c.changes = append(c.changes, change) }

// entityChange returns a change of a whole entity.
func entityChange(action ChangeKind, s *comparedEntity) Change {
	return Change{Action: action, Kind: s.entity.Kind(), ID: s.id(), Flow: s.flowID(), Message: string(action)}
}

func impactRank(c Impact) int { return slices.Index(impacts(), c) }

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
