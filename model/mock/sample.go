package mock

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// maxSampleDepth limits the sample of a recursive type.
const maxSampleDepth = 16

// schema is the part of JSON schema that requests use.
type schema struct {
	Ref        string             `json:"$ref"`
	Defs       map[string]*schema `json:"$defs"`
	Type       string             `json:"type"`
	Format     string             `json:"format"`
	Encoding   string             `json:"contentEncoding"`
	Enum       []any              `json:"enum"`
	AnyOf      []*schema          `json:"anyOf"`
	Properties map[string]*schema `json:"properties"`
	Required   []string           `json:"required"`
}

// sample returns a JSON object that matches a schema: every text in it is the given one,
// numbers are 0, lists are empty, and optional properties below the top are omitted.
func sample(raw json.RawMessage, text string) (string, error) {
	var s schema
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", fmt.Errorf("[mock] invalid schema of the answer: %w", err)
	}
	made, err := json.Marshal(s.value(s.Defs, text, 0))
	return string(made), err
}

func (s *schema) value(defs map[string]*schema, text string, depth int) any {
	switch {
	case s == nil || depth > maxSampleDepth:
		return nil
	case s.Ref != "":
		return defs[strings.TrimPrefix(s.Ref, "#/$defs/")].value(defs, text, depth+1)
	case len(s.Enum) > 0:
		return s.Enum[0]
	case len(s.AnyOf) > 0:
		return s.AnyOf[0].value(defs, text, depth+1)
	}
	switch s.Type {
	case "object":
		fields := map[string]any{}
		for name, field := range s.Properties {
			if depth <= 1 || slices.Contains(s.Required, name) {
				fields[name] = field.value(defs, text, depth+1)
			}
		}
		return fields
	case "array":
		return []any{}
	case "integer", "number":
		return 0
	case "boolean":
		return false
	case "null":
		return nil
	}
	return s.text(text)
}

func (s *schema) text(text string) string {
	switch {
	case s.Format == "date":
		return "2000-01-01"
	case s.Format == "time":
		return "00:00:00"
	case s.Format == "date-time":
		return "2000-01-01T00:00:00Z"
	case s.Encoding != "":
		return ""
	}
	return text
}
