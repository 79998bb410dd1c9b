// Package compare tells what changed in meaning between two documents, and who
// would notice: those who call the flows, those who read the answers, or nobody.
//
// Documents are compared as they were read and linked, entity by entity, by
// their ids: layout, comments, the order of sections, defaults that are written
// out and parts that move into an include are no differences. What is compared
// comes from the structs and tags of package spec, so that a new key is compared
// from the day it is declared; package compare only knows how much a change of
// it matters.
package semdiff

import (
	"cmp"
	"slices"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/source"
)

// Impact is how much a change matters.
type Impact string

// The classes, the worst first.
const (
	// Breaking changes concern callers and what is stored: served inputs and
	// outputs, memory settings and tools that no longer fit what relies on them.
	Breaking Impact = "breaking"
	// Behaviour changes what is answered, or what it costs.
	Behaviour Impact = "behaviour"
	// Harmless changes add something, or concern nobody but the document's authors.
	Harmless Impact = "harmless"
)

// classes lists the classes, the worst first.
func classes() []Impact { return []Impact{Breaking, Behaviour, Harmless} }

// ChangeKind happened to the subject of a change.
type ChangeKind string

// The things that can happen.
const (
	Added   ChangeKind = "added"
	Removed ChangeKind = "removed"
	Renamed ChangeKind = "renamed"
	Moved   ChangeKind = "moved"
	Changed ChangeKind = "changed"
)

// Version is what one of the two documents says.
type Version struct {
	Span  source.Span // where; zero where it says nothing
	Value string      // what, fit to be shown; empty where the change is not one of a value
}

// Change is one difference in meaning.
type Change struct {
	Class   Impact     // how much it matters
	What    ChangeKind // what happened
	Kind    spec.Kind  // what the changed thing is
	ID      string     // its id in the new document; in the old one where it was removed
	Flow    string     // the flow of a step or a variable; empty otherwise
	Field   string     // the key below the thing, dotted; empty where the whole thing changed
	Message string     // the change on one line, without the thing's name
	Reason  string     // why it is of this class, one line; may be empty
	Lines   []string   // for texts of several lines: what left, after "- ", and what came, after "+ "
	Old     Version    // what the old document says
	New     Version    // what the new document says
}

// Count is the number of changes of a class.
func Count(changes []Change, class Impact) int {
	n := 0
	for _, c := range changes {
		if c.Class == class {
			n++
		}
	}
	return n
}

// Documents compares two documents that were checked without errors, and lists
// the changes: the worst class first, then in the order of the language's kinds.
func Documents(before, after *spec.Document) []Change {
	c := &comparison{old: collect(before), new: collect(after), read: &reader{}}
	c.match()
	c.application()
	c.subjects()
	c.flows()
	slices.SortStableFunc(c.changes, func(a, b Change) int {
		return cmp.Or(classRank(a.Class)-classRank(b.Class), kindRank(a.Kind)-kindRank(b.Kind))
	})
	return c.changes
}

// comparison is one comparison of two documents.
type comparison struct {
	old, new *inventory
	read     *reader        // reads entities as trees; on the old side under their new names
	pairs    []pair         // what both documents have
	rules    impactRules    // how much changes matter
	roles    map[string]use // what the custom types are used for, by their new ids
	changes  []Change
}

// pair is an entity of both documents.
type pair struct {
	old, new *comparedEntity
}

// add keeps a change.
func (c *comparison) add(change Change) { c.changes = append(c.changes, change) }

// whole is a change of a whole entity, its place being that of its id.
func whole(what ChangeKind, s *comparedEntity) Change {
	return Change{What: what, Kind: s.entity.Kind(), ID: s.id(), Flow: s.flowID(), Message: string(what)}
}

func classRank(c Impact) int { return slices.Index(classes(), c) }
