package openai

import (
	"encoding/json"
	"slices"

	"github.com/qtype-dev/qtype/model"
)

// responseFormat requests the form of an answer. The model is bound to the schema where
// the schema has no optional properties, which strict does not allow.
func responseFormat(s *model.Schema) map[string]any {
	if s.Form == model.SchemaJSON {
		return map[string]any{"type": "json_object"}
	}
	schema := map[string]any{"name": s.Name, "schema": s.JSON}
	if isStrictSchema(s.JSON) {
		schema["strict"] = true
	}
	return map[string]any{"type": "json_schema", "json_schema": schema}
}

// isStrictSchema reports whether OpenAI accepts a schema with strict.
func isStrictSchema(raw json.RawMessage) bool {
	var parsed any
	return json.Unmarshal(raw, &parsed) == nil && isStrict(parsed)
}

// isStrict reports whether all objects of a schema require all of their properties and
// allow no others, and whether it has only keywords that OpenAI accepts with strict.
func isStrict(schema any) bool {
	switch s := schema.(type) {
	case []any:
		return !slices.ContainsFunc(s, func(v any) bool { return !isStrict(v) })
	case map[string]any:
		if s["type"] == "object" {
			properties, _ := s["properties"].(map[string]any)
			required, _ := s["required"].([]any)
			if s["additionalProperties"] != false || len(required) != len(properties) {
				return false
			}
		}
		for name, v := range s {
			switch name {
			case "properties", "$defs":
				named, _ := v.(map[string]any)
				for _, inner := range named {
					if !isStrict(inner) {
						return false
					}
				}
			case "items", "anyOf":
				if !isStrict(v) {
					return false
				}
			case "type", "required", "additionalProperties", "description", "enum", "$ref", "format", "minimum", "maximum":
			default:
				return false
			}
		}
	}
	return true
}
