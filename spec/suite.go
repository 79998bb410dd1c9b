package spec

import (
	"slices"
	"strings"
)

// Suite is a file of tests, *.qtype-test.yaml. Only `qtype test` runs it.
type Suite struct {
	Positioned
	// App is the path of the application's document, relative to the file; by default x.qtype.yaml for x.qtype-test.yaml.
	App string `yaml:"app"`
	// Recordings is the path of the JSON file with recorded calls of models, HTTP servers and MCP servers, relative to the file. `qtype test --record` writes it; without the option it answers the calls.
	Recordings string `yaml:"recordings"`
	// Fixtures is the folder with the files of the tests, relative to the file, in its folder or below: files that steps name by a path or an address are read from it, and written to a copy of it that each test has.
	Fixtures string `yaml:"fixtures"`
	// Trials is how often each test is run.
	Trials int `yaml:"trials" default:"1" validate:"gte=1,lte=1000"`
	// Models are mocks that replace the application's models in every test of the file.
	Models []*ModelMock `yaml:"models"`
	// Tools are mocks that replace the application's tools in every test of the file.
	Tools []*ToolMock `yaml:"tools"`
	// State are the tables that mocks of tools read and change, by name, each a list of rows: every test starts with them.
	State map[string][]map[string]any `yaml:"state"`
	// Allow lists what the tests of the file may really do: ids or types of steps and tools that read or write files, query databases, start programs or call servers.
	Allow []string `yaml:"allow" names:"step,tool"`
	// Tests are the tests. Each runs on a new application with empty memories.
	Tests []*Test `yaml:"tests" jsonschema:"required"`
}

// Test is a conversation, or a single run of a flow, and the expected results.
type Test struct {
	Positioned
	// Name describes what is tested; it is unique in the file.
	Name string `yaml:"name" jsonschema:"required"`
	// Flow is the id of the flow to run; optional if the application has one flow, or if each turn has one.
	Flow string `yaml:"flow" names:"flow"`
	// Session is the session of the turns.
	Session string `yaml:"session" default:"test"`
	// Trials is how often the test is run, in place of the number of the file.
	Trials int `yaml:"trials" validate:"omitempty,gte=1,lte=1000"`
	// PassRate is the share of the trials that must pass.
	PassRate *float64 `yaml:"pass_rate" default:"1" validate:"omitempty,gt=0,lte=1"`
	// Fixtures is the folder with the files of the test, in place of that of the file.
	Fixtures string `yaml:"fixtures"`
	// Models are mocks that replace the application's models; they take precedence over the file's.
	Models []*ModelMock `yaml:"models"`
	// Tools are mocks that replace the application's tools; they take precedence over the file's.
	Tools []*ToolMock `yaml:"tools"`
	// State are tables of the test, in place of those of the file with the same names.
	State map[string][]map[string]any `yaml:"state"`
	// Allow lists what the test may really do, in addition to that of the file: ids or types of steps and tools.
	Allow []string `yaml:"allow" names:"step,tool"`
	// Turns are run one after the other.
	Turns []*Turn `yaml:"turns" jsonschema:"required"`
}

// ModelMock replaces a model.
type ModelMock struct {
	Positioned
	// ID is the model's id.
	ID string `yaml:"id" jsonschema:"required" names:"model"`
	// Rules define the responses, like the rules of a model with the provider mock.
	Rules []*MockRule `yaml:"rules" jsonschema:"required"`
}

// ToolMock replaces a tool.
type ToolMock struct {
	Positioned
	// ID is the tool's id.
	ID string `yaml:"id" jsonschema:"required" names:"tool"`
	// Arguments limits the mock to calls whose arguments have these values, and any others; a call is answered by the first mock of its tool that fits.
	Arguments map[string]any `yaml:"arguments"`
	// Table is the table of the state that a call reads or changes. In where, set, insert and result a text $name is the argument of that name.
	Table string `yaml:"table"`
	// Where limits the mock to calls for which rows of the table have these values, by column; {} are all rows, also none.
	Where map[string]any `yaml:"where"`
	// Set are new values of the rows that where selects, by column.
	Set map[string]any `yaml:"set"`
	// Insert is a row that each call adds to the table.
	Insert map[string]any `yaml:"insert"`
	// Remove deletes the rows that where selects.
	Remove bool `yaml:"remove" default:"false"`
	// Result is the result of every call: a value, or a mapping by the names of the tool's outputs. With a table, $row is the first row that was selected or inserted, which is the default, $row.column a value of it, and $rows the list of all.
	Result any `yaml:"result"`
	// Error fails every call with this text.
	Error string `yaml:"error"`
}

// Turn is one row through the flow.
type Turn struct {
	Positioned
	// Flow is the id of the flow of this turn, if it is not that of the test, such as one that fills an index.
	Flow string `yaml:"flow" names:"flow"`
	// Input is the value of the flow's only input, or of its only required one.
	Input any `yaml:"input"`
	// Inputs are the values of the flow's inputs by their ids.
	Inputs map[string]any `yaml:"inputs" names:"inputs"`
	// Expect are conditions over the flow's outputs; each must hold for every result row.
	Expect []Expression `yaml:"expect" names:"outputs"`
	// Fails is a regular expression (RE2) that the row's error must match; without it no row may fail.
	Fails string `yaml:"fails"`
	// Rows is the expected number of result rows; without it at least one.
	Rows *int `yaml:"rows" validate:"omitempty,gte=0"`
	// Memory are assertions on the memories' windows after the turn.
	Memory []*WindowAssertion `yaml:"memory"`
	// Sent are assertions on the requests to the models in the turn.
	Sent []*RequestAssertion `yaml:"sent"`
	// Calls are assertions on the calls of tools in the turn, by agents and by steps.
	Calls []*CallAssertion `yaml:"calls"`
	// CallOrder are ids of tools that are called in this order in the turn. Other calls may be between them. An empty list is an error: calls with calls: 0 asserts that a tool is not called.
	CallOrder []string `yaml:"call_order" names:"tool"`
	// Reject are the ids of tools whose calls are rejected. An agent of the flow has them under approve. All other calls are approved.
	Reject []string `yaml:"reject" names:"tool"`
	// State are assertions on the tables of the state after the turn.
	State []*RowAssertion `yaml:"state"`
	// Files are assertions on files of the fixtures after the turn, such as those that the turn has written.
	Files []*FileAssertion `yaml:"files"`
}

// WindowAssertion checks the window of a memory: the messages that the next call would send.
type WindowAssertion struct {
	Positioned
	// ID is the memory's id.
	ID string `yaml:"id" jsonschema:"required" names:"memory"`
	// Messages is the number of messages, the system message not counted.
	Messages *int `yaml:"messages" validate:"omitempty,gte=0"`
	// MaxTokens is the maximum number of tokens of the messages.
	MaxTokens *int `yaml:"max_tokens" validate:"omitempty,gte=0"`
	// Contains are texts that one of the messages contains.
	Contains []string `yaml:"contains"`
	// NotContains are texts that none of the messages contains.
	Lacks []string `yaml:"not_contains" alias:"lacks"`
}

// RequestAssertion checks the requests to a model in a turn.
type RequestAssertion struct {
	Positioned
	// ID is the model's id.
	ID string `yaml:"id" jsonschema:"required" names:"model"`
	// Calls is the number of calls.
	Calls *int `yaml:"calls" validate:"omitempty,gte=0"`
	// MaxTokens is the maximum number of tokens of the messages of one call.
	MaxTokens *int `yaml:"max_tokens" validate:"omitempty,gte=0"`
	// Contains are texts that the messages of every call contain.
	Contains []string `yaml:"contains"`
	// SomeContain are texts that the messages of at least one call contain.
	SomeContain []string `yaml:"some_contain"`
	// NotContains are texts that the messages of no call contain.
	Lacks []string `yaml:"not_contains" alias:"lacks"`
}

// CallAssertion checks the calls of a tool in a turn. A call that is rejected or fails is a call.
type CallAssertion struct {
	Positioned
	// ID is the tool's id.
	ID string `yaml:"id" jsonschema:"required" names:"tool"`
	// Function is the name of the function, for tools with several, such as those of an MCP server, with its prefix.
	Function string `yaml:"function"`
	// Calls is the number of calls.
	Calls *int `yaml:"calls" validate:"omitempty,gte=0"`
	// Arguments are values that the arguments of at least one call have. Others may have any value.
	Arguments map[string]any `yaml:"arguments"`
	// Rejected is the number of calls that were not approved.
	Rejected *int `yaml:"rejected" validate:"omitempty,gte=0"`
}

// RowAssertion checks the rows of a table of the state.
type RowAssertion struct {
	Positioned
	// Table is the name of the table.
	Table string `yaml:"table" jsonschema:"required"`
	// Where are values that the rows have, by column; without it all rows count.
	Where map[string]any `yaml:"where"`
	// Rows is the number of these rows; without it at least one.
	Rows *int `yaml:"rows" validate:"omitempty,gte=0"`
}

// FileAssertion checks a file that a step may have written to the fixtures.
type FileAssertion struct {
	Positioned
	// Path is the path or the address of the file, as the step has it.
	Path string `yaml:"path" jsonschema:"required"`
	// Same is the path of the file with the expected content, relative to the test file.
	Same string `yaml:"same_as"`
	// Contains are texts that the file contains.
	Contains []string `yaml:"contains"`
	// NotContains are texts that the file does not contain.
	Lacks []string `yaml:"not_contains"`
}

// fileStep is a step that may use nothing outside of the process but files.
type fileStep interface {
	usesFilesOnly() bool
}

// UsesFilesOnly reports whether a step uses nothing outside of the process but files, which
// the fixtures of a test can have.
func UsesFilesOnly(s Step) bool {
	f, ok := s.(fileStep)
	return ok && f.usesFilesOnly()
}

func (s *FileSource) usesFilesOnly() bool         { return true }
func (s *FileWriter) usesFilesOnly() bool         { return true }
func (s *DocToTextConverter) usesFilesOnly() bool { return true }

func (s *DocumentSource) usesFilesOnly() bool {
	return slices.ContainsFunc(Readers(), func(r Reader) bool { return r.Local && r.IsNamed(s.ReaderModule) })
}

func (s *SQLSource) usesFilesOnly() bool {
	return s.Connection.Ref == nil && strings.HasPrefix(strings.ToLower(strings.TrimSpace(s.Connection.Reveal())), "sqlite")
}
