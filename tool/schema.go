package tool

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// Schema returns the JSON schema of an object with the variables as properties, which
// describes a tool's arguments to a model. Optional variables are not required. Custom
// types are under $defs, so that a type may contain itself.
func Schema(vars []*spec.Variable) json.RawMessage {
	var fields []spec.Property
	for _, v := range vars {
		t := v.Type
		t.Optional = v.IsOptional()
		fields = append(fields, spec.Property{Name: v.ID, Type: t})
	}
	return schemaOf(fields, "")
}

// schemaOf returns the schema of an object with these fields and a description.
func schemaOf(fields []spec.Property, description string) json.RawMessage {
	s := &schemas{defs: map[string]object{}}
	root := s.record(fields)
	if description != "" {
		root = slices.Insert(root, 0, member{"description", description})
	}
	if len(s.defs) > 0 {
		var defs object
		for _, name := range slices.Sorted(maps.Keys(s.defs)) {
			defs = append(defs, member{name, s.defs[name]})
		}
		root = append(root, member{"$defs", defs})
	}
	raw, err := json.Marshal(root)
	if err != nil { // objects, lists and texts always encode
		return json.RawMessage(`{"type":"object"}`)
	}
	return raw
}

// SchemaOf returns the JSON schema of a custom type, with its description.
func SchemaOf(t *spec.CustomType) json.RawMessage { return schemaOf(t.Properties, t.Description) }

// member is one property of an object.
type member struct {
	name  string
	value any
}

// object is a JSON object with its properties in order, in which models read them.
type object []member

// MarshalJSON writes the properties in order.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(m.name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(m.value)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// schemas collects the custom types of a schema.
type schemas struct{ defs map[string]object }

// record returns the schema of an object with these fields.
func (s *schemas) record(fields []spec.Property) object {
	properties, required := object{}, []string{}
	for _, f := range fields {
		properties = append(properties, member{f.Name, s.of(f.Type)})
		if !f.Type.Optional {
			required = append(required, f.Name)
		}
	}
	o := object{{"type", "object"}, {"properties", properties}}
	if len(required) > 0 {
		o = append(o, member{"required", required})
	}
	return append(o, member{"additionalProperties", false})
}

// of returns the schema of a type.
func (s *schemas) of(t spec.Type) object {
	switch {
	case t.Elem != nil:
		items := s.of(*t.Elem)
		if t.Elem.Optional {
			items = object{{"anyOf", []object{items, {{"type", "null"}}}}}
		}
		return object{{"type", "array"}, {"items", items}}
	case t.Custom != nil:
		return s.custom(t.Custom)
	case t.Name == "MessageRole":
		return object{{"type", "string"}, {"enum", chat.Roles()}}
	case t.IsRecord(): // record types of the language; a model rarely writes one
		return object{{"type", "object"}, {"description", "a " + t.Name}}
	case t.IsMedia():
		return object{{"type", "string"}, {"contentEncoding", "base64"}}
	}
	return primitive(t.Name)
}

func primitive(name string) object {
	switch name {
	case "int":
		return object{{"type", "integer"}}
	case "float":
		return object{{"type", "number"}}
	case "boolean":
		return object{{"type", "boolean"}}
	case "date", "time":
		return object{{"type", "string"}, {"format", name}}
	case "datetime":
		return object{{"type", "string"}, {"format", "date-time"}}
	}
	return object{{"type", "string"}}
}

// custom returns a reference to the schema of a custom type, which it adds on first use.
func (s *schemas) custom(t *spec.CustomType) object {
	if _, seen := s.defs[t.ID]; !seen {
		s.defs[t.ID] = object{} // ends the recursion of a type that contains itself
		o := s.record(t.Properties)
		if t.Description != "" {
			o = slices.Insert(o, 0, member{"description", t.Description})
		}
		s.defs[t.ID] = o
	}
	return object{{"$ref", "#/$defs/" + t.ID}}
}
