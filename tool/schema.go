package tool

import (
	"encoding/json"
	"slices"

	"github.com/qtype-dev/qtype/internal/typeschema"
	"github.com/qtype-dev/qtype/spec"
)

// Schema returns the JSON schema of an object with the variables as properties, which
// describes a tool's arguments to a model. Optional variables are not required. Custom
// types are under $defs, so that a type may contain itself.
func Schema(vars []*spec.Variable) json.RawMessage { return schemaOf(typeschema.Fields(vars), "") }

// SchemaOf returns the JSON schema of a custom type, with its description.
func SchemaOf(t *spec.CustomType) json.RawMessage { return schemaOf(t.Properties, t.Description) }

// schemaOf returns the schema of an object with these fields and a description.
func schemaOf(fields []spec.Property, description string) json.RawMessage {
	s := typeschema.New(typeschema.Style{})
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
