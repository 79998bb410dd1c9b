package mock

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxSampleDepth limits the sample of a recursive type.
const maxSampleDepth = 16

// maxLength bounds the texts of an instance.
const maxLength = 10_000

// schema is the part of JSON schema that an instance depends on.
type schema struct {
	Ref        string             `json:"$ref"`
	Defs       map[string]*schema `json:"$defs"`
	Type       types              `json:"type"`
	Format     string             `json:"format"`
	Encoding   string             `json:"contentEncoding"`
	Const      any                `json:"const"`
	Enum       []any              `json:"enum"`
	AnyOf      []*schema          `json:"anyOf"`
	OneOf      []*schema          `json:"oneOf"`
	AllOf      []*schema          `json:"allOf"`
	Properties map[string]*schema `json:"properties"`
	Required   []string           `json:"required"`
	Items      *schema            `json:"items"`
	MinItems   int                `json:"minItems"`
	MinLength  int                `json:"minLength"`
	MaxLength  *int               `json:"maxLength"`
	Minimum    *float64           `json:"minimum"`
	Above      *float64           `json:"exclusiveMinimum"`
	Maximum    *float64           `json:"maximum"`
	Below      *float64           `json:"exclusiveMaximum"`
}

// types is the key type: a name or a list of names.
type types []string

// UnmarshalJSON reads both forms.
func (t *types) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*t = types{one}
		return nil
	}
	var list []string
	err := json.Unmarshal(text, &list)
	*t = list
	return err
}

// name returns the first type; that of the other keys if there is none.
func (s *schema) name() string {
	switch {
	case len(s.Type) > 0:
		return s.Type[0]
	case s.Properties != nil:
		return "object"
	case s.Items != nil:
		return "array"
	}
	return "string"
}

// Instance returns a JSON value that matches a schema: every text in it is the given one, within its
// length, numbers are as near to 0 and lists as short as allowed, and optional properties below the top are
// omitted. Patterns and conditions are not part of it.
func Instance(raw json.RawMessage, text string) (string, error) {
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
	case s.Const != nil:
		return s.Const
	case len(s.Enum) > 0:
		return s.Enum[0]
	case len(s.AnyOf) > 0:
		return s.AnyOf[0].value(defs, text, depth+1)
	case len(s.OneOf) > 0:
		return s.OneOf[0].value(defs, text, depth+1)
	case len(s.AllOf) > 0:
		return s.merged(defs, text, depth)
	}
	switch s.name() {
	case "object":
		return s.object(defs, text, depth)
	case "array":
		list := make([]any, max(0, min(s.MinItems, maxItems(depth))))
		for i := range list {
			list[i] = s.Items.value(defs, text, depth+1)
		}
		return list
	case "integer":
		return int64(math.Ceil(s.number(1)))
	case "number":
		return s.number(0.5)
	case "boolean":
		return false
	case "null":
		return nil
	}
	return s.text(text)
}

// maxItems bounds the instances of schemas that callers of a server send.
func maxItems(depth int) int {
	if depth > 2 {
		return 1
	}
	return 100
}

func (s *schema) object(defs map[string]*schema, text string, depth int) map[string]any {
	fields := map[string]any{}
	for name, field := range s.Properties {
		if depth <= 1 || slices.Contains(s.Required, name) {
			fields[name] = field.value(defs, text, depth+1)
		}
	}
	return fields
}

// merged returns an instance of all of several schemas: the properties of all, or a value of the first.
func (s *schema) merged(defs map[string]*schema, text string, depth int) any {
	fields := s.object(defs, text, depth)
	for _, part := range s.AllOf {
		made, isObject := part.value(defs, text, depth+1).(map[string]any)
		if !isObject {
			return s.AllOf[0].value(defs, text, depth+1)
		}
		maps.Copy(fields, made)
	}
	return fields
}

// number returns the number nearest to 0 within the limits; step is the distance from an excluded one.
func (s *schema) number(step float64) float64 {
	n := 0.0
	if s.Minimum != nil {
		n = max(n, *s.Minimum)
	}
	if s.Above != nil && n <= *s.Above {
		n = *s.Above + step
	}
	if s.Maximum != nil {
		n = min(n, *s.Maximum)
	}
	if s.Below != nil && n >= *s.Below {
		n = *s.Below - step
	}
	return n
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
	for utf8.RuneCountInString(text) < min(s.MinLength, maxLength) {
		text += " word"
	}
	if s.MaxLength != nil && utf8.RuneCountInString(text) > *s.MaxLength {
		return string([]rune(text)[:max(*s.MaxLength, 0)])
	}
	return text
}
