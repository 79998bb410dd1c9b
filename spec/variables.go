package spec

import (
	"reflect"
	"regexp"
	"strings"
	"sync"
)

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

// VerbatimText is a text that models read as it is written.
type VerbatimText struct {
	Key  string // its key in the node
	Text string // empty if it is not set
}

// VerbatimTexts returns the texts of a node with the tag verbatim.
func VerbatimTexts(n Node) []VerbatimText {
	v := reflect.Indirect(reflect.ValueOf(n))
	if v.Kind() != reflect.Struct {
		return nil
	}
	var texts []VerbatimText
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.Tag.Get("verbatim") == "true" {
			key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			texts = append(texts, VerbatimText{key, v.Field(i).String()})
		}
	}
	return texts
}

// bracedVariable matches a name in single or doubled braces.
var bracedVariable = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\{\{[ \t]*([A-Za-z_][A-Za-z0-9_.]*)[ \t]*\}\}|\{([A-Za-z_][A-Za-z0-9_]*)\}`)
})

// Placeholder is a part of a text that looks like a placeholder of a template.
type Placeholder struct {
	Text string // with its braces
	Name string // the variable
	At   int    // its first byte in the text
}

// Placeholders returns what its author may take for placeholders: names in doubled braces, and
// names of variables in single ones. ${NAME} is not one: the loader replaces it.
func (t VerbatimText) Placeholders(isVariable func(name string) bool) []Placeholder {
	var found []Placeholder
	for _, at := range bracedVariable().FindAllStringSubmatchIndex(t.Text, -1) {
		one := Placeholder{Text: t.Text[at[0]:at[1]], At: at[0]}
		if at[2] >= 0 {
			one.Name = t.Text[at[2]:at[3]]
		} else if one.Name = t.Text[at[4]:at[5]]; !isVariable(one.Name) {
			continue
		}
		if !strings.HasSuffix(t.Text[:at[0]], "$") {
			found = append(found, one)
		}
	}
	return found
}
