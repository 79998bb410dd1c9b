package mock

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// maxSampleDepth bounds a sample of a type that holds itself.
const maxSampleDepth = 16

// schema is as much of a JSON schema as answers are asked for with.
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

// sample is a JSON object that fits a schema: every text in it is the given one,
// numbers are 0, lists empty, and what may be left out is left out below the top.
func sample(raw json.RawMessage, text string) (string, error) {
	var s schema
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", fmt.Errorf("[mock] the schema of the answer cannot be read: %w", err)
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
