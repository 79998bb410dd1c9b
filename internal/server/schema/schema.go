// Package schema is the contract of a flow with its clients: the JSON schemas of its
// requests and results, the decoding of inputs, the encoding of outputs, and the OpenAPI
// description of a server.
package schema

import (
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strings"

	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/internal/typeschema"
	"github.com/qtype-dev/qtype/spec"
)

// object abbreviates schemas.
type object = typeschema.Object

// Flow is the contract of one flow.
type Flow struct {
	Spec    *spec.Flow
	Inputs  []*spec.Variable // in document order
	Outputs []*spec.Variable // in document order
	Message *spec.Variable   // conversational flows: the input that is the user's message; otherwise nil
	Answer  *spec.Variable   // conversational flows: the output that is the answer; otherwise nil
	Session []*spec.Variable // the inputs that keep their first value for the whole conversation
}

// NewFlow returns the contract of a linked flow.
func NewFlow(f *spec.Flow) *Flow {
	c := &Flow{Spec: f}
	for _, ref := range f.Inputs {
		c.Inputs = append(c.Inputs, ref.To)
	}
	for _, ref := range f.Outputs {
		c.Outputs = append(c.Outputs, ref.To)
	}
	if f.Interface == nil {
		return c
	}
	for _, ref := range f.Interface.SessionInputs {
		c.Session = append(c.Session, ref.To)
	}
	if c.Conversational() {
		c.Message, c.Answer = firstMessage(c.Inputs), firstMessage(c.Outputs)
	}
	return c
}

func firstMessage(vars []*spec.Variable) *spec.Variable {
	for _, v := range vars {
		if v.Type.Is("ChatMessage") {
			return v
		}
	}
	return nil
}

// ID returns the id of the flow.
func (f *Flow) ID() string { return f.Spec.ID }

// Interface returns the type of the flow's interface, empty for none.
func (f *Flow) Interface() string {
	if f.Spec.Interface == nil {
		return ""
	}
	if f.Spec.Interface.Type == "" {
		return "Complete"
	}
	return f.Spec.Interface.Type
}

// Conversational reports whether users chat with the flow.
func (f *Flow) Conversational() bool {
	return f.Spec.Interface != nil && f.Spec.Interface.Type == "Conversational"
}

// Finishes reports whether a run goes on when its client has gone.
func (f *Flow) Finishes() bool {
	return f.Spec.Interface != nil && f.Spec.Interface.OnDisconnect == "finish"
}

// MayWait reports whether a run of the flow may wait for its client: for an approval,
// or for the result of a client tool.
func (f *Flow) MayWait() bool {
	for s := range f.Spec.Plan().All() {
		if s.NeedsApproval() {
			return true
		}
	}
	return len(f.ClientTools()) > 0
}

// InputSchema returns the schema of a request: an object of the inputs. Definitions of
// types are in the schema, under $defs.
func (f *Flow) InputSchema() object {
	s := typeschema.New(typeschema.Style{Clients: true})
	return withDefs(f.request(s), s)
}

// OutputSchema returns the schema of a result row.
func (f *Flow) OutputSchema() object {
	s := typeschema.New(typeschema.Style{Clients: true})
	return withDefs(f.result(s), s)
}

func withDefs(o object, s *typeschema.Schemas) object {
	if defs := s.Defs(); defs != nil {
		return append(object{{Name: "$defs", Value: defs}}, o...)
	}
	return o
}

// request returns the schema of the inputs. A client may send others: they are ignored.
func (f *Flow) request(s *typeschema.Schemas) object {
	properties, required := object{}, []string{}
	for _, v := range f.Inputs {
		o := annotated(v, f.input(s, v))
		properties = append(properties, typeschema.Member{Name: v.ID, Value: o})
		if !v.IsOptional() {
			required = append(required, v.ID)
		}
	}
	return described(f.ID()+"Request", properties, required)
}

// input returns the schema of an input: a message may be given as a text.
func (f *Flow) input(s *typeschema.Schemas, v *spec.Variable) object {
	o := s.Of(v.Type)
	options := []object{o}
	if v.Type.Is("ChatMessage") {
		options = append(options, object{{Name: "type", Value: "string"}})
	}
	if v.IsOptional() {
		options = append(options, object{{Name: "type", Value: "null"}})
	}
	if len(options) == 1 {
		return o
	}
	return object{{Name: "anyOf", Value: options}}
}

func (f *Flow) result(s *typeschema.Schemas) object {
	properties, required := object{}, []string{}
	for _, v := range f.Outputs {
		o := s.Of(v.Type)
		if v.IsOptional() {
			o = object{{Name: "anyOf", Value: []object{o, {{Name: "type", Value: "null"}}}}}
		}
		properties = append(properties, typeschema.Member{Name: v.ID, Value: annotated(v, o)})
		required = append(required, v.ID)
	}
	metadata := object{{Name: "title", Value: "Metadata"}, {Name: "type", Value: "object"}, {Name: "additionalProperties", Value: true},
		{Name: "description", Value: "The number of the input row, and span_id and trace_id for feedback."}}
	properties = append(properties, typeschema.Member{Name: "metadata", Value: metadata})
	return described(f.ID()+"Result", properties, required)
}

func described(title string, properties object, required []string) object {
	o := object{{Name: "title", Value: title}, {Name: "type", Value: "object"}, {Name: "properties", Value: properties}}
	if len(required) > 0 {
		o = append(o, typeschema.Member{Name: "required", Value: required})
	}
	return o
}

// annotated adds to a schema what user interfaces need.
func annotated(v *spec.Variable, o object) object {
	o = append(object{{Name: "title", Value: v.ID}, {Name: "qtype_type", Value: typeName(v)}}, o...)
	if v.UI != nil {
		hint := object{}
		if v.UI.Widget != "" {
			hint = append(hint, typeschema.Member{Name: "widget", Value: v.UI.Widget})
		}
		if v.UI.Accept != "" {
			hint = append(hint, typeschema.Member{Name: "accept", Value: v.UI.Accept})
		}
		o = append(o, typeschema.Member{Name: "x-ui", Value: hint})
	}
	return o
}

// typeName returns the name of a type without the mark of optional ones.
func typeName(v *spec.Variable) string {
	t := v.Type
	t.Optional = false
	return t.String()
}

// ClientTools returns the names of the tools that the flow declares and its client runs.
func (f *Flow) ClientTools() []string {
	var names []string
	for s := range f.Spec.Plan().All() {
		for _, t := range s.Tools() {
			if c, ok := t.(*spec.ClientTool); ok {
				names = append(names, c.Name)
			}
		}
	}
	return names
}

// kinds are the names of Go's kinds for clients.
var kinds = map[string]string{"bool": "true or false", "string": "a text", "int": "a whole number", "int64": "a whole number", "float64": "a number"}

// DecodeBody decodes a JSON body that is an object. With strict, members that to does not
// have are errors. The error is a *problem.Problem that names the field.
func DecodeBody(body []byte, to any, strict bool) error {
	if _, err := ParseBody(body); err != nil {
		return err
	}
	d := json.NewDecoder(strings.NewReader(string(body)))
	if strict {
		d.DisallowUnknownFields()
	}
	err := d.Decode(to)
	if err == nil {
		return nil
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return wrongType(wrong)
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return Invalid([]problem.Field{{Pointer: "/" + escape(strings.Trim(name, `"`)), Detail: "there is no such field"}})
	}
	return problem.New(http.StatusUnprocessableEntity, "invalid_request", "the body has not the expected form")
}

// wrongType returns the problem of a member that has another type.
func wrongType(e *json.UnmarshalTypeError) error {
	if e.Field == "" {
		return problem.New(http.StatusUnprocessableEntity, "invalid_request", "the body must be a JSON object")
	}
	want := kinds[e.Type.Kind().String()]
	switch {
	case want != "":
	case e.Type.Kind().String() == "slice":
		want = "a list"
	default:
		want = "an object"
	}
	return Invalid([]problem.Field{{Pointer: "/" + strings.ReplaceAll(e.Field, ".", "/"), Detail: "expected " + want}})
}

// Example returns a request with a value for each required input.
func (f *Flow) Example() []byte {
	o := object{}
	for _, v := range f.Inputs {
		if !v.IsOptional() {
			o = append(o, typeschema.Member{Name: v.ID, Value: exampleOf(v.Type, 0)})
		}
	}
	raw, err := json.Marshal(o)
	if err != nil { // objects, lists and texts always encode
		return []byte("{}")
	}
	return raw
}

// examples are the values of primitive types.
var examples = map[string]any{"int": 1, "float": 1.5, "boolean": true, "date": "2026-01-31", "datetime": "2026-01-31T12:00:00Z", "time": "12:00:00",
	"ChatMessage": "Hello", "MessageRole": "user"}

// exampleOf returns a value of a type. depth ends the recursion of types that contain
// themselves.
func exampleOf(t spec.Type, depth int) any {
	switch {
	case depth > 4:
		return nil
	case t.Elem != nil:
		return []any{exampleOf(*t.Elem, depth+1)}
	case t.Custom != nil:
		o := object{}
		for _, p := range t.Custom.Properties {
			if !p.Type.Optional {
				o = append(o, typeschema.Member{Name: p.Name, Value: exampleOf(p.Type, depth+1)})
			}
		}
		return o
	case examples[t.Name] != nil:
		return examples[t.Name]
	case t.IsRecord():
		return object{}
	}
	return "text"
}

// Feedback returns the configuration of the flow's feedback: its type and the keys of its
// declaration; nil for none.
func (f *Flow) Feedback() map[string]any {
	if f.Spec.Feedback == nil {
		return nil
	}
	out := map[string]any{"type": spec.TypeName(f.Spec.Feedback)}
	addKeys(out, reflect.ValueOf(f.Spec.Feedback).Elem())
	return out
}

// addKeys adds the fields of a struct under their keys in a document.
func addKeys(out map[string]any, v reflect.Value) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		key := field.Tag.Get("yaml")
		switch {
		case !field.IsExported():
		case field.Anonymous && field.Type.Kind() == reflect.Struct:
			addKeys(out, v.Field(i))
		case key != "":
			out[key] = v.Field(i).Interface()
		}
	}
}
