package diagram

import (
	"reflect"
	"slices"

	"github.com/qtype-dev/qtype/spec"
)

// graph is what is drawn of an application, in the document's order.
type graph struct {
	title     string
	note      string // the description
	flows     []*flow
	resources []*node
	links     []link
}

// node is a step, or something that steps use.
type node struct {
	entity spec.Entity
	kind   spec.Kind
	typ    string   // the type that chooses it of a union; empty where there is none
	title  string   // its id
	notes  []string // what else is worth a line
}

// flow is a flow and what goes on in it.
type flow struct {
	node
	inputs  []string // ids of variables
	outputs []string
	steps   []*node
	edges   []edge
}

// The ends of a flow's edges that are no steps.
const (
	start = -1 // what the caller gives
	end   = -2 // what the caller gets
)

// edge leads a variable from the step that writes it to one that reads it. One
// without a label says only that a step comes after another.
type edge struct {
	from, to int // indexes of steps, or start or end
	label    string
}

// link leads from a step or a thing to something that it uses.
type link struct {
	from, to *node
	label    string
}

// builder makes a graph.
type builder struct {
	graph *graph
	nodes map[spec.Entity]*node
}

func graphOf(app *spec.Application) *graph {
	b := &builder{graph: &graph{title: app.ID, note: app.Description}, nodes: map[spec.Entity]*node{}}
	b.application(app)
	slices.SortStableFunc(b.graph.resources, func(x, y *node) int { return rank(x.kind) - rank(y.kind) })
	for _, f := range b.graph.flows {
		for _, s := range f.steps {
			b.links(s)
		}
	}
	for _, r := range b.graph.resources {
		b.links(r)
	}
	return b.graph
}

// rank orders resources: those that most steps use first.
func rank(k spec.Kind) int {
	order := []spec.Kind{spec.KindModel, spec.KindMemory, spec.KindTool, spec.KindIndex, spec.KindStore,
		spec.KindAuth, spec.KindSecretManager, spec.KindTelemetry}
	if i := slices.Index(order, k); i >= 0 {
		return i
	}
	return len(order)
}

// application collects the flows and resources of an application and its references.
func (b *builder) application(app *spec.Application) {
	b.fields(reflect.ValueOf(app).Elem())
	for _, ref := range app.References {
		switch {
		case ref == nil:
		case ref.Application != nil:
			b.application(ref.Application)
		default:
			b.fields(reflect.ValueOf(ref).Elem())
		}
	}
}

// fields collects the entities that the fields of a struct hold.
func (b *builder) fields(v reflect.Value) {
	for i := range v.NumField() {
		f := v.Field(i)
		switch {
		case !v.Type().Field(i).IsExported():
		case f.Kind() == reflect.Slice:
			for j := range f.Len() {
				b.entity(f.Index(j))
			}
		default:
			b.entity(f)
		}
	}
}

func (b *builder) entity(v reflect.Value) {
	if k := v.Kind(); k != reflect.Pointer && k != reflect.Interface || v.IsNil() {
		return
	}
	e, ok := v.Interface().(spec.Entity)
	if !ok || b.nodes[e] != nil {
		return
	}
	switch e := e.(type) {
	case *spec.Application, *spec.CustomType, *spec.Variable:
	case *spec.Flow:
		b.flow(e)
	default:
		b.graph.resources = append(b.graph.resources, b.node(e))
	}
}

func (b *builder) node(e spec.Entity) *node {
	n := &node{entity: e, kind: e.Kind(), typ: spec.TypeName(e), title: e.EntityID(), notes: notesOf(e)}
	b.nodes[e] = n
	return n
}

func (b *builder) flow(f *spec.Flow) {
	made := &flow{node: node{entity: f, kind: f.Kind(), title: f.ID, notes: notesOf(f)}, inputs: ids(f.Inputs), outputs: ids(f.Outputs)}
	b.nodes[f] = &made.node
	for _, item := range f.Steps {
		if item == nil || item.Step == nil {
			continue
		}
		// A step that two flows share is drawn in both.
		made.steps = append(made.steps, b.node(item.Step))
	}
	made.edges = edgesOf(f)
	b.graph.flows = append(b.graph.flows, made)
}

func ids(refs []spec.Ref[*spec.Variable]) []string {
	var all []string
	for _, r := range refs {
		all = append(all, r.ID)
	}
	return all
}

// edgesOf leads every variable from its last writer to its readers.
func edgesOf(f *spec.Flow) []edge {
	var edges []edge
	writer := map[string]int{}
	for _, id := range ids(f.Inputs) {
		writer[id] = start
	}
	last := start - 10 // no step
	for i, item := range f.Steps {
		if item == nil || item.Step == nil {
			continue
		}
		n := len(edges)
		base := item.Step.Common()
		for _, id := range both(base.Inputs, base.DerivedInputs) {
			if from, ok := writer[id]; ok {
				edges = append(edges, edge{from, i, id})
			}
		}
		if len(edges) == n && last >= 0 {
			edges = append(edges, edge{from: last, to: i})
		}
		for _, id := range both(base.Outputs, base.DerivedOutputs) {
			writer[id] = i
		}
		last = i
	}
	for _, id := range ids(f.Outputs) {
		if from, ok := writer[id]; ok {
			edges = append(edges, edge{from, end, id})
		}
	}
	return edges
}

// both joins what a step names and what it reads or writes besides, each once.
func both(named []spec.Ref[*spec.Variable], derived []*spec.Ref[*spec.Variable]) []string {
	all := ids(named)
	for _, r := range derived {
		if r != nil && !slices.Contains(all, r.ID) {
			all = append(all, r.ID)
		}
	}
	return all
}

// links adds a link for every reference below a node that leads to another one.
func (b *builder) links(n *node) {
	seen := map[*node]bool{}
	references(reflect.ValueOf(n.entity), "", func(key string, to spec.Entity) {
		target := b.nodes[to]
		if target == nil || target.kind == spec.KindStep || seen[target] || target == n {
			return
		}
		seen[target] = true
		b.graph.links = append(b.graph.links, link{n, target, verb(n, key, target)})
	})
}

// references calls f for every reference below v, with the key that holds it.
func references(v reflect.Value, key string, f func(string, spec.Entity)) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			references(v.Elem(), key, f)
		}
	case reflect.Slice:
		for i := range v.Len() {
			references(v.Index(i), key, f)
		}
	case reflect.Struct:
		if reflect.PointerTo(v.Type()).Implements(reflect.TypeFor[spec.Reference]()) {
			if e, ok := v.FieldByName("To").Interface().(spec.Entity); ok && !reflect.ValueOf(e).IsNil() {
				f(key, e)
			}
			return
		}
		for i := range v.NumField() {
			field := v.Type().Field(i)
			tag := field.Tag.Get("yaml")
			if !field.IsExported() && !field.Anonymous || tag == "-" {
				continue
			}
			if tag == "" {
				tag = key
			}
			references(v.Field(i), tag, f)
		}
	}
}

// verb says what a link means.
func verb(from *node, key string, to *node) string {
	switch {
	case to.kind == spec.KindMemory:
		return "remembers"
	case to.kind == spec.KindIndex && from.typ == "IndexUpsert":
		return "writes"
	case from.kind == spec.KindIndex && to.kind == spec.KindModel:
		return "embeds with"
	case to.kind == spec.KindFlow:
		return "runs"
	case key == "fallbacks":
		return "falls back to"
	case key == "offline":
		return "offline"
	case to.kind == spec.KindStore:
		return "is kept in"
	}
	return "uses"
}
