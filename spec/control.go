package spec

import "github.com/qtype-dev/qtype/spec/source"

// Expression is a formula over the variables of its flow, in the language of
// github.com/expr-lang/expr: price * quantity > 100 and status != "closed".
// Variables that may be null are nil where they are: price ?? 0.
type Expression struct {
	Text string           // the formula
	Span source.Span      // where it stands
	Vars []Ref[*Variable] // the variables that it reads, each once; filled by validate
}

// IsZero tells whether there is no expression.
func (e *Expression) IsZero() bool { return e.Text == "" && e.Span.IsZero() }

// Assignments map variables to the expressions that give them their values, in document order.
type Assignments []Assignment

// Assignment is one entry of Assignments.
type Assignment struct {
	Var  Ref[*Variable] // the variable that is set
	Expr Expression     // its value
}

// The flows that Switch, Loop and Parallel run take their inputs from the step's
// inputs of the same ids, and give their outputs to the step's outputs of the same ids.

// Switch runs one of several flows for each row: that of the first case whose condition holds.
// The flow's inputs and outputs are the step's inputs and outputs of the same ids.
type Switch struct {
	StepBase `rows:"many" writes:"maybe"`
	// Cases are tried in order.
	Cases []*SwitchCase `yaml:"cases" jsonschema:"required"`
	// Else names the flow for rows that no case holds for; without one such rows pass as they are, and the step's outputs stay what they were.
	Else Ref[*Flow] `yaml:"else"`
}

// SwitchCase is one case of a Switch.
type SwitchCase struct {
	Positioned
	// When is the condition: an expression over the variables of the flow, such as label == "refund".
	When Expression `yaml:"when" jsonschema:"required"`
	// Flow names the flow that is run, by its id.
	Flow Ref[*Flow] `yaml:"flow" jsonschema:"required"`
}

// Loop runs a flow again and again for each row, each time with the values that the last time left; the flow makes one row of one.
// The flow's inputs and outputs are the step's inputs and outputs of the same ids.
type Loop struct {
	StepBase
	// Flow names the flow that is run, by its id.
	Flow Ref[*Flow] `yaml:"flow" jsonschema:"required"`
	// Until is the condition that ends the loop, looked at after each run: an expression over the variables of the flow, such as score > 0.9. Without one the flow is run max_iterations times.
	Until Expression `yaml:"until" evaluated:"after"`
	// MaxIterations is how often the flow is run at most; after that the row goes on with what the last run left, even if the condition does not hold.
	MaxIterations int `yaml:"max_iterations" jsonschema:"required" validate:"gt=0"`
}

// Parallel runs several flows side by side for each row and puts their outputs together; each makes one row of one, and the first that fails ends the others.
// The flows' inputs and outputs are the step's inputs and outputs of the same ids.
type Parallel struct {
	StepBase
	// Flows name the flows that are run, by their ids. No two of them give the same output.
	Flows []Ref[*Flow] `yaml:"flows" jsonschema:"required"`
}

// Transform sets variables by expressions.
type Transform struct {
	StepBase
	// Set maps each variable that is set to an expression over the variables of the flow, such as total: price * quantity. All see the row as it came to the step.
	Set Assignments `yaml:"set" jsonschema:"required"`
}
