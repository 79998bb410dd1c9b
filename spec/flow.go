package spec

// Flow is a pipeline of steps over a stream of rows.
type Flow struct {
	Positioned
	// ID is the flow's unique name; run, serve and InvokeFlow use it.
	ID string `yaml:"id" jsonschema:"required"`
	// Type is Flow, and optional.
	Type string `yaml:"type" default:"Flow" validate:"oneof=Flow"`
	// Description describes what the flow does; it is also the description of its endpoint.
	Description string `yaml:"description"`
	// Steps are run in order; a {$ref: id} reuses a step of another flow.
	Steps []*StepItem `yaml:"steps"`
	// Budget ends a run of the flow that would exceed it; without one the cost of a run is not limited.
	Budget *Budget `yaml:"budget"`
	// Interface describes how users interact with the flow; without one it is for batches and REST only.
	Interface *FlowInterface `yaml:"interface"`
	// Allow lists who may call the flow on a server: names of API keys, users as "user:NAME", and roles as "role:NAME". Without it every caller may; an empty list allows no caller.
	Allow []string `yaml:"allow"`
	// Feedback requests ratings of the flow's answers; it needs a memory or telemetry.
	Feedback Feedback `yaml:"feedback"`
	// Table describes how a file with the flow's rows is read (-I, and the data of evaluations) where its name and content do not tell.
	Table *Table `yaml:"table"`
	// Variables declares the values that the flow's rows carry.
	Variables []*Variable `yaml:"variables"`
	// Inputs are the ids of the variables that a caller sets.
	Inputs []Ref[*Variable] `yaml:"inputs"`
	// Outputs are the ids of the variables that a caller receives.
	Outputs []Ref[*Variable] `yaml:"outputs"`

	plan *Plan // what the steps use; nil until SetPlan
}

// EntityID is the id.
func (f *Flow) EntityID() string { return f.ID }

// Kind is KindFlow.
func (f *Flow) Kind() Kind { return KindFlow }

// StepItem is one entry of a flow's list of steps: a step, or a reference to a step
// of another flow. After linking Step is set in both cases.
type StepItem struct {
	Ref  Ref[Step] // set for {$ref: id}
	Step Step      // the step
}

// Budget limits one run of a flow, or one call of a tool, everything that it invokes included. A missing key means no limit.
type Budget struct {
	Positioned
	// Tokens is the maximum number of tokens that models read and write.
	Tokens int `yaml:"tokens" validate:"gt=0"`
	// Calls is the maximum number of calls of models and tools.
	Calls int `yaml:"calls" validate:"gt=0"`
	// Seconds is the maximum duration of the run.
	Seconds float64 `yaml:"seconds" validate:"gt=0"`
	// Money is the maximum cost of the model calls, in the currency of the models' prices.
	Money float64 `yaml:"money" validate:"gt=0"`
}

// FlowInterface describes how users interact with a flow.
type FlowInterface struct {
	Positioned
	// Type is Complete (one text in, one text out) or Conversational (ChatMessages).
	Type string `yaml:"type" default:"Complete" validate:"oneof=Complete Conversational"`
	// SessionInputs are inputs that keep their first value for the whole conversation.
	SessionInputs []Ref[*Variable] `yaml:"session_inputs"`
	// OnDisconnect is what a server does when the client of a stream disconnects: cancel the run, or finish it and store its messages.
	OnDisconnect string `yaml:"on_disconnect" default:"cancel" validate:"oneof=cancel finish"`
	// Examples are messages that a user interface offers for the start of a conversation.
	Examples []string `yaml:"examples"`
}

// Feedback requests ratings of a flow's answers.
type Feedback interface {
	Node
	feedback() // marks the kinds of feedback
}

// FeedbackBase holds what all kinds of feedback share.
type FeedbackBase struct {
	Positioned
	// Explanation also requests a written explanation.
	Explanation bool `yaml:"explanation" default:"false"`
}

func (*FeedbackBase) feedback() {}

// ThumbsFeedback requests a thumb up or down.
type ThumbsFeedback struct {
	FeedbackBase
}

// RatingFeedback requests a score from 1 to Scale.
type RatingFeedback struct {
	FeedbackBase
	// Scale is the highest score, 2 to 10.
	Scale int `yaml:"scale" default:"5" validate:"min=2,max=10"`
}

// CategoryFeedback requests one or more labels.
type CategoryFeedback struct {
	FeedbackBase
	// Categories are the labels to choose from.
	Categories []string `yaml:"categories" jsonschema:"required"`
	// AllowMultiple lets a user choose several.
	AllowMultiple bool `yaml:"allow_multiple" default:"true"`
}
