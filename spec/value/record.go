package value

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// Types of fields of domain types that no type expression has.
const (
	anyType       = spec.Any         // any JSON value including null
	mapType       = "map"            // a JSON object
	primitiveType = "primitive type" // the name of a primitive type
	chatMessage   = "ChatMessage"
)

// member is a field of a record type.
type member struct {
	name     string
	typ      spec.Type
	required bool // must be set; others are null by default, or an empty object for a map
}

func requiredField(name, typ string) member {
	return member{name: name, typ: spec.Type{Name: typ}, required: true}
}

func optionalField(name, typ string) member {
	return member{name: name, typ: spec.Type{Name: typ, Optional: true}}
}

// embeddingField returns the field with an embedding.
func embeddingField(required bool) member {
	return member{name: "vector", typ: spec.Type{Elem: &spec.Type{Name: "float"}, Optional: !required}, required: required}
}

// members returns the fields of a domain type, nil for other types.
func members(name string) []member {
	switch name {
	case "ChatContent":
		return []member{requiredField("type", primitiveType), requiredField("content", anyType), optionalField("mime_type", "text")}
	case "Embedding":
		return []member{embeddingField(true), optionalField("content", anyType), optionalField("metadata", mapType)}
	case "RAGDocument":
		return []member{requiredField("content", anyType), requiredField("file_id", "text"), requiredField("file_name", "text"),
			optionalField("uri", "text"), optionalField("metadata", mapType), requiredField("type", primitiveType)}
	case "RAGChunk":
		return []member{embeddingField(false), optionalField("content", anyType), optionalField("metadata", mapType),
			requiredField("chunk_id", "text"), requiredField("document_id", "text")}
	case "SearchResult":
		return []member{requiredField("content", anyType), requiredField("doc_id", "text"), requiredField("score", "float")}
	case "RAGSearchResult":
		return []member{requiredField("content", "RAGChunk"), requiredField("doc_id", "text"), requiredField("score", "float")}
	case "AggregateStats":
		return []member{requiredField("num_successful", "int"), requiredField("num_failed", "int"), requiredField("num_total", "int")}
	}
	return nil
}

// coerceDomain makes a value of a domain type and rejects unknown fields.
func coerceDomain(t spec.Type, v any) (any, *Error) {
	if t.Name == chatMessage {
		return coerceMessage(t, v)
	}
	fields := members(t.Name)
	if fields == nil {
		return nil, &Error{Reason: fmt.Sprintf("the type %s is not known", t.Name)}
	}
	r, ok := v.(*Record)
	if !ok {
		return nil, mismatch(t, v)
	}
	for name := range r.All() {
		if !knows(fields, name) {
			return nil, &Error{Reason: fmt.Sprintf("unknown field %q: %s has %s", name, t.Name, strings.Join(memberNames(fields), ", "))}
		}
	}
	return fill(t.Name, fields, r)
}

// coerceCustom makes a record of a custom type and drops unknown fields.
func coerceCustom(t *spec.CustomType, v any) (any, *Error) {
	r, ok := v.(*Record)
	if !ok {
		return nil, mismatch(spec.Type{Name: t.ID}, v)
	}
	fields := make([]member, len(t.Properties))
	for i, p := range t.Properties {
		fields[i] = member{name: p.Name, typ: p.Type, required: !p.Type.Optional}
	}
	return fill(t.ID, fields, r)
}

// fill makes a record of the declared fields in their order.
func fill(typ string, fields []member, r *Record) (any, *Error) {
	out := make([]Field, len(fields))
	for i, f := range fields {
		x, ok := r.Get(f.name)
		switch {
		case !ok && f.required:
			return nil, &Error{Path: f.name, Reason: fmt.Sprintf("missing, expected %s", wanted(f.typ))}
		case f.typ.Name == mapType && f.typ.Optional && x == nil:
			x = &Record{}
		}
		v, err := coerce(f.typ, plainGo(x))
		if err != nil {
			return nil, err.at(f.name)
		}
		out[i] = Field{f.name, v}
	}
	return &Record{typ: typ, fields: out}, nil
}

func knows(fields []member, name string) bool {
	for _, f := range fields {
		if f.name == name {
			return true
		}
	}
	return false
}

func memberNames(fields []member) []string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	return names
}

// textMessage returns the message of an object that has nothing but a role and texts, as
// most have. It reports false for all others, also for objects of other kinds.
func textMessage(r *Record) (m chat.Message, ok bool) {
	if r.Len() != 2 {
		return m, false
	}
	role, _ := r.Get("role")
	name, isText := role.(string)
	content, _ := r.Get("blocks")
	blocks, isList := content.([]any)
	if m.Role = chat.Role(name); !isText || !isList || !slices.Contains(chat.Roles(), m.Role) {
		return m, false
	}
	for _, item := range blocks {
		block, isRecord := item.(*Record)
		if !isRecord || block.Len() != 2 {
			return m, false
		}
		kind, _ := block.Get("type")
		text, _ := block.Get("content")
		content, isText := text.(string)
		if kind != any("text") || !isText || !utf8.ValidString(content) {
			return m, false
		}
		m.Blocks = append(m.Blocks, chat.Block{Type: "text", Text: content})
	}
	m.ID = chat.NewID()
	return m, true
}

// coerceMessage accepts a message, its JSON form, or the text of a user message.
func coerceMessage(t spec.Type, v any) (any, *Error) {
	switch v := v.(type) {
	case chat.Message:
		return v, nil
	case string:
		return chat.Text(chat.User, v), nil
	case *Record:
		if m, ok := textMessage(v); ok {
			return m, nil
		}
		var m chat.Message
		if err := json.Unmarshal(JSON(v), &m); err != nil {
			return nil, &Error{Reason: err.Error()}
		}
		if err := m.CheckGiven(); err != nil {
			return nil, &Error{Reason: err.Error()}
		}
		if m.ID == "" {
			m.ID = chat.NewID()
		}
		return m, nil
	}
	return nil, mismatch(t, v)
}
