package spec

import "github.com/qtype-dev/qtype/spec/source"

// Expression is an expression over the variables of its flow, in the language of
// github.com/expr-lang/expr: price * quantity > 100 and status != "closed".
// A null variable is nil: price ?? 0.
type Expression struct {
	Text string           // the expression
	Span source.Span      // its position
	Vars []Ref[*Variable] // the variables that it reads, each once; filled by validate
}

// IsZero reports whether there is no expression.
func (e *Expression) IsZero() bool { return e.Text == "" && e.Span.IsZero() }

// Assignments map variables to the expressions that give them their values, in document order.
type Assignments []Assignment

// Assignment is one entry of Assignments.
type Assignment struct {
	Var  Ref[*Variable] // the variable that is set
	Expr Expression     // its value
}

// Switch runs one of several flows for each row: that of the first case whose condition holds.
// The flow's inputs and outputs are the step's inputs and outputs of the same ids.
type Switch struct {
	StepBase `rows:"many" writes:"maybe" work:"compute"`
	// Cases are tried in order.
	Cases []*SwitchCase `yaml:"cases" jsonschema:"required" nonempty:"true"`
	// Else is the id of the flow for rows that match no case; without it such rows pass unchanged, and the step's outputs keep their values.
	Else Ref[*Flow] `yaml:"else"`
}

// SwitchCase is one case of a Switch.
type SwitchCase struct {
	Positioned
	// When is the condition: an expression over the variables of the flow, such as label == "refund".
	When Expression `yaml:"when" jsonschema:"required"`
	// Flow is the id of the flow to run.
	Flow Ref[*Flow] `yaml:"flow" jsonschema:"required"`
}

// Loop runs a flow repeatedly for each row, each time with the values of the previous run; the flow makes one row of each row.
// The flow's inputs and outputs are the step's inputs and outputs of the same ids.
type Loop struct {
	StepBase `work:"compute"`
	// Flow is the id of the flow to run.
	Flow Ref[*Flow] `yaml:"flow" jsonschema:"required"`
	// Until is the condition that ends the loop, evaluated after each run: an expression over the variables of the flow, such as score > 0.9. Without it the flow runs max_iterations times.
	Until Expression `yaml:"until" evaluated:"after"`
	// MaxIterations is the maximum number of runs; after that the row goes on with the values of the last run, even if the condition does not hold.
	MaxIterations int `yaml:"max_iterations" jsonschema:"required" validate:"gt=0"`
}

// Parallel runs several flows concurrently for each row and merges their outputs; each makes one row of each row, and the first that fails cancels the others.
// The flows' inputs and outputs are the step's inputs and outputs of the same ids.
type Parallel struct {
	StepBase `work:"compute"`
	// Flows are the ids of the flows to run. No two of them write the same output.
	Flows []Ref[*Flow] `yaml:"flows" jsonschema:"required" nonempty:"true"`
}

// Transform sets variables by expressions.
type Transform struct {
	StepBase `work:"compute"`
	// Set maps each variable that is set to an expression over the variables of the flow, such as total: price * quantity. All expressions see the row as it was before the step.
	Set Assignments `yaml:"set" jsonschema:"required" nonempty:"true"`
}

// HandBackTool is the name of the tool by which an Agent hands a conversation back.
const HandBackTool = "hand_back"

// HandoffVariables begins the names of the variables of a session that say which flow has the conversation.
// They are not for models.
const HandoffVariables = "handoff."

// HandoffTool returns the name of the tool by which an Agent transfers a conversation.
func HandoffTool(f *Flow) string { return "transfer_to_" + f.ID }

// HandoffProblem returns why an Agent cannot transfer a conversation to a flow; empty if
// it can. Unlinked variables are not a problem.
func HandoffProblem(f *Flow) string {
	switch {
	case len(f.Inputs) == 0:
		return "it has no input for the question"
	case !isMessageOrText(f.Inputs[0].To):
		return "its first input must be a text or a ChatMessage: it is the question"
	case len(f.Outputs) != 1:
		return "it must have exactly one output, which is the answer"
	case !isMessageOrText(f.Outputs[0].To):
		return "its output must be a text or a ChatMessage: it is the answer"
	}
	for _, ref := range f.Inputs[1:] {
		if ref.To != nil && !ref.To.IsOptional() {
			return "its input " + ref.ID + " gets no value: all inputs but the first must be optional"
		}
	}
	for s := range f.Plan().All() {
		if s.OffersCallerTools() {
			return ""
		}
	}
	return "no Agent in it could hand the conversation back"
}

// isMessageOrText reports whether a variable can have a message of a conversation; an
// unlinked one may.
func isMessageOrText(v *Variable) bool {
	return v == nil || v.Type.Is("text") || v.Type.Is("ChatMessage")
}
