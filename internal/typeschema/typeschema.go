// Package typeschema describes declared types as JSON schemas: the arguments of tools for
// models, and the requests and responses of flows for clients.
package typeschema

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"slices"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// Member is one property of an Object.
type Member struct {
	Name  string
	Value any // anything that encoding/json can encode
}

// Object is a JSON object with its properties in order, in which models read them.
type Object []Member

// MarshalJSON writes the properties in order.
func (o Object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(m.Name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(m.Value)
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

// Get returns the value of a property, nil if there is none.
func (o Object) Get(name string) any {
	for _, m := range o {
		if m.Name == name {
			return m.Value
		}
	}
	return nil
}

// Style is how types are described.
type Style struct {
	Refs    string // what references to custom types begin with; empty for "#/$defs/"
	Strict  bool   // optional fields are required, and may be null
	Clients bool   // for clients of a server, with the forms that the server accepts; otherwise for models
}

// Schemas makes schemas and collects the definitions of the types that they refer to.
type Schemas struct {
	style Style
	defs  map[string]Object
}

// New returns Schemas of a style.
func New(s Style) *Schemas {
	if s.Refs == "" {
		s.Refs = "#/$defs/"
	}
	return &Schemas{style: s, defs: map[string]Object{}}
}

// Defs returns the definitions of the types that the schemas refer to, by name.
func (s *Schemas) Defs() Object {
	var defs Object
	for _, name := range slices.Sorted(maps.Keys(s.defs)) {
		defs = append(defs, Member{name, s.defs[name]})
	}
	return defs
}

// Fields returns the properties of variables, optional ones with optional types.
func Fields(vars []*spec.Variable) []spec.Property {
	fields := make([]spec.Property, len(vars))
	for i, v := range vars {
		t := v.Type
		t.Optional = v.IsOptional()
		fields[i] = spec.Property{Name: v.ID, Type: t}
	}
	return fields
}

// Record returns the schema of an object with these fields and no others.
func (s *Schemas) Record(fields []spec.Property) Object {
	properties, required := Object{}, []string{}
	for _, f := range fields {
		properties = append(properties, Member{f.Name, s.field(f.Type)})
		if !f.Type.Optional || s.style.Strict {
			required = append(required, f.Name)
		}
	}
	o := Object{{"type", "object"}, {"properties", properties}}
	if len(required) > 0 {
		o = append(o, Member{"required", required})
	}
	return append(o, Member{"additionalProperties", false})
}

// field returns the schema of a field: clients, and models with strict schemas, may send null for an optional one.
func (s *Schemas) field(t spec.Type) Object {
	if (s.style.Clients || s.style.Strict) && t.Optional {
		return nullable(s.Of(t))
	}
	return s.Of(t)
}

func nullable(o Object) Object {
	return Object{{"anyOf", []Object{o, {{"type", "null"}}}}}
}

// Of returns the schema of a type.
func (s *Schemas) Of(t spec.Type) Object {
	switch {
	case t.Elem != nil:
		items := s.Of(*t.Elem)
		if t.Elem.Optional {
			items = nullable(items)
		}
		return Object{{"type", "array"}, {"items", items}}
	case t.Custom != nil:
		return s.custom(t.Custom)
	case t.Name == "MessageRole":
		return Object{{"type", "string"}, {"enum", chat.Roles()}}
	case t.Name == "ChatMessage" && s.style.Clients:
		return s.message()
	case t.IsRecord(): // record types of the language; a model rarely writes one
		return Object{{"type", "object"}, {"description", "a " + t.Name}}
	case t.IsMedia():
		return s.media()
	case t.Is(spec.Any):
		return Object{}
	case t.Is("int") && s.style.Clients:
		return append(primitive(t.Name), Member{"minimum", int64(math.MinInt64)}, Member{"maximum", int64(math.MaxInt64)})
	}
	return primitive(t.Name)
}

// media returns the schema of bytes: base64 for models, and for clients text, base64, or
// an uploaded file.
func (s *Schemas) media() Object {
	if !s.style.Clients {
		return Object{{"type", "string"}, {"contentEncoding", "base64"}}
	}
	return Object{{"anyOf", []Object{
		{{"type", "string"}, {"description", "a data URL, or the content as text"}},
		{{"type", "object"}, {"properties", Object{{"base64", base64Text()}}}, {"required", []string{"base64"}}},
		{{"type", "object"}, {"properties", Object{{"bytes_base64", base64Text()}, {"mime", Object{}}, {"filename", Object{}}}}, {"required", []string{"bytes_base64"}}},
	}}}
}

func base64Text() Object {
	return Object{{"type", "string"}, {"contentEncoding", "base64"}, {"pattern", "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"}}
}

func text() Object { return Object{{"type", "string"}} }

func primitive(name string) Object {
	switch name {
	case "int":
		return Object{{"type", "integer"}}
	case "float":
		return Object{{"type", "number"}}
	case "boolean":
		return Object{{"type", "boolean"}}
	case "date", "time":
		return Object{{"type", "string"}, {"format", name}}
	case "datetime":
		return Object{{"type", "string"}, {"format", "date-time"}}
	}
	return text()
}

// custom returns a reference to the schema of a custom type, which it adds on first use.
func (s *Schemas) custom(t *spec.CustomType) Object {
	if _, seen := s.defs[t.ID]; !seen {
		s.defs[t.ID] = Object{} // ends the recursion of a type that contains itself
		o := s.Record(t.Properties)
		if t.Description != "" {
			o = slices.Insert(o, 0, Member{"description", t.Description})
		}
		s.defs[t.ID] = o
	}
	return s.ref(t.ID)
}

func (s *Schemas) ref(name string) Object { return Object{{"$ref", s.style.Refs + name}} }

// message returns a reference to the schema of ChatMessage.
func (s *Schemas) message() Object {
	if _, seen := s.defs["ChatMessage"]; !seen {
		block := Object{{"type", "object"}, {"properties", Object{
			{"type", Object{{"type", "string"}, {"enum", spec.Primitives()}}},
			{"content", Object{{"description", "the text; the base64 or the url of a medium, in an object; an object for a citation"}}},
			{"mime_type", nullable(text())},
		}}, {"required", []string{"type", "content"}}, {"additionalProperties", false}}
		call := Object{{"type", "object"}, {"properties", Object{{"id", text()}, {"name", text()}, {"arguments", text()}}}, {"required", []string{"id", "name"}}, {"additionalProperties", false}}
		s.defs["ChatMessage"] = Object{{"description", "A message of a conversation."}, {"type", "object"}, {"properties", Object{
			{"role", Object{{"type", "string"}, {"enum", chat.Roles()}}},
			{"blocks", Object{{"type", "array"}, {"items", block}}},
			{"id", text()}, {"name", text()}, {"tool_call_id", text()},
			{"tool_calls", Object{{"type", "array"}, {"items", call}}},
		}}, {"required", []string{"role", "blocks"}}, {"additionalProperties", false}}
	}
	return s.ref("ChatMessage")
}
