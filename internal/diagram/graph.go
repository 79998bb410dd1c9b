package diagram

import (
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"sync"

	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec"
)

// graph is the content of a diagram, in document order.
type graph struct {
	title     string
	note      string // the description
	flows     []*flow
	resources []*node
	links     []link
}

// node is a step or a resource.
type node struct {
	entity spec.Entity
	kind   spec.Kind
	typ    string         // the `type` in a union; empty for none
	title  string         // the id
	notes  []string       // lines below the id
	plan   *spec.StepPlan // what a step uses; nil for other entities
}

// flow is a flow with its steps.
type flow struct {
	node
	inputs  []string // ids of variables
	outputs []string
	steps   []*node
	edges   []edge
}

// The ends of edges that are not steps.
const (
	start = -1 // the flow's inputs
	end   = -2 // the flow's outputs
)

// edge leads a variable from its writer to a reader. Without a label it only orders
// two steps.
type edge struct {
	from, to int // indexes of steps, or start or end
	label    string
}

// link leads from a step or resource to a resource or flow that it uses.
type link struct {
	from, to *node
	label    string
}

// builder creates a graph.
type builder struct {
	graph *graph
	nodes map[spec.Entity]*node
}

func graphOf(app *spec.Application) *graph {
	b := &builder{graph: &graph{title: app.ID, note: app.Description}, nodes: map[spec.Entity]*node{}}
	b.application(app)
	slices.SortStableFunc(b.graph.resources, func(x, y *node) int { return kindRank(x.kind) - kindRank(y.kind) })
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

// application adds the flows and resources of an application and its references.
func (b *builder) application(app *spec.Application) {
	for _, doc := range app.Documents() {
		if doc.Application != nil {
			b.fields(reflect.ValueOf(doc.Application).Elem())
		} else {
			b.fields(reflect.ValueOf(doc).Elem())
		}
	}
}

// fields adds the entities in the fields of a struct.
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
	switch kind := e.Kind(); {
	case kind == spec.KindFlow:
		b.flow(e.(*spec.Flow))
	case isResource(kind):
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
	plan := f.Plan()
	for _, p := range plan.Steps {
		n := b.node(p.Step) // a step that two flows share is drawn in both
		n.plan = p
		made.steps = append(made.steps, n)
	}
	made.edges = edgesOf(plan)
	b.graph.flows = append(b.graph.flows, made)
}

func ids(refs []spec.Ref[*spec.Variable]) []string {
	var all []string
	for _, r := range refs {
		all = append(all, r.ID)
	}
	return all
}

// idsOf returns the ids of references.
func idsOf(refs []*spec.Ref[*spec.Variable]) []string {
	var all []string
	for _, r := range refs {
		all = append(all, r.ID)
	}
	return all
}

// edgesOf returns an edge from the last writer of each variable to each reader.
func edgesOf(plan *spec.Plan) []edge {
	var edges []edge
	writer := map[string]int{}
	for _, id := range ids(plan.Flow.Inputs) {
		writer[id] = start
	}
	for i, p := range plan.Steps {
		n := len(edges)
		for _, id := range idsOf(p.Reads) {
			if from, ok := writer[id]; ok {
				edges = append(edges, edge{from, i, id})
			}
		}
		if len(edges) == n && i > 0 {
			edges = append(edges, edge{from: i - 1, to: i})
		}
		for _, id := range idsOf(p.Writes) {
			writer[id] = i
		}
	}
	for _, id := range ids(plan.Flow.Outputs) {
		if from, ok := writer[id]; ok {
			edges = append(edges, edge{from, end, id})
		}
	}
	return edges
}

// links adds a link for each entity that a node refers to and that is drawn.
func (b *builder) links(n *node) {
	seen := map[*node]bool{}
	for _, u := range spec.UsesOf(n.entity) {
		target := b.nodes[u.Ref.Entity()]
		if target == nil || target.kind == spec.KindStep || seen[target] || target == n {
			continue
		}
		seen[target] = true
		b.graph.links = append(b.graph.links, link{n, target, verb(n, u.Key, target)})
	}
}

// verb returns the label of a link. It follows from the key of the reference or
// from the kind of its target.
func verb(from *node, key string, to *node) string {
	switch key {
	case "fallbacks":
		return "falls back to"
	case "offline":
		return "offline"
	case "embedding_model":
		return "embeds with"
	}
	if to.kind == spec.KindIndex && from.plan != nil && from.plan.IsBatch() {
		return "writes"
	}
	if v := styleOf(to.kind).verb; v != "" {
		return v
	}
	return "uses"
}

// kindStyle is how entities of a kind are drawn.
type kindStyle struct {
	kind   spec.Kind
	plural string                     // the heading above resources of the kind
	verb   string                     // the label of links to the kind; empty for "uses"
	prefix string                     // the start of Mermaid ids
	form   string                     // the Mermaid syntax of a node: its id and label
	icon   string                     // before the label
	notes  func(spec.Entity) []string // the lines below the id; nil for the type
}

// resourceStyles returns the styles of the kinds that steps use, in drawing order:
// those that most steps use first.
var resourceStyles = sync.OnceValue(func() []kindStyle {
	return []kindStyle{
		{spec.KindModel, "models", "", "MODEL_", `%s(["%s"])`, "🧠", modelNotes},
		{spec.KindMemory, "memories", "remembers", "MEM_", `%s[("%s")]`, "💬", func(e spec.Entity) []string { return []string{memoryNote(e.(*spec.Memory))} }},
		{spec.KindTool, "tools", "", "TOOL_", `%s["%s"]`, "⚡", toolNotes},
		{spec.KindIndex, "indexes", "", "INDEX_", `%s[("%s")]`, "🗂", nil},
		{spec.KindStore, "stores", "is kept in", "STORE_", `%s[("%s")]`, "🗄", func(e spec.Entity) []string { return []string{e.(*spec.Store).Type} }},
		{spec.KindAuth, "auths", "", "AUTH_", `%s{{"%s"}}`, "🔐", nil},
		{spec.KindSecretManager, "secret managers", "", "SECRETS_", `%s{{"%s"}}`, "🔑", nil},
		{spec.KindTelemetry, "telemetry", "", "TEL_", `%s[["%s"]]`, "📊", func(e spec.Entity) []string { return []string{e.(*spec.Telemetry).Provider} }},
	}
})

// styleOf returns the style of a kind. A kind of resources without a row in
// resourceStyles gets a plain one.
func styleOf(kind spec.Kind) kindStyle {
	switch kind {
	case spec.KindFlow:
		return kindStyle{kind: kind, verb: "runs", notes: flowNotes}
	case spec.KindStep:
		return kindStyle{kind: kind, notes: stepNotes}
	}
	styles := resourceStyles()
	if i := kindRank(kind); i < len(styles) {
		return styles[i]
	}
	return kindStyle{kind: kind, plural: string(kind) + "s", prefix: "OTHER_", form: `%s["%s"]`, icon: "▫"}
}

// kindRank returns the position of a kind of resources in the drawing order.
func kindRank(kind spec.Kind) int {
	styles := resourceStyles()
	if i := slices.IndexFunc(styles, func(s kindStyle) bool { return s.kind == kind }); i >= 0 {
		return i
	}
	return len(styles)
}

// isResource reports whether entities of a kind are drawn next to the flows.
func isResource(kind spec.Kind) bool {
	return !slices.Contains([]spec.Kind{spec.KindApplication, spec.KindFlow, spec.KindStep, spec.KindType, spec.KindVariable}, kind)
}

// notesOf returns the lines below the id of an entity. They contain no secrets and
// no texts that may contain some.
func notesOf(e spec.Entity) []string {
	if notes := styleOf(e.Kind()).notes; notes != nil {
		return notes(e)
	}
	if typ := spec.TypeName(e); typ != "" {
		return []string{typ}
	}
	return nil
}

func toolNotes(e spec.Entity) []string {
	note := spec.TypeName(e)
	if api, ok := e.(*spec.APITool); ok {
		note += " · " + api.Method
		if u, err := url.Parse(api.Endpoint); err == nil && u.Host != "" {
			note += " " + u.Host // without the user, the path and the query
		}
	}
	return []string{note}
}

func flowNotes(e spec.Entity) []string {
	if f := e.(*spec.Flow); f.Interface != nil {
		return []string{f.Interface.Type}
	}
	return nil
}

func stepNotes(e spec.Entity) []string {
	note := spec.TypeName(e)
	if format := formatOf(e.(spec.Step)); format != "" {
		note += " · " + format
	}
	return []string{note}
}

func modelNotes(entity spec.Entity) []string {
	e := entity.(spec.ModelEntity)
	m := e.Base()
	note := m.Provider
	if !m.IsMock() {
		note += " · " + m.Name()
	}
	if embedding, ok := e.(*spec.EmbeddingModel); ok {
		note += fmt.Sprintf(" · %d dimensions", embedding.Dimensions)
	}
	return []string{note}
}

// memoryNote returns the policy and the size of its window.
func memoryNote(m *spec.Memory) string {
	row, _ := m.Row()
	note := string(m.Policy)
	for i, l := range row.Limits {
		switch value := m.Limit(l.Key); {
		case i == 0:
			note += fmt.Sprintf(" · %s %s", textfmt.Thousands(int(value)), l.Unit)
		case l.Unit == spec.UnitShare:
			note += " × " + textfmt.Number(value)
		}
	}
	return note
}
