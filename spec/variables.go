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

// MemoryTool lets a model set and read named values that a memory stores for the session: each argument of a call is stored under its name, then the outputs are read by their names. An omitted optional argument does not change the stored value.
type MemoryTool struct {
	ToolBase
	// Memory is the id of the memory that stores the values.
	Memory Ref[*Memory] `yaml:"memory" jsonschema:"required" role:"values"`
	// Scope selects whose values they are: those of the session, of its user (user), or of the application (app).
	Scope Scope `yaml:"scope" default:"session" validate:"oneof=session user app"`
}

// scopedValues is a step or tool with values of a scope.
type scopedValues interface{ valueScope() Scope }

func (s *MemoryVariables) valueScope() Scope { return s.Scope }
func (t *MemoryTool) valueScope() Scope      { return t.Scope }
