package validate

import (
	"reflect"
	"slices"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// named are the entities that one kind of reference may name.
type named struct {
	ids   []string               // in the order in which they are told
	first map[string]spec.Entity // the first of each id
}

// linkRefs points every reference to what it names and reports those that name
// nothing (QT202, QT205), the wrong kind (QT203) or too much (QT206).
func (p *checker) linkRefs() {
	for _, m := range p.mentions {
		if p.link(m, true) && m.item != nil {
			m.item.Step = m.item.Ref.To
		}
	}
	for _, m := range p.derived {
		p.link(m, false)
	}
}

// link points one reference and tells whether it could.
func (p *checker) link(m reference, report bool) bool {
	id, _ := m.ref.Target()
	found := p.lookup(id, m)
	for _, e := range found {
		if m.ref.Link(e) {
			p.used[e] = true
			return true
		}
	}
	lost := len(found) == 0 && p.unread(m.ref.TargetType()) || len(found) > 0 && (unresolvedInIncomplete(m.at.owner) || unresolvedInIncomplete(found[0]))
	if report && !lost && !p.ambiguous(id, m) {
		p.list.Add(p.missing(id, m, found))
	}
	return false
}

// unresolvedInIncomplete tells whether what kind of thing an entity is could not be read.
func unresolvedInIncomplete(e spec.Entity) bool { return e != nil && !e.Place().Complete() }

// lookup is everything that an id may mean at a place: for a variable what its
// own flow declares, then the document, then the one other flow that declares it.
func (p *checker) lookup(id string, m reference) []spec.Entity {
	if wantsVariable(m) {
		if v := p.locals[m.at.flow][id]; v != nil {
			return []spec.Entity{v}
		}
	}
	var found []spec.Entity
	for _, d := range p.ids[id] {
		found = append(found, d.entity)
	}
	// Two flows that declare the variable are one too many to choose from (QT206).
	if others := p.shared[id]; len(others) == 1 || len(others) > 1 && !wantsVariable(m) {
		found = append(found, others[0].entity)
	}
	return found
}

// wantsVariable tells whether a reference asks for a variable: only variables have scopes.
func wantsVariable(m reference) bool { return m.ref.TargetType() == reflect.TypeFor[*spec.Variable]() }

// ambiguous reports a variable that only other flows declare, and more than one of them (QT206).
func (p *checker) ambiguous(id string, m reference) bool {
	others := p.shared[id]
	if !wantsVariable(m) || len(others) < 2 {
		return false
	}
	_, span := m.ref.Target()
	finding := fault("QT206", span, "the variable %q is declared by the flows %s", id, joinNames(flowIDs(others))).
		WithHint("declare it under the variables of this flow")
	for _, d := range others[:2] {
		finding = finding.WithRelated(idPlace(d.entity), "declared by flow "+d.at.flow.ID)
	}
	p.list.Add(finding)
	return true
}

// flowIDs are the flows that declare some variables.
func flowIDs(variables []declaration) []string {
	ids := make([]string, len(variables))
	for i, d := range variables {
		ids[i] = d.at.flow.ID
	}
	return ids
}

// maxSuggestions is for how many references a better id is looked for: looking
// through thousands of ids for thousands of references would take too long,
// and nobody reads it.
const maxSuggestions = 300

// missing is the finding for a reference that could not be linked.
func (p *checker) missing(id string, m reference, found []spec.Entity) diag.Diagnostic {
	_, span := m.ref.Target()
	wanted := noun(m.ref.TargetType())
	finding := fault("QT202", span, "no %s has the id %q", wanted, id)
	switch {
	case len(found) > 0:
		finding = fault("QT203", span, "%q is %s, not %s", id, an(nounOf(found[0])), an(wanted)).
			WithRelated(idPlace(found[0]), an(nounOf(found[0]))+" declared here")
	case m.at.binding:
		finding = fault("QT205", span, "%q is not a variable; a binding cannot hold a literal value", id)
	}
	if p.misses++; p.misses > maxSuggestions {
		return finding
	}
	return p.advise(finding, id, m)
}

// advise adds what was most likely meant, else what there is to choose from.
func (p *checker) advise(finding diag.Diagnostic, id string, m reference) diag.Diagnostic {
	wanted := noun(m.ref.TargetType())
	if near, entity := p.nearest(id, m); near != "" {
		// What was most likely meant is not to be called unused on top of that.
		p.used[entity] = true
		finding = finding.WithNearest(id, p.choices(m).ids)
		if place := idPlace(entity); !place.IsZero() {
			finding = finding.WithRelated(place, an(wanted)+" declared here")
		}
		return finding
	}
	switch choices := p.choices(m).ids; {
	case m.inPath():
		return finding.WithHint("write {uri: %q} for a constant path", id)
	case len(choices) == 0:
		return finding.WithHint("the document declares no %s", wanted)
	default:
		return finding.WithHint("the document has %s", joinNames(choices))
	}
}

// inPath tells whether the reference is the variable of a path.
func (m reference) inPath() bool { return m.at.field == "Var" && !m.at.binding }

// nearest is the id that a reference most likely means, and what it names.
func (p *checker) nearest(id string, m reference) (string, spec.Entity) {
	choices := p.choices(m)
	near := diag.Nearest(id, choices.ids)
	return near, choices.first[near]
}

// choices are the ids that a reference may name: for a variable those of its
// own flow where it declares any.
func (p *checker) choices(m reference) named {
	if wantsVariable(m) {
		return p.variablesFor(m.at.flow)
	}
	wants := m.ref.TargetType()
	if known, ok := p.near[wants]; ok {
		return known
	}
	var all []spec.Entity
	for _, v := range p.nodes {
		if e, ok := v.node.(spec.Entity); ok && reflect.TypeOf(e).AssignableTo(wants) {
			all = append(all, e)
		}
	}
	p.near[wants] = nameAll(inOrder(all))
	return p.near[wants]
}

// variablesFor are the variables that a flow may name: its own first, then what
// the document or exactly one other flow declares.
func (p *checker) variablesFor(f *spec.Flow) named {
	if known, ok := p.variables[f]; ok {
		return known
	}
	var own, others []spec.Entity
	for _, v := range p.nodes {
		e, ok := v.node.(*spec.Variable)
		switch {
		case !ok || v.at.tool != nil:
		case v.at.flow == f:
			own = append(own, e)
		case v.at.flow == nil || len(p.shared[e.ID]) == 1:
			others = append(others, e)
		}
	}
	p.variables[f] = nameAll(append(inOrder(own), inOrder(others)...))
	return p.variables[f]
}

// inOrder sorts entities as a reader meets them, so that advice does not depend on the order of the walk.
func inOrder(entities []spec.Entity) []spec.Entity {
	slices.SortStableFunc(entities, func(a, b spec.Entity) int { return source.Compare(idPlace(a), idPlace(b)) })
	return entities
}

// nameAll indexes entities by id; of equal ids the first counts.
func nameAll(entities []spec.Entity) named {
	n := named{first: map[string]spec.Entity{}}
	for _, e := range entities {
		if id := e.EntityID(); id != "" && n.first[id] == nil {
			n.first[id] = e
			n.ids = append(n.ids, id)
		}
	}
	return n
}
