package wire

import (
	"encoding/json"

	"github.com/qtype-dev/qtype/model"
)

// Function is a tool in the format of OpenAI and Ollama.
type Function struct {
	Type     string `json:"type"` // always function
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

// Functions converts tools. A tool without a schema gets EmptySchema.
func Functions(tools []model.Tool) []Function {
	list := make([]Function, len(tools))
	for i, t := range tools {
		f := &list[i]
		f.Type, f.Function.Name, f.Function.Description, f.Function.Parameters = "function", t.Name, t.Description, t.Parameters
		if len(t.Parameters) == 0 {
			f.Function.Parameters = json.RawMessage(EmptySchema)
		}
	}
	return list
}
