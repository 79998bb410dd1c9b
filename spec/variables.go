package spec

// MemoryVariables sets and reads the named values that a memory keeps for the
// session: each input is kept under its id, then each output is read by its id.
// A model is told them where the memory has a context block of type variables.
type MemoryVariables struct {
	StepBase
	// Memory names the chat memory that keeps the values, by its id.
	Memory Ref[*Memory] `yaml:"memory" jsonschema:"required"`
}

// MemoryTool lets a model set and read the named values that a memory keeps for the session: each argument that the model gives is kept under its name, then the outputs are read by theirs.
type MemoryTool struct {
	ToolBase
	// Memory names the chat memory that keeps the values, by its id.
	Memory Ref[*Memory] `yaml:"memory" jsonschema:"required"`
}
