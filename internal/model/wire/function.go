package wire

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/qtype-dev/qtype/model"
)

// Function is a tool in the format of OpenAI and Ollama.
type Function struct {
	Type     string `json:"type"` // always function
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters"`
		Strict      bool            `json:"strict,omitempty"` // set by clients of servers that have it
	} `json:"function"`
}

// Functions converts tools.
func Functions(tools []model.Tool) []Function {
	list := make([]Function, len(tools))
	for i, t := range tools {
		f := &list[i]
		f.Type, f.Function.Name, f.Function.Description, f.Function.Parameters = "function", t.Name, t.Description, t.Parameters
	}
	return list
}

// NoHostedTools returns the error of a tool that a provider without hosted tools cannot run, nil for
// none.
func NoHostedTools(tools []model.Tool, provider string) error {
	for _, t := range tools {
		if t.Hosted != "" {
			return fmt.Errorf("tool %s: %s has no hosted tool %s", t.Name, provider, t.Hosted)
		}
	}
	return nil
}

// EmptySchema is the schema of a tool without arguments.
const EmptySchema = `{"type":"object","properties":{}}`

// withObjectSchemas returns tools whose parameters are schemas of objects with the keyword
// properties. Servers of tools leave out both, and most providers require them.
func withObjectSchemas(tools []model.Tool) []model.Tool {
	changed := slices.Clone(tools)
	for i, t := range changed {
		changed[i].Parameters = objectSchema(t.Parameters)
	}
	return changed
}

// objectSchema completes a schema to one of an object. What is not a schema becomes
// EmptySchema.
func objectSchema(raw json.RawMessage) json.RawMessage {
	var schema map[string]json.RawMessage
	if json.Unmarshal(raw, &schema) != nil || len(schema) == 0 {
		return json.RawMessage(EmptySchema)
	}
	var properties map[string]json.RawMessage
	_ = json.Unmarshal(schema["properties"], &properties) // leaves nil
	if string(schema["type"]) == `"object"` && properties != nil {
		return raw
	}
	schema["type"] = json.RawMessage(`"object"`)
	if properties == nil {
		schema["properties"] = json.RawMessage("{}")
	}
	raw, _ = json.Marshal(schema) // decoded JSON always encodes
	return raw
}
