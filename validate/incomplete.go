package validate

import (
	"reflect"
	"slices"

	"github.com/qtype-dev/qtype/spec"
)

// unread tells whether what a reference wants may have been declared in a part
// of the document that could not be read: then nothing is said of its absence.
func (p *checker) unread(wants reflect.Type) bool {
	return slices.ContainsFunc(p.doc.Gaps.Declared, func(t reflect.Type) bool { return t.AssignableTo(wants) })
}

// mayBeNamed tells whether a reference to an entity may have stood in a part of
// the document that could not be read.
func (p *checker) mayBeNamed(e spec.Entity) bool {
	return slices.ContainsFunc(p.doc.Gaps.Named, func(t reflect.Type) bool { return reflect.TypeOf(e).AssignableTo(t) })
}

// allPortsRead reports whether everything could be read that says what a step reads
// and writes.
func allPortsRead(s spec.Step) bool {
	inputs, outputs := spec.PortKeys(s)
	return s.Place().Complete(append(inputs, outputs...)...)
}

// sideRead reports the same of one side of a step.
func sideRead(s spec.Step, ofOutputs bool) bool {
	inputs, outputs := spec.PortKeys(s)
	if ofOutputs {
		return s.Place().Complete(outputs...)
	}
	return s.Place().Complete(inputs...)
}

// isConclusive tells whether anything can be concluded from a node: it could be read,
// and of a step also what it reads and writes, unless the rule looks at that itself.
func isConclusive(n spec.Node, r rule) bool {
	if !n.Place().Complete() {
		return false
	}
	s, isStep := n.(spec.Step)
	return !isStep || r.sided || allPortsRead(s)
}

// knownFlow tells whether all inputs and all outputs of a flow could be read and
// linked.
func knownFlow(f *spec.Flow) (in, out bool) {
	if f == nil {
		return false, false
	}
	return f.Place().Complete("inputs") && allLinked(portsOf(f.Inputs)), f.Place().Complete("outputs") && allLinked(portsOf(f.Outputs))
}

// knownTool reports the same of a tool.
func knownTool(t spec.Tool) (in, out bool) {
	if flows := spec.Refs[*spec.Flow](spec.UsesOf(t), spec.RoleFlow); len(flows) > 0 {
		return knownFlow(flows[0].To)
	}
	arguments := t.Arguments()
	results, _ := t.Results()
	return t.Place().Complete("inputs", "parameters") && allNamed(arguments), t.Place().Complete("outputs") && allNamed(results)
}

// allNamed tells whether all variables have ids: what one without is called
// nobody knows, and that it has none is told.
func allNamed(variables []*spec.Variable) bool {
	return !slices.ContainsFunc(variables, func(v *spec.Variable) bool { return v == nil || v.ID == "" })
}
