package validate

import (
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// declaration is a declared entity and its context.
type declaration struct {
	entity spec.Entity
	at     nodeContext
}

// scope is a set of declarations with unique ids: the document, or the inputs or the
// outputs of a tool.
type scope struct {
	tool spec.Tool // nil for the document
	side string    // inputs or outputs of the tool
}

// scopeOf returns the scope of a declaration.
func scopeOf(d declaration) scope {
	if _, isVariable := d.entity.(*spec.Variable); !isVariable || d.at.tool == nil {
		return scope{}
	}
	if d.at.field == "Outputs" {
		return scope{d.at.tool, "outputs"}
	}
	return scope{d.at.tool, "inputs"}
}

// scopedID is an id in a scope.
type scopedID struct {
	scope scope
	id    string
}

// declare fills the tables of ids and reports duplicate ids (QT201).
func (p *checker) declare() {
	var order []scopedID
	all := map[scopedID][]declaration{}
	for _, v := range p.nodes {
		e, ok := v.node.(spec.Entity)
		if f, isFlow := v.node.(*spec.Flow); isFlow {
			p.flows = append(p.flows, f)
		}
		if !ok || e.EntityID() == "" {
			continue
		}
		d := declaration{e, v.at}
		k := scopedID{scopeOf(d), e.EntityID()}
		if len(all[k]) == 0 {
			order = append(order, k)
		}
		all[k] = append(all[k], d)
	}
	for _, k := range order {
		same := all[k]
		slices.SortStableFunc(same, func(a, b declaration) int { return source.Compare(idPlace(a.entity), idPlace(b.entity)) })
		p.reportDuplicates(same)
		if k.scope.tool == nil {
			p.enter(k.id, same)
		}
	}
}

// enter adds the declarations of an id to the tables.
func (p *checker) enter(id string, same []declaration) {
	for _, d := range same {
		switch e := d.entity.(type) {
		case *spec.Variable:
			if d.at.flow == nil {
				p.ids[id] = append(p.ids[id], d)
				continue
			}
			if p.locals[d.at.flow] == nil {
				p.locals[d.at.flow] = map[string]*spec.Variable{}
			}
			if p.locals[d.at.flow][id] == nil {
				p.locals[d.at.flow][id] = e
				p.shared[id] = append(p.shared[id], d)
			}
			continue
		case *spec.CustomType:
			if p.types[id] == nil {
				p.types[id] = e
			}
		}
		p.ids[id] = append(p.ids[id], d)
	}
}

// reportDuplicates reports every declaration that conflicts with an earlier one.
// Variables of different flows can have the same id. Nothing refers to the id of an
// application, so there it is only a warning.
func (p *checker) reportDuplicates(same []declaration) {
	apps, others := splitApplications(same)
	p.reportConflicts(apps)
	p.reportConflicts(others)
	if len(apps) > 0 && len(others) > 0 {
		d := p.duplicate(others[0].entity, apps[0].entity)
		d.Severity = diag.Warning
		p.list.Add(d)
	}
}

// splitApplications separates applications from what they declare.
func splitApplications(same []declaration) (apps, others []declaration) {
	for _, d := range same {
		if _, isApp := d.entity.(*spec.Application); isApp {
			apps = append(apps, d)
		} else {
			others = append(others, d)
		}
	}
	return apps, others
}

func (p *checker) reportConflicts(same []declaration) {
	var unique spec.Entity // the first that is not a variable of a flow
	local := map[*spec.Flow]spec.Entity{}
	for i, d := range same {
		var first spec.Entity
		if _, isVariable := d.entity.(*spec.Variable); isVariable && d.at.flow != nil {
			if first = local[d.at.flow]; first == nil {
				first, local[d.at.flow] = unique, d.entity
			}
		} else {
			if i > 0 {
				first = same[0].entity
			}
			if unique == nil {
				unique = d.entity
			}
		}
		if first != nil {
			p.list.Add(p.duplicate(d.entity, first))
		}
	}
}

// duplicate describes an entity with the id of an earlier one.
func (p *checker) duplicate(e, first spec.Entity) diag.Diagnostic {
	p.used[e] = true // it is not reported as unused as well
	owner := an(kindNoun(first))
	if kindNoun(first) == kindNoun(e) {
		owner = "another " + kindNoun(first)
	}
	here, there := idPlace(e), idPlace(first)
	diagnostic := newDiagnostic("QT201", here, "the id %q is already taken by %s", e.EntityID(), owner).
		WithRelated(there, "first declared here").WithHint("give this %s another id", kindNoun(e))
	if here.File != there.File && here.String() == there.String() {
		diagnostic = diagnostic.WithHint("the same file is included twice")
	}
	return diagnostic
}

// newDiagnostic returns an error that is found while linking.
func newDiagnostic(code string, span source.Span, format string, args ...any) diag.Diagnostic {
	return diag.Rule{Code: code, Severity: diag.Error}.At(span, format, args...)
}

// edge leads to a node of a graph of entities. The value via describes the reference.
type edge[N comparable, V any] struct {
	to  N
	via V
}

// cycleSearch finds the cycles of a graph by a depth-first search.
type cycleSearch[N comparable, V any] struct {
	edges  func(N) []edge[N, V]     // the edges from a node
	report func(cycle []edge[N, V]) // is called for each cycle; the first and the last edge lead to the same node
	state  map[N]visitState
	path   []edge[N, V]
}

type visitState int

const (
	onPath visitState = iota + 1
	visited
)

// findCycles searches all nodes that can be reached from start.
func findCycles[N comparable, V any](start []N, edges func(N) []edge[N, V], report func(cycle []edge[N, V])) {
	s := cycleSearch[N, V]{edges: edges, report: report, state: map[N]visitState{}}
	for _, n := range start {
		s.visit(edge[N, V]{to: n})
	}
}

func (s *cycleSearch[N, V]) visit(to edge[N, V]) {
	if s.state[to.to] != 0 {
		return
	}
	s.state[to.to] = onPath
	s.path = append(s.path, to)
	for _, e := range s.edges(to.to) {
		if s.state[e.to] != onPath {
			s.visit(e)
			continue
		}
		first := slices.IndexFunc(s.path, func(p edge[N, V]) bool { return p.to == e.to })
		s.report(append(slices.Clone(s.path[first:]), e))
	}
	s.path = s.path[:len(s.path)-1]
	s.state[to.to] = visited
}

// joinIDs returns the ids of the entities in a cycle, for a message.
func joinIDs[N interface {
	comparable
	EntityID() string
}, V any](cycle []edge[N, V]) string {
	ids := make([]string, len(cycle))
	for i, e := range cycle {
		ids[i] = e.to.EntityID()
	}
	return strings.Join(ids, " → ")
}
