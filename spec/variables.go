package spec

// MemoryVariables sets and reads named values that a memory stores for the
// session: each input is stored under its id, then each output is read by its id.
// An input that is unset or null does not change the stored value. The values are
// part of the prompt if the memory has a context block of type variables.
type MemoryVariables struct {
	StepBase
	// Memory is the id of the memory that stores the values.
	Memory Ref[*Memory] `yaml:"memory" jsonschema:"required" role:"values"`
	// Scope selects whose values they are: those of the session, of its user (user), or of the application (app).
	Scope Scope `yaml:"scope" default:"session" validate:"oneof=session user app"`
	// Forget are the names of values that are removed before the inputs are stored.
	Forget []string `yaml:"forget"`
}

// MemoryTool lets a model set and read named values that a memory stores for the session: each argument of a call is stored under its name, then the outputs are read by their names. An omitted optional argument does not change the stored value. With search, it lets a model search the history of conversations instead, and with read, read one message as a whole.
type MemoryTool struct {
	ToolBase
	// Memory is the id of the memory that stores the values or has the history.
	Memory Ref[*Memory] `yaml:"memory" jsonschema:"required" role:"values"`
	// Scope selects whose values or messages they are: those of the session, of its user (user), or of the application (app).
	Scope Scope `yaml:"scope" default:"session" validate:"oneof=session user app"`
	// Search makes the tool search the messages of the scope, by words, and by meaning too if the memory has a block of type retrieval. The arguments of a call are query, a text, and optionally since and until, dates, and limit, an int; the result is a list of messages with their times. The tool then has no inputs and outputs.
	Search bool `yaml:"search" default:"false"`
	// Read makes the tool return a message of the session as a whole, such as a tool result that shorten_tool_results has shortened. The arguments of a call are message, the number in the note, and optionally offset, the characters to skip; the result has content, at most 16,000 characters of it, characters, its length, and next_offset if there is more. The tool then has no inputs and outputs.
	Read bool `yaml:"read" default:"false"`
}

// The arguments of a MemoryTool with search.
const (
	MemorySearchQuery = "query" // what to find
	MemorySearchSince = "since" // the first day
	MemorySearchUntil = "until" // the last day
	MemorySearchLimit = "limit" // the maximum number of messages
)

// The arguments of a MemoryTool with read.
const (
	MemoryReadMessage = "message" // the number of the message
	MemoryReadOffset  = "offset"  // the characters to skip
)

// Arguments returns the inputs, or those of a search or of read.
func (t *MemoryTool) Arguments() []*Variable {
	if t.Read {
		return []*Variable{
			{ID: MemoryReadMessage, Type: Type{Name: "int"}},
			{ID: MemoryReadOffset, Type: Type{Name: "int", Optional: true}, Optional: true},
		}
	}
	if !t.Search {
		return t.Inputs
	}
	return []*Variable{
		{ID: MemorySearchQuery, Type: Type{Name: "text"}},
		{ID: MemorySearchSince, Type: Type{Name: "date", Optional: true}, Optional: true},
		{ID: MemorySearchUntil, Type: Type{Name: "date", Optional: true}, Optional: true},
		{ID: MemorySearchLimit, Type: Type{Name: "int", Optional: true}, Optional: true},
	}
}

// Results returns the outputs. A search has none, its result is a list of messages; neither
// has read.
func (t *MemoryTool) Results() (vars []*Variable, declared bool) {
	if t.Search || t.Read {
		return nil, false
	}
	return t.ToolBase.Results()
}

// scopedValues is a step or tool with values of a scope.
type scopedValues interface{ valueScope() Scope }

func (s *MemoryVariables) valueScope() Scope { return s.Scope }
func (t *MemoryTool) valueScope() Scope      { return t.Scope }
