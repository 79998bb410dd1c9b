package tool

import (
	"encoding/json"
	"slices"

	"github.com/qtype-dev/qtype/internal/typeschema"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// Schema returns the JSON schema of an object with the variables as properties, which
// describes a tool's arguments to a model. Optional variables are not required. Custom
// types are under $defs, so that a type may contain itself.
func Schema(vars []*spec.Variable) json.RawMessage {
	return schemaOf(typeschema.Style{}, typeschema.Fields(vars), "")
}

// SchemaOf returns the JSON schema of a custom type, with its description.
func SchemaOf(t *spec.CustomType) json.RawMessage {
	return schemaOf(typeschema.Style{}, t.Properties, t.Description)
}

// schemaOf returns the schema of an object with these fields and a description.
func schemaOf(style typeschema.Style, fields []spec.Property, description string) json.RawMessage {
	s := typeschema.New(style)
	root := s.Record(fields)
	if description != "" {
		root = slices.Insert(root, 0, typeschema.Member{Name: "description", Value: description})
	}
	if defs := s.Defs(); defs != nil {
		root = append(root, typeschema.Member{Name: "$defs", Value: defs})
	}
	raw, err := json.Marshal(root)
	if err != nil { // objects, lists and texts always encode
		return json.RawMessage(`{"type":"object"}`)
	}
	return raw
}

// InputsOf returns the arguments that a JSON schema of a server describes, in its order.
// The server checks their types.
func InputsOf(schema json.RawMessage) []*spec.Variable {
	parsed, err := value.Parse(string(schema))
	root, ok := parsed.(*value.Record)
	if err != nil || !ok {
		return nil
	}
	required := map[string]bool{}
	if list, _ := root.Get("required"); list != nil {
		items, _ := list.([]any)
		for _, item := range items {
			name, _ := item.(string)
			required[name] = true
		}
	}
	properties, _ := root.Get("properties")
	fields, ok := properties.(*value.Record)
	if !ok {
		return nil
	}
	var vars []*spec.Variable
	for name := range fields.All() {
		vars = append(vars, &spec.Variable{ID: name, Type: spec.Type{Name: spec.Any}, Optional: !required[name]})
	}
	return vars
}
