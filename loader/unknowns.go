package loader

import (
	"reflect"

	"github.com/qtype-dev/qtype/spec"
)

// unknowns collects what the parts of a document that could not be decoded may have
// contained: entities with ids, and references to others.
type unknowns struct {
	declared, named map[reflect.Type]bool
	order           spec.Unknowns
	known           map[reflect.Type]bool // types that were visited
}

// spec returns what was collected.
func (g *unknowns) spec() spec.Unknowns { return g.order }

// add records that a value of a type is missing. The variables of a tool are local, so
// a part of a tool declares nothing.
func (g *unknowns) add(d *decoder, t reflect.Type) {
	if g.known[t] && !d.inTool {
		return
	}
	g.walk(d, t, map[reflect.Type]bool{}, d.inTool)
	if g.known == nil {
		g.known = map[reflect.Type]bool{}
	}
	g.known[t] = g.known[t] || !d.inTool
}

// markLost records what may be missing in a value. An entity of a union whose type is
// unknown still has its id.
func (d *decoder) markLost(v reflect.Value) {
	declared := d.gaps.order.Declared
	d.gaps.add(d, v.Type())
	if v.Kind() != reflect.Interface || v.IsNil() {
		return
	}
	if e, ok := v.Interface().(spec.Entity); ok && e.EntityID() != "" {
		for _, t := range d.gaps.order.Declared[len(declared):] {
			delete(d.gaps.declared, t)
		}
		d.gaps.order.Declared = declared
		delete(d.gaps.known, v.Type())
	}
}

// walk visits the types that a value of a type can contain.
func (g *unknowns) walk(d *decoder, t reflect.Type, seen map[reflect.Type]bool, inTool bool) {
	if seen[t] {
		return
	}
	seen[t] = true
	if reflect.PointerTo(t).Implements(reflect.TypeFor[spec.Reference]()) {
		g.addNamed(spec.TargetType(reflect.New(t).Interface().(spec.Reference)))
		return
	}
	switch t {
	case reflect.TypeFor[spec.Expression]():
		g.addNamed(reflect.TypeFor[*spec.Variable]())
		return
	case reflect.TypeFor[spec.Type]():
		g.addNamed(reflect.TypeFor[*spec.CustomType]())
		return
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		g.walk(d, t.Elem(), seen, inTool)
	case reflect.Interface:
		for _, c := range d.caseTypes(t) {
			g.walk(d, c, seen, inTool)
		}
	case reflect.Struct:
		g.walkStruct(d, t, seen, inTool)
	}
}

func (g *unknowns) walkStruct(d *decoder, t reflect.Type, seen map[reflect.Type]bool, inTool bool) {
	pointer := reflect.PointerTo(t)
	isVariable := t == reflect.TypeFor[spec.Variable]()
	if pointer.Implements(reflect.TypeFor[spec.Entity]()) && !(isVariable && inTool) {
		g.addDeclared(d, pointer)
	}
	if pointer.Implements(reflect.TypeFor[spec.Tool]()) {
		// The variables of a tool are local; flows are visited elsewhere.
		inTool = true
	}
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() && f.Type != reflect.TypeFor[spec.Positioned]() {
			g.walk(d, f.Type, seen, inTool)
		}
	}
}

// addDeclared records an entity that references may name.
func (g *unknowns) addDeclared(d *decoder, pointer reflect.Type) {
	if g.declared[pointer] || d.inTool && pointer == reflect.TypeFor[*spec.Variable]() {
		return
	}
	if g.declared == nil {
		g.declared = map[reflect.Type]bool{}
	}
	g.declared[pointer] = true
	g.order.Declared = append(g.order.Declared, pointer)
}

// addNamed records what a missing reference may name.
func (g *unknowns) addNamed(wants reflect.Type) {
	if g.named[wants] {
		return
	}
	if g.named == nil {
		g.named = map[reflect.Type]bool{}
	}
	g.named[wants] = true
	g.order.Named = append(g.order.Named, wants)
}
