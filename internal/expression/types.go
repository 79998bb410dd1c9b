package expression

import (
	"reflect"
	"time"

	"github.com/expr-lang/expr/checker/nature"
	"github.com/expr-lang/expr/types"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// Message is a ChatMessage as formulas see it: message.text contains "refund".
type Message struct {
	Role     string       `expr:"role"` // who speaks
	Text     string       `expr:"text"` // the textual blocks, joined by line ends
	Name     string       `expr:"name"` // the speaker's name, mostly empty
	original chat.Message // what is handed on where a formula gives the message itself
}

// NewMessage shows a message to formulas.
func NewMessage(m chat.Message) Message {
	return Message{Role: string(m.Role), Text: m.Text(), Name: m.Name, original: m}
}

// Original is the message that was shown.
func (m Message) Original() chat.Message { return m.original }

// TypeOf is the type of a variable as formulas see it: what may be left out may be null.
func TypeOf(v *spec.Variable) spec.Type {
	t := v.Type
	t.Optional = v.IsOptional()
	return t
}

// deepestRecord is how far types of records are followed: they may hold themselves.
const deepestRecord = 4

// fieldTypes are the types of variables in the terms of the library.
func fieldTypes(env map[string]spec.Type) types.Map {
	m := types.Map{}
	for name, t := range env {
		m[name] = natureOf(t, 0)
	}
	return m
}

// natureOf is a type in the terms of the library: text is a string, int an int,
// float a float64, a record a map, a date or datetime a time.Time. What may be
// null, and what has no counterpart there, is of any type.
func natureOf(t spec.Type, depth int) types.Type {
	switch {
	case t.Optional || depth > deepestRecord:
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

// structOf is a struct as a type of variables. The library's own (types.TypeOf,
// v1.17.8) ends in a nil pointer when a field or method is compiled.
type structOf struct{ t reflect.Type }

// Nature is the type with its fields and methods.
func (s structOf) Nature() nature.Nature { return new(nature.Cache).FromType(s.t) }

// Equal tells whether two types are the same.
func (s structOf) Equal(t types.Type) bool { return t == types.Any || t == s }

// String names the type.
func (s structOf) String() string { return s.t.String() }

// Result is what kind of value a formula gives.
type Result struct{ t reflect.Type }

// IsBool tells whether the value can be a condition: true or false, or not known before it is worked out.
func (r Result) IsBool() bool {
	return r.t.Kind() == reflect.Bool || r.t.Kind() == reflect.Interface
}

// AssignableTo tells whether a variable of a type can be set to the value.
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

// String is the kind of value in the language's terms.
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

// Converter is the function of formulas that makes a value of a type, empty where there is none.
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
