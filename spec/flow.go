package spec

// Flow is a chain of steps over a stream of rows.
type Flow struct {
	Positioned
	// ID is the flow's unique name: run, serve and InvokeFlow use it.
	ID string `yaml:"id" jsonschema:"required"`
	// Type is Flow and may be left out.
	Type string `yaml:"type" default:"Flow" validate:"oneof=Flow"`
	// Description says what the flow does; it is also the description of its endpoint.
	Description string `yaml:"description"`
	// Steps are run in order; a {$ref: id} reuses a step of another flow.
	Steps []*StepItem `yaml:"steps"`
	// Budget ends a run of the flow that would cost more; without one a run may cost what it costs.
	Budget *Budget `yaml:"budget"`
	// Interface says how the flow is talked to; without one it is for batches and REST only.
	Interface *FlowInterface `yaml:"interface"`
	// Feedback asks users to rate the flow's answers; it needs telemetry.
	Feedback Feedback `yaml:"feedback"`
	// Variables declares the values that the flow's rows carry.
	Variables []*Variable `yaml:"variables"`
	// Inputs are the variables that a caller gives, by their ids.
	Inputs []Ref[*Variable] `yaml:"inputs"`
	// Outputs are the variables that a caller gets, by their ids.
	Outputs []Ref[*Variable] `yaml:"outputs"`

	plan *Plan // what the steps use; nil until SetPlan
}

// EntityID is the id.
func (f *Flow) EntityID() string { return f.ID }

// Kind is KindFlow.
func (f *Flow) Kind() Kind { return KindFlow }

// StepItem is one place in a flow's list of steps: a step written there, or a
// reference to one written elsewhere. After linking Step is set in both cases.
type StepItem struct {
	Ref  Ref[Step] // set for {$ref: id}
	Step Step      // the step
}

// Budget is what one run of a flow may cost at most, everything that it invokes included. What is left out has no limit.
type Budget struct {
	Positioned
	// Tokens is the most tokens that models may read and write.
	Tokens int `yaml:"tokens" validate:"gt=0"`
	// Calls is the most calls of models and tools.
	Calls int `yaml:"calls" validate:"gt=0"`
	// Seconds is how long the run may take.
	Seconds float64 `yaml:"seconds" validate:"gt=0"`
	// Money is what the model calls may cost, in the currency of the models' prices.
	Money float64 `yaml:"money" validate:"gt=0"`
}

// FlowInterface says how a flow is talked to.
type FlowInterface struct {
	Positioned
	// Type is Complete (one text in, one text out) or Conversational (ChatMessages).
	Type string `yaml:"type" default:"Complete" validate:"oneof=Complete Conversational"`
	// SessionInputs are inputs that keep their first value for the whole conversation.
	SessionInputs []Ref[*Variable] `yaml:"session_inputs"`
}

// Feedback asks users to rate a flow's answers.
type Feedback interface {
	Node
	feedback() // marks the kinds of feedback
}

// FeedbackBase holds what all kinds of feedback share.
type FeedbackBase struct {
	Positioned
	// Explanation also asks for a written explanation.
	Explanation bool `yaml:"explanation" default:"false"`
}

func (*FeedbackBase) feedback() {}

// ThumbsFeedback asks for a thumb up or down.
type ThumbsFeedback struct {
	FeedbackBase
}

// RatingFeedback asks for a score from 1 to Scale.
type RatingFeedback struct {
	FeedbackBase
	// Scale is the highest score, 2 to 10.
	Scale int `yaml:"scale" default:"5" validate:"min=2,max=10"`
}

// CategoryFeedback asks for one or more labels.
type CategoryFeedback struct {
	FeedbackBase
	// Categories are the labels to choose from.
	Categories []string `yaml:"categories" jsonschema:"required"`
	// AllowMultiple lets a user choose several.
	AllowMultiple bool `yaml:"allow_multiple" default:"true"`
}
