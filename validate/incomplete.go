package validate

import (
	"reflect"
	"slices"

	"github.com/qtype-dev/qtype/spec"
)

// maybeDeclared reports whether a part of the document that could not be read may
// declare an entity of a type. Its absence is then not reported.
func (p *checker) maybeDeclared(target reflect.Type) bool {
	return slices.ContainsFunc(p.doc.Gaps.Declared, func(t reflect.Type) bool { return t.AssignableTo(target) })
}

// maybeReferenced reports whether a part of the document that could not be read may
// contain a reference to an entity.
func (p *checker) maybeReferenced(e spec.Entity) bool {
	return slices.ContainsFunc(p.doc.Gaps.Named, func(t reflect.Type) bool { return reflect.TypeOf(e).AssignableTo(t) })
}

// allPortsRead reports whether all keys with variables of a step could be read.
func allPortsRead(s spec.Step) bool {
	inputs, outputs := spec.PortKeys(s)
	return s.Position().Complete(append(inputs, outputs...)...)
}

// sideRead reports whether the keys with the inputs or the outputs of a step could be read.
func sideRead(s spec.Step, ofOutputs bool) bool {
	inputs, outputs := spec.PortKeys(s)
	if ofOutputs {
		return s.Position().Complete(outputs...)
	}
	return s.Position().Complete(inputs...)
}

// isConclusive reports whether the node was read completely enough to check r.
func isConclusive(n spec.Node, r rule) bool {
	if !n.Position().Complete() {
		return false
	}
	s, isStep := n.(spec.Step)
	return !isStep || r.checksSides || allPortsRead(s)
}

// knownFlow reports whether all inputs and all outputs of a flow could be read and linked.
func knownFlow(f *spec.Flow) (in, out bool) {
	if f == nil {
		return false, false
	}
	return f.Position().Complete("inputs") && allLinked(portsOf(f.Inputs)), f.Position().Complete("outputs") && allLinked(portsOf(f.Outputs))
}

// knownTool reports whether all inputs and all outputs of a tool could be read.
func knownTool(t spec.Tool) (in, out bool) {
	if flows := spec.Refs[*spec.Flow](spec.UsesOf(t), spec.RoleFlow); len(flows) > 0 {
		return knownFlow(flows[0].To)
	}
	arguments := t.Arguments()
	results, _ := t.Results()
	return t.Position().Complete("inputs", "parameters") && allHaveIDs(arguments), t.Position().Complete("outputs") && allHaveIDs(results)
}

// allHaveIDs reports whether all variables have ids. The loader reports missing ids.
func allHaveIDs(variables []*spec.Variable) bool {
	return !slices.ContainsFunc(variables, func(v *spec.Variable) bool { return v == nil || v.ID == "" })
}
