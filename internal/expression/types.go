package expression

import (
	"reflect"
	"time"

	"github.com/expr-lang/expr/checker/nature"
	"github.com/expr-lang/expr/types"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// Message is a ChatMessage in expressions: message.text contains "refund".
type Message struct {
	Role     string       `expr:"role"` // the sender's role
	Text     string       `expr:"text"` // the textual blocks, joined by newlines
	Name     string       `expr:"name"` // the sender's name, usually empty
	original chat.Message // the result if an expression returns the message
}

// NewMessage converts a message for expressions.
func NewMessage(m chat.Message) Message {
	return Message{Role: string(m.Role), Text: m.Text(), Name: m.Name, original: m}
}

// Original returns the converted message.
func (m Message) Original() chat.Message { return m.original }

// TypeOf returns the type of a variable in expressions; optional variables may be
// null.
func TypeOf(v *spec.Variable) spec.Type {
	t := v.Type
	t.Optional = v.IsOptional()
	return t
}

// maxRecordDepth limits the depth of record types, which may be recursive.
const maxRecordDepth = 4

// fieldTypes converts the types of variables to those of the library.
func fieldTypes(env map[string]spec.Type) types.Map {
	m := types.Map{}
	for name, t := range env {
		m[name] = natureOf(t, 0)
	}
	return m
}

// natureOf converts a type to that of the library: text to string, int to int,
// float to float64, a record to a map, date and datetime to time.Time. Optional
// types and types without a counterpart become any.
func natureOf(t spec.Type, depth int) types.Type {
	switch {
	case t.Optional || depth > maxRecordDepth:
		return types.Any
	case t.Elem != nil:
		return types.Array(natureOf(*t.Elem, depth+1))
	case t.Custom != nil:
		fields := types.Map{}
		for _, p := range t.Custom.Properties {
			fields[p.Name] = natureOf(p.Type, depth+1)
		}
		return fields
	}
	switch t.Name {
	case "text", "time", "MessageRole":
		return types.String
	case "int":
		return types.Int
	case "float":
		return types.Float64
	case "boolean":
		return types.Bool
	case "date", "datetime":
		return structOf{reflect.TypeFor[time.Time]()}
	case "ChatMessage":
		return structOf{reflect.TypeFor[Message]()}
	}
	return types.Any
}

// structOf is the type of a struct. The library's own (types.TypeOf, v1.17.8)
// dereferences a nil pointer when a field or method is compiled.
type structOf struct{ t reflect.Type }

// Nature returns the type with its fields and methods.
func (s structOf) Nature() nature.Nature { return new(nature.Cache).FromType(s.t) }

// Equal reports whether two types are equal.
func (s structOf) Equal(t types.Type) bool { return t == types.Any || t == s }

// String returns the name of the type.
func (s structOf) String() string { return s.t.String() }

// Result is the type of the result of an expression.
type Result struct{ t reflect.Type }

// IsBool reports whether the result can be a condition: a boolean, or of a type
// that is not known before evaluation.
func (r Result) IsBool() bool {
	return r.t.Kind() == reflect.Bool || r.t.Kind() == reflect.Interface
}

// AssignableTo reports whether the result can be assigned to a variable of type t.
func (r Result) AssignableTo(t spec.Type) bool {
	k := r.t.Kind()
	isNumber := k == reflect.Int || k == reflect.Float64
	switch {
	case k == reflect.Interface || t.Is(spec.Any):
		return true
	case t.IsList():
		return k == reflect.Slice || k == reflect.Array
	case t.Is("ChatMessage"):
		return k == reflect.Map || k == reflect.String || r.t == reflect.TypeFor[Message]()
	case t.IsRecord():
		return k == reflect.Map
	}
	switch t.Name {
	case "text", "time", "MessageRole":
		return k == reflect.String
	case "int":
		return k == reflect.Int
	case "float":
		return isNumber
	case "boolean":
		return k == reflect.Bool
	case "date", "datetime":
		return k == reflect.String || r.t == reflect.TypeFor[time.Time]()
	}
	return k == reflect.String || k == reflect.Slice || k == reflect.Map // media and citations
}

// String returns the type in the terms of the language.
func (r Result) String() string {
	switch r.t {
	case reflect.TypeFor[time.Time]():
		return "a datetime"
	case reflect.TypeFor[time.Duration]():
		return "a duration"
	case reflect.TypeFor[Message]():
		return "a ChatMessage"
	}
	switch r.t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Int, reflect.Int64:
		return "int"
	case reflect.Float64, reflect.Float32:
		return "float"
	case reflect.Bool:
		return "boolean"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Map:
		return "a record"
	}
	return "another value"
}

// Converter returns the function of expressions that converts to a type, "" if
// there is none.
func Converter(t spec.Type) string {
	t.Optional = false
	switch t.String() {
	case "text":
		return "string"
	case "int":
		return "int"
	case "float":
		return "float"
	}
	return ""
}
