package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/tool"
)

// elicit requests an answer of the user of the run, as a ClientTool does. It declines if
// there is no handler, if there is no answer, and if the answer has another form.
func (s *Server) elicit(ctx context.Context, req *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
	declined := &sdk.ElicitResult{Action: "decline"}
	call, cancel, err := s.asker.current(ctx)
	if err != nil {
		return nil, err
	}
	defer cancel()
	fields, err := formOf(req.Params.RequestedSchema)
	if err != nil || req.Params.Mode == "url" {
		return declined, nil
	}
	question := s.question(req.Params.Message, fields)
	question.Caller = tool.CallerOf(call)
	answer, err := s.askPerson(call, question)
	if err != nil || call.Err() != nil {
		return declined, nil
	}
	content := map[string]any{}
	if record, ok := value.FromGo(answer).(*value.Record); ok {
		for name, v := range record.All() {
			if v != nil {
				content[name] = value.ToGo(v)
			}
		}
	}
	return &sdk.ElicitResult{Action: "accept", Content: content}, nil
}

// question returns a request of the server as a call of a ClientTool.
func (s *Server) question(message string, fields []formField) tool.Request {
	text := httpx.SingleLine(message, 1000)
	outputs := make([]*spec.Variable, 0, len(fields))
	for _, f := range fields {
		outputs = append(outputs, f.variable)
		if f.about != "" {
			text += fmt.Sprintf(" [%s: %s]", f.variable.ID, httpx.SingleLine(f.about, 300))
		}
	}
	info := tool.Info{ID: s.declared.ID, Name: s.declared.ID, Description: text, Parameters: tool.Schema(nil)}
	return tool.Request{Tool: info, Outputs: outputs, Args: value.JSON(value.NewRecord("", value.Field{Name: "message", Value: message}))}
}

// formField is a field that a server requests.
type formField struct {
	variable *spec.Variable
	about    string // its meaning and its allowed values
}

// formSchema is the schema of a form.
type formSchema struct {
	Properties json.RawMessage `json:"properties"`
	Required   []string        `json:"required"`
}

// fieldSchema is the schema of a field of a form.
type fieldSchema struct {
	Type        string       `json:"type"`
	Title       string       `json:"title"`
	Description string       `json:"description"`
	Enum        []string     `json:"enum"`
	OneOf       []constant   `json:"oneOf"`
	AnyOf       []constant   `json:"anyOf"`
	Items       *fieldSchema `json:"items"`
}

type constant struct {
	Const string `json:"const"`
}

// formOf returns the fields of a form in the order of its schema.
func formOf(schema any) ([]formField, error) {
	raw, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	var form formSchema
	if err := json.Unmarshal(raw, &form); err != nil {
		return nil, err
	}
	described := map[string]fieldSchema{}
	if len(form.Properties) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(form.Properties, &described); err != nil {
		return nil, err
	}
	var fields []formField
	for _, v := range tool.InputsOf(raw) {
		d := described[v.ID]
		v.Type = d.typeOf()
		fields = append(fields, formField{v, d.about()})
	}
	return fields, nil
}

// typeOf returns the type of a field, which is simple or a list of texts.
func (f *fieldSchema) typeOf() spec.Type {
	switch f.Type {
	case "integer":
		return spec.Type{Name: "int"}
	case "number":
		return spec.Type{Name: "float"}
	case "boolean":
		return spec.Type{Name: "boolean"}
	case "array":
		return spec.Type{Elem: &spec.Type{Name: "text"}}
	}
	return spec.Type{Name: "text"}
}

// about describes a field in one line.
func (f *fieldSchema) about() string {
	var parts []string
	for _, text := range []string{f.Title, f.Description} {
		if text != "" {
			parts = append(parts, text)
		}
	}
	choices := f.Enum
	for _, list := range []*fieldSchema{f, f.Items} {
		if list == nil {
			continue
		}
		if list != f {
			choices = append(choices, list.Enum...)
		}
		for _, c := range append(append([]constant{}, list.OneOf...), list.AnyOf...) {
			choices = append(choices, c.Const)
		}
	}
	if len(choices) > 0 {
		parts = append(parts, "one of "+strings.Join(choices, ", "))
	}
	return strings.Join(parts, "; ")
}
