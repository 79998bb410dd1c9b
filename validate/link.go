package validate

import (
	"reflect"
	"slices"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// targets are the entities that a reference can refer to.
type targets struct {
	ids   []string               // without duplicates, in the order of suggestions
	first map[string]spec.Entity // the first entity with each id
}

// linkRefs links every reference to its target. It reports references to unknown
// ids (QT202, QT205), to the wrong kind (QT203) and to ambiguous variables (QT206).
func (p *checker) linkRefs() {
	for _, m := range p.references {
		if p.link(m, true) && m.item != nil {
			m.item.Step = m.item.Ref.To
		}
	}
	for _, m := range p.derived {
		p.link(m, false)
	}
}

// link links one reference and reports whether it succeeded.
func (p *checker) link(m reference, report bool) bool {
	id, _ := spec.Target(m.ref)
	found := p.lookup(id, m)
	for _, e := range found {
		if m.ref.Link(e) {
			p.used[e] = true
			return true
		}
	}
	if report && !p.isMissingPart(m, found) && !p.ambiguous(id, m) {
		p.list.Add(p.notLinked(id, m, found))
	}
	return false
}

// isMissingPart reports whether a reference may be unlinked only because a part of
// the document could not be read.
func (p *checker) isMissingPart(m reference, found []spec.Entity) bool {
	if len(found) == 0 {
		return p.maybeDeclared(spec.TargetType(m.ref))
	}
	return isIncompleteEntity(m.at.owner) || isIncompleteEntity(found[0])
}

// isIncompleteEntity reports whether the kind of an entity could not be read.
func isIncompleteEntity(e spec.Entity) bool { return e != nil && !e.Position().Complete() }

// lookup returns the entities that an id can refer to at a position. A variable is
// looked up in its flow, then in the document, then in the other flows.
func (p *checker) lookup(id string, m reference) []spec.Entity {
	if isVariableRef(m) {
		if v := p.locals[m.at.flow][id]; v != nil {
			return []spec.Entity{v}
		}
	}
	var found []spec.Entity
	for _, d := range p.ids[id] {
		found = append(found, d.entity)
	}
	// A variable that several other flows declare is ambiguous (QT206).
	if others := p.shared[id]; len(others) == 1 || len(others) > 1 && !isVariableRef(m) {
		found = append(found, others[0].entity)
	}
	return found
}

// isVariableRef reports whether a reference refers to a variable. Only variables have scopes.
func isVariableRef(m reference) bool {
	return spec.TargetType(m.ref) == reflect.TypeFor[*spec.Variable]()
}

// ambiguous reports a variable that is declared only in several other flows (QT206).
func (p *checker) ambiguous(id string, m reference) bool {
	others := p.shared[id]
	if !isVariableRef(m) || len(others) < 2 {
		return false
	}
	_, span := spec.Target(m.ref)
	diagnostic := newDiagnostic("QT206", span, "the variable %q is declared by the flows %s", id, joinNames(flowIDs(others))).
		WithHint("declare it under the variables of this flow")
	for _, d := range others[:2] {
		diagnostic = diagnostic.WithRelated(idPlace(d.entity), "declared by flow "+d.at.flow.ID)
	}
	p.list.Add(diagnostic)
	return true
}

// flowIDs returns the ids of the flows that declare the variables.
func flowIDs(variables []declaration) []string {
	ids := make([]string, len(variables))
	for i, d := range variables {
		ids[i] = d.at.flow.ID
	}
	return ids
}

// maxSuggestions limits the number of references for which similar ids are
// searched: the search takes time in proportion to the number of ids.
const maxSuggestions = 300

// notLinked returns the diagnostic for a reference that could not be linked.
func (p *checker) notLinked(id string, m reference, found []spec.Entity) diag.Diagnostic {
	_, span := spec.Target(m.ref)
	wanted := targetNoun(spec.TargetType(m.ref))
	diagnostic := newDiagnostic("QT202", span, "no %s has the id %q", wanted, id)
	switch {
	case len(found) > 0:
		diagnostic = newDiagnostic("QT203", span, "%q is %s, not %s", id, an(kindNoun(found[0])), an(wanted)).
			WithRelated(idPlace(found[0]), an(kindNoun(found[0]))+" declared here")
	case m.at.binding:
		diagnostic = newDiagnostic("QT205", span, "%q is not a variable; a binding cannot hold a literal value", id)
	}
	if p.misses++; p.misses > maxSuggestions {
		return diagnostic
	}
	diagnostic = p.addSuggestion(diagnostic, id, m)
	if len(found) > 0 {
		return diagnostic.WithoutFix() // the id is not misspelled: another entity has it
	}
	return diagnostic
}

// addSuggestion suggests the most similar id, or lists the valid ids.
func (p *checker) addSuggestion(diagnostic diag.Diagnostic, id string, m reference) diag.Diagnostic {
	wanted := targetNoun(spec.TargetType(m.ref))
	valid := p.targetsOf(m)
	if near := diag.Nearest(id, valid.ids); near != "" {
		entity := valid.first[near]
		p.used[entity] = true // it is not reported as unused as well
		diagnostic = diagnostic.WithNear(id, near, valid.ids)
		if place := idPlace(entity); !place.IsZero() {
			diagnostic = diagnostic.WithRelated(place, an(wanted)+" declared here")
		}
		return diagnostic
	}
	switch {
	case m.inPath():
		return diagnostic.WithHint("write {uri: %q} for a constant path", id)
	case len(valid.ids) == 0:
		return diagnostic.WithHint("the document declares no %s", wanted)
	default:
		return diagnostic.WithHint("the document has %s", joinNames(valid.ids))
	}
}

// inPath reports whether the reference is the variable of a path.
func (m reference) inPath() bool { return m.at.field == "Var" && !m.at.binding }

// targetsOf returns the entities that a reference can refer to. For a variable
// these depend on the flow.
func (p *checker) targetsOf(m reference) targets {
	if isVariableRef(m) {
		return p.variablesFor(m.at.flow)
	}
	target := spec.TargetType(m.ref)
	if known, ok := p.targets[target]; ok {
		return known
	}
	var all []spec.Entity
	for _, v := range p.nodes {
		if e, ok := v.node.(spec.Entity); ok && reflect.TypeOf(e).AssignableTo(target) {
			all = append(all, e)
		}
	}
	p.targets[target] = newTargets(inOrder(all))
	return p.targets[target]
}

// variablesFor returns the variables that a flow can refer to: first those that it
// declares, then those that the document or exactly one other flow declares.
func (p *checker) variablesFor(f *spec.Flow) targets {
	if known, ok := p.variables[f]; ok {
		return known
	}
	var local, others []spec.Entity
	for _, v := range p.nodes {
		e, ok := v.node.(*spec.Variable)
		switch {
		case !ok || v.at.tool != nil:
		case v.at.flow == f:
			local = append(local, e)
		case v.at.flow == nil || len(p.shared[e.ID]) == 1:
			others = append(others, e)
		}
	}
	p.variables[f] = newTargets(append(inOrder(local), inOrder(others)...))
	return p.variables[f]
}

// inOrder sorts entities by position, so that suggestions do not depend on the order of the walk.
func inOrder(entities []spec.Entity) []spec.Entity {
	slices.SortStableFunc(entities, func(a, b spec.Entity) int { return source.Compare(idPlace(a), idPlace(b)) })
	return entities
}

// newTargets indexes entities by id. Of entities with the same id it keeps the first.
func newTargets(entities []spec.Entity) targets {
	t := targets{first: map[string]spec.Entity{}}
	for _, e := range entities {
		if id := e.EntityID(); id != "" && t.first[id] == nil {
			t.first[id] = e
			t.ids = append(t.ids, id)
		}
	}
	return t
}
