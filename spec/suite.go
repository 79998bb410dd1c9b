package spec

// Suite is a file of tests, *.qtype-test.yaml. It is no document: nothing of it is run but by `qtype test`.
type Suite struct {
	Positioned
	// App is the application's document, relative to the file; without it the file of the same name, x.qtype.yaml for x.qtype-test.yaml.
	App string `yaml:"app"`
	// Models answer in place of the application's own in every test of the file.
	Models []*ModelMock `yaml:"models"`
	// Tools answer in place of the application's own in every test of the file.
	Tools []*ToolMock `yaml:"tools"`
	// Tests are the tests, each on an application of its own that remembers nothing.
	Tests []*Test `yaml:"tests" jsonschema:"required"`
}

// Test is a conversation, or a single run of a flow, and what must come of it.
type Test struct {
	Positioned
	// Name tells what is tested; it is unique in the file.
	Name string `yaml:"name" jsonschema:"required"`
	// Flow is the flow that is run; it may be left out where the application has one.
	Flow string `yaml:"flow"`
	// Session is the conversation that the turns belong to.
	Session string `yaml:"session" default:"test"`
	// Models answer in place of the application's own; they go before the file's.
	Models []*ModelMock `yaml:"models"`
	// Tools answer in place of the application's own; they go before the file's.
	Tools []*ToolMock `yaml:"tools"`
	// Turns are run one after the other.
	Turns []*Turn `yaml:"turns" jsonschema:"required"`
}

// ModelMock is a mock in place of a model.
type ModelMock struct {
	Positioned
	// ID is the model's id.
	ID string `yaml:"id" jsonschema:"required"`
	// Rules tell what it answers, as those of a model of provider mock do.
	Rules []*MockRule `yaml:"rules" jsonschema:"required"`
}

// ToolMock answers in place of a tool.
type ToolMock struct {
	Positioned
	// ID is the tool's id.
	ID string `yaml:"id" jsonschema:"required"`
	// Result is what every call gives: a value, or a mapping by the names of the tool's outputs.
	Result any `yaml:"result"`
	// Error fails every call with this text.
	Error string `yaml:"error"`
}

// Turn is one row through the flow.
type Turn struct {
	Positioned
	// Input is the value of the flow's only input, or of the only one that must be given.
	Input any `yaml:"input"`
	// Inputs are the values of the flow's inputs by their ids.
	Inputs map[string]any `yaml:"inputs"`
	// Expect are conditions over the flow's outputs; each must hold for every row that comes out.
	Expect []Expression `yaml:"expect"`
	// Fails is a regular expression (RE2) that the error of the row matches; without it no row may fail.
	Fails string `yaml:"fails"`
	// Rows is how many rows come out; without it at least one.
	Rows *int `yaml:"rows" validate:"omitempty,gte=0"`
	// Memory is what the memories' windows are like after the turn.
	Memory []*WindowAssertion `yaml:"memory"`
	// Sent is what the models were asked in the turn.
	Sent []*RequestAssertion `yaml:"sent"`
}

// WindowAssertion says what the window of a memory is like: what the next call would be sent of the conversation.
type WindowAssertion struct {
	Positioned
	// ID is the memory's id.
	ID string `yaml:"id" jsonschema:"required"`
	// Messages is how many messages of the conversation there are, the system message not counted.
	Messages *int `yaml:"messages" validate:"omitempty,gte=0"`
	// MaxTokens is the most tokens that they may have.
	MaxTokens *int `yaml:"max_tokens" validate:"omitempty,gte=0"`
	// Contains are texts that stand in one of them.
	Contains []string `yaml:"contains"`
	// Lacks are texts that stand in none of them.
	Lacks []string `yaml:"not_contains" alias:"lacks"`
}

// RequestAssertion says what a model was sent in a turn.
type RequestAssertion struct {
	Positioned
	// ID is the model's id.
	ID string `yaml:"id" jsonschema:"required"`
	// Calls is how often the model was asked.
	Calls *int `yaml:"calls" validate:"omitempty,gte=0"`
	// MaxTokens is the most tokens that the messages of one call may have.
	MaxTokens *int `yaml:"max_tokens" validate:"omitempty,gte=0"`
	// Contains are texts that stand in the messages of every call.
	Contains []string `yaml:"contains"`
	// Lacks are texts that stand in the messages of no call.
	Lacks []string `yaml:"not_contains" alias:"lacks"`
}
