package validate

import (
	"reflect"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// context is where a node or a reference stands in the tree.
type context struct {
	app     *spec.Application // the nearest application
	flow    *spec.Flow        // the flow that it is written in
	tool    spec.Tool         // the tool that it is written in
	field   string            // the name of the struct field that holds it
	binding bool              // it is the target of a binding
	owner   spec.Entity       // the nearest entity around it
	root    bool              // it belongs to the document itself, not to one of its references
}

// visit is a node and where it stands.
type visit struct {
	node spec.Node
	at   context
}

// reference is a reference and where it stands.
type reference struct {
	ref  spec.Reference
	item *spec.StepItem // the place in a flow that the reference fills, for {$ref: step}
	at   context
}

// checker is what is known about a document: its nodes and references, the
// tables of ids, and what was found wrong so far.
type checker struct {
	doc      *spec.Document
	list     diag.List
	nodes    []visit
	mentions []reference
	formulas []formula   // expressions
	derived  []reference // bindings and paths that a step repeats as its inputs and outputs

	ids     map[string][]declaration                 // everything with an id but flow and tool variables
	locals  map[*spec.Flow]map[string]*spec.Variable // the variables of each flow
	shared  map[string][]declaration                 // the variables of all flows
	flows   []*spec.Flow                             // every flow
	types   map[string]*spec.CustomType              // the custom types
	untyped map[*spec.Variable]bool                  // variables whose type is not known
	used    map[spec.Entity]bool                     // what a reference was linked to
	plans   map[*spec.Flow]*dataflow
	steps   map[spec.Step]*spec.StepPlan

	fields    map[reflect.Type][]int // the fields of a struct that are worth a visit
	misses    int                    // references that could not be linked
	variables map[*spec.Flow]named   // the variables that a flow may name
	near      map[reflect.Type]named // the ids that a kind of reference may name
}

// collect walks the whole tree of a document.
func collect(doc *spec.Document) *checker {
	p := &checker{
		doc: doc, ids: map[string][]declaration{}, locals: map[*spec.Flow]map[string]*spec.Variable{},
		shared: map[string][]declaration{}, types: map[string]*spec.CustomType{},
		untyped: map[*spec.Variable]bool{}, used: map[spec.Entity]bool{}, plans: map[*spec.Flow]*dataflow{}, steps: map[spec.Step]*spec.StepPlan{},
		fields: map[reflect.Type][]int{}, near: map[reflect.Type]named{},
		variables: map[*spec.Flow]named{},
	}
	p.walk(reflect.ValueOf(doc), context{app: doc.Application, root: true})
	return p
}

// walk visits v and everything below it. References are leaves: what they are
// linked to is walked where it is declared.
func (p *checker) walk(v reflect.Value, at context) {
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

func (p *checker) walkPointer(v reflect.Value, at context) {
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

// enter is the context inside of n.
func (at context) enter(n spec.Node) context {
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

func (p *checker) walkStruct(v reflect.Value, at context) {
	if !v.CanAddr() {
		return
	}
	switch n := v.Addr().Interface().(type) {
	case *spec.Type:
		return
	case spec.Reference:
		p.mention(reference{ref: n, at: at})
		return
	case *spec.StepItem:
		// A step that is only referred to is walked where it is written.
		if !n.Ref.IsZero() {
			p.mention(reference{ref: &n.Ref, item: n, at: at})
			return
		}
	case *spec.Binding:
		at.binding = true
	case *spec.Expression:
		p.formulas = append(p.formulas, formula{expr: n, at: at})
		return
	case *spec.Assignment:
		p.mention(reference{ref: &n.Var, at: at})
		p.formulas = append(p.formulas, formula{expr: &n.Expr, at: at, target: &n.Var})
		return
	}
	p.walkFields(v, at)
}

// mention keeps a reference that says something.
func (p *checker) mention(m reference) {
	if id, span := m.ref.Target(); id != "" || !span.IsZero() {
		p.mentions = append(p.mentions, m)
	}
}

func (p *checker) walkFields(v reflect.Value, at context) {
	t := v.Type()
	worth, known := p.fields[t]
	if !known {
		worth = mayContainNodes(t)
		p.fields[t] = worth
	}
	for _, i := range worth {
		if f := t.Field(i); !f.Anonymous {
			at.field = f.Name
		}
		p.walk(v.Field(i), at)
	}
}

// mayContainNodes lists the fields of a struct that can hold nodes or references.
func mayContainNodes(t reflect.Type) []int {
	var worth []int
	for i := range t.NumField() {
		f := t.Field(i)
		switch f.Type.Kind() {
		case reflect.Interface, reflect.Pointer, reflect.Slice, reflect.Struct:
			if f.IsExported() && f.Type != reflect.TypeFor[spec.Positioned]() {
				worth = append(worth, i)
			}
		}
	}
	return worth
}

// idPlace is where an entity's id stands.
func idPlace(e spec.Entity) source.Span { return placeOf(e, "id") }
