package openai

import (
	"encoding/json"
	"slices"

	"github.com/qtype-dev/qtype/steps"
)

// asked is what a request asks of the steps that write the answer.
type asked steps.Instructions

// anyObject is the schema of the format json_object.
const anyObject = `{"type":"object"}`

// readForm reads the form of the answer: that of chat completions has its schema in json_schema,
// that of responses beside its type. name is that of the parameter. The error is a *problem.Problem.
func (a *asked) readForm(name string, raw json.RawMessage) error {
	type form struct {
		Type   string          `json:"type"`
		Schema json.RawMessage `json:"schema"`
		Nested *struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"json_schema"`
	}
	var f form
	if len(raw) == 0 {
		return nil
	}
	if err := decodeAt("/"+name, raw, &f); err != nil {
		return err
	}
	if f.Nested != nil {
		f.Schema = f.Nested.Schema
	}
	switch f.Type {
	case "", "text":
		return nil
	case "json_object":
		f.Schema = json.RawMessage(anyObject)
	case "json_schema":
		if len(f.Schema) == 0 || f.Schema[0] != '{' {
			return bad("/"+name, "invalid_value", "the JSON schema of the answer is missing")
		}
	default:
		return bad("/"+name+"/type", "unsupported_value", "unknown form %q: expected text, json_schema or json_object", f.Type)
	}
	a.Schema = f.Schema
	return nil
}

// maxStops is the largest number of texts that end an answer, as in OpenAI's API.
const maxStops = 4

// readStop reads the texts that end the answer. The error is a *problem.Problem.
func (a *asked) readStop(p params) error {
	var one string
	if p.has("stop") && json.Unmarshal(p["stop"], &one) == nil {
		a.Stop = []string{one}
	} else if err := p.decode("stop", &a.Stop); err != nil {
		return err
	}
	a.Stop = slices.DeleteFunc(a.Stop, func(text string) bool { return text == "" })
	if len(a.Stop) > maxStops {
		return bad("/stop", "invalid_value", "there are %d texts; at most %d are allowed", len(a.Stop), maxStops)
	}
	return nil
}
