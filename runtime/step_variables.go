package runtime

import (
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
)

// stepVariables are the variables of a step that observers see.
type stepVariables struct{ reads, writes variableSlots }

// variableSlots are variables with their slots.
type variableSlots []outputSlot

// newStepVariables returns the variables that a step reads and writes.
func newStepVariables(n *node, l *layout) stepVariables {
	var v stepVariables
	add := func(to *variableSlots, variable *spec.Variable) {
		if slot := l.Slot(variable); slot >= 0 {
			*to = append(*to, outputSlot{variable, slot})
		}
	}
	if n.plan.ReadsAll {
		for _, variable := range l.vars {
			add(&v.reads, variable)
		}
	}
	for _, ref := range n.plan.Reads {
		add(&v.reads, ref.To)
	}
	for _, ref := range n.plan.Step.Common().AllOutputs() {
		add(&v.writes, ref.To)
	}
	return v
}

// of returns the variables that are set in a row.
func (all variableSlots) of(row *steps.Row) []value.Field {
	var fields []value.Field
	for _, v := range all {
		fields = appendField(fields, v.variable, row.Values[v.slot])
	}
	return fields
}

// appendField appends a variable that is set.
func appendField(fields []value.Field, v *spec.Variable, x any) []value.Field {
	if x == any(value.Unset) {
		return fields
	}
	return append(fields, value.Field{Name: v.ID, Value: x})
}
