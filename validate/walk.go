package validate

import (
	"reflect"

	"github.com/qtype-dev/qtype/internal/parts"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// nodeContext describes where in the tree a node or a reference is.
type nodeContext struct {
	app     *spec.Application // the nearest application
	flow    *spec.Flow        // the enclosing flow
	tool    spec.Tool         // the enclosing tool
	field   string            // the name of the struct field that holds it
	binding bool              // it is the target of a binding
	owner   spec.Entity       // the nearest enclosing entity
	root    bool              // it belongs to the document itself, not to one of its references
}

// visit is a node and its context.
type visit struct {
	node spec.Node
	at   nodeContext
}

// reference is a reference and its context.
type reference struct {
	ref  spec.Reference
	item *spec.StepItem // the item in a flow's steps that the reference sets, for {$ref: step}
	at   nodeContext
}

// checker is the state of one Check: the nodes and references of the document, the
// tables of ids, and the diagnostics so far.
type checker struct {
	doc         *spec.Document
	have        *parts.Set // of the program that will run it; nil for all parts
	list        diag.List
	nodes       []visit
	references  []reference
	expressions []expressionUse
	derived     []reference // bindings and paths that are also inputs and outputs of their step

	ids     map[string][]declaration                 // everything with an id except variables of flows and tools
	locals  map[*spec.Flow]map[string]*spec.Variable // the variables of each flow
	shared  map[string][]declaration                 // the variables of all flows
	flows   []*spec.Flow
	types   map[string]*spec.CustomType
	untyped map[*spec.Variable]bool // variables of unknown type
	used    map[spec.Entity]bool    // entities that a reference refers to
	plans   map[*spec.Flow]*dataflow
	steps   map[spec.Step]*spec.StepPlan

	fields    map[reflect.Type][]int   // cache of mayContainNodes
	misses    int                      // the number of references that could not be linked
	variables map[*spec.Flow]targets   // cache of variablesFor
	targets   map[reflect.Type]targets // cache of targetsOf for other entities
	callers   map[*spec.Flow]callers   // cache of callersOf
	withTools map[*spec.Model]bool     // cache of usesTools
	media     mediaReach               // cache of mediaReach
}

// callers are the steps that run a flow, of several the one with the first id.
type callers struct {
	itself spec.Step // runs the flow itself; nil for none
	any    spec.Step // runs the flow itself, as a tool or by a handoff; nil for none
}

// callersOf returns the steps that run a flow.
func (p *checker) callersOf(f *spec.Flow) callers {
	if p.callers != nil {
		return p.callers[f]
	}
	p.callers = map[*spec.Flow]callers{}
	first := func(known, s spec.Step) spec.Step {
		if known == nil || s.EntityID() < known.EntityID() {
			return s
		}
		return known
	}
	for s, plan := range p.steps {
		for _, call := range plan.Calls() {
			c := p.callers[call.Flow.To]
			c.itself = first(c.itself, s)
			p.callers[call.Flow.To] = c
		}
		for _, called := range plan.Flows() {
			c := p.callers[called]
			c.any = first(c.any, s)
			p.callers[called] = c
		}
	}
	return p.callers[f]
}

// collect walks the tree of a document.
func collect(doc *spec.Document) *checker {
	p := &checker{
		doc: doc, ids: map[string][]declaration{}, locals: map[*spec.Flow]map[string]*spec.Variable{},
		shared: map[string][]declaration{}, types: map[string]*spec.CustomType{},
		untyped: map[*spec.Variable]bool{}, used: map[spec.Entity]bool{}, plans: map[*spec.Flow]*dataflow{}, steps: map[spec.Step]*spec.StepPlan{},
		fields: map[reflect.Type][]int{}, targets: map[reflect.Type]targets{},
		variables: map[*spec.Flow]targets{},
	}
	p.walk(reflect.ValueOf(doc), nodeContext{app: doc.Application, root: true})
	return p
}

// walk visits v and everything below it, except the targets of references, which
// are visited where they are declared.
func (p *checker) walk(v reflect.Value, at nodeContext) {
	switch v.Kind() {
	case reflect.Interface:
		p.walk(v.Elem(), at)
	case reflect.Pointer:
		if !v.IsNil() {
			p.walkPointer(v, at)
		}
	case reflect.Slice:
		for i := range v.Len() {
			p.walk(v.Index(i), at)
		}
	case reflect.Struct:
		p.walkStruct(v, at)
	}
}

func (p *checker) walkPointer(v reflect.Value, at nodeContext) {
	switch n := v.Interface().(type) {
	case spec.Node:
		at = at.enter(n)
		p.nodes = append(p.nodes, visit{n, at})
		p.walkFields(v.Elem(), at)
	case spec.Reference:
		if at.field == "DerivedInputs" || at.field == "DerivedOutputs" {
			p.derived = append(p.derived, reference{ref: n, at: at})
		}
	default:
		p.walk(v.Elem(), at)
	}
}

// enter returns the context of the children of n.
func (at nodeContext) enter(n spec.Node) nodeContext {
	switch n := n.(type) {
	case *spec.Document:
		at.root = at.root && at.field == ""
	case *spec.Application:
		at.app = n
	case *spec.Flow:
		at.flow = n
	case spec.Tool:
		at.tool = n
	}
	if e, ok := n.(spec.Entity); ok {
		at.owner = e
	}
	return at
}

func (p *checker) walkStruct(v reflect.Value, at nodeContext) {
	if !v.CanAddr() {
		return
	}
	switch n := v.Addr().Interface().(type) {
	case *spec.Type:
		return
	case spec.Reference:
		p.addReference(reference{ref: n, at: at})
		return
	case *spec.StepItem:
		// The step is visited where it is declared.
		if !spec.IsEmpty(&n.Ref) {
			p.addReference(reference{ref: &n.Ref, item: n, at: at})
			return
		}
	case *spec.Binding:
		at.binding = true
	case *spec.Expression:
		p.expressions = append(p.expressions, expressionUse{expr: n, at: at})
		return
	case *spec.Assignment:
		p.addReference(reference{ref: &n.Var, at: at})
		p.expressions = append(p.expressions, expressionUse{expr: &n.Expr, at: at, target: &n.Var})
		return
	}
	p.walkFields(v, at)
}

// addReference records a reference unless it is empty.
func (p *checker) addReference(m reference) {
	if id, span := spec.Target(m.ref); id != "" || !span.IsZero() {
		p.references = append(p.references, m)
	}
}

func (p *checker) walkFields(v reflect.Value, at nodeContext) {
	t := v.Type()
	fields, known := p.fields[t]
	if !known {
		fields = mayContainNodes(t)
		p.fields[t] = fields
	}
	for _, i := range fields {
		if f := t.Field(i); !f.Anonymous {
			at.field = f.Name
		}
		p.walk(v.Field(i), at)
	}
}

// mayContainNodes returns the indexes of the fields that can contain nodes or references.
func mayContainNodes(t reflect.Type) []int {
	var fields []int
	for i := range t.NumField() {
		f := t.Field(i)
		switch f.Type.Kind() {
		case reflect.Interface, reflect.Pointer, reflect.Slice, reflect.Struct:
			if f.IsExported() && f.Type != reflect.TypeFor[spec.Positioned]() {
				fields = append(fields, i)
			}
		}
	}
	return fields
}

// idPlace returns the position of an entity's id.
func idPlace(e spec.Entity) source.Span { return placeOf(e, "id") }
