package spec

// MemoryVariables sets and reads the named values that a memory keeps for the
// session: each input is kept under its id, then each output is read by its id.
// An input that is unset or null leaves the value as it is. A model is told the
// values where the memory has a context block of type variables.
type MemoryVariables struct {
	StepBase
	// Memory names the chat memory that keeps the values, by its id.
	Memory Ref[*Memory] `yaml:"memory" jsonschema:"required" role:"values"`
	// Forget are the names of values that are removed before the inputs are kept.
	Forget []string `yaml:"forget"`
}

// MemoryTool lets a model set and read the named values that a memory keeps for the session: each argument that the model gives is kept under its name, then the outputs are read by theirs. An optional argument that is left out leaves the value as it is.
type MemoryTool struct {
	ToolBase
	// Memory names the chat memory that keeps the values, by its id.
	Memory Ref[*Memory] `yaml:"memory" jsonschema:"required" role:"values"`
}
