package bedrock

import (
	"encoding/json"
	"fmt"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/model/anthropic"
	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
)

// toolEntry is a tool, a tool that Bedrock runs, or a marker after the tools.
type toolEntry struct {
	Spec   *toolSpec   `json:"toolSpec,omitempty"`
	System *systemTool `json:"systemTool,omitempty"`
	Cache  *cachePoint `json:"cachePoint,omitempty"`
}

// toolSpec is a tool in Bedrock's format.
type toolSpec struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Strict      bool   `json:"strict,omitempty"`
	Schema      struct {
		JSON json.RawMessage `json:"json"`
	} `json:"inputSchema"`
}

// systemTool is a tool that Bedrock runs. It has no settings.
type systemTool struct {
	Name string `json:"name"`
}

// hostedTools are the names of Bedrock's tools by their kind in documents.
var hostedTools = map[string]string{"grounding": "nova_grounding", "web_search": "nova_grounding", "code_execution": "nova_code_interpreter"}

// addTools adds the tools to a request. forced is the schema that a tool, which the model must
// call, has in place of them; nil for none.
func (p *protocol) addTools(fields map[string]any, req model.Request, forced *model.Schema) error {
	choice := fields["toolChoice"]
	delete(fields, "toolChoice")
	tools := req.Tools
	switch {
	case forced != nil:
		tools = []model.Tool{{Name: forced.Name, Description: "Returns the answer.", Parameters: forced.JSON}}
		choice = map[string]any{"tool": map[string]string{"name": forced.Name}}
	case req.MustCall && choice == nil:
		choice = map[string]any{"any": map[string]any{}}
	case len(tools) == 0:
		tools = calledTools(req.Messages)
	}
	if len(tools) == 0 {
		return nil
	}
	entries, err := p.toolEntries(tools)
	if err != nil {
		return err
	}
	config := map[string]any{"tools": entries}
	if choice != nil {
		config["toolChoice"] = choice
	}
	fields["toolConfig"] = config
	return nil
}

// calledTools declares the tools that a conversation has calls of: Bedrock rejects such a
// conversation if the request declares no tools.
func calledTools(messages []chat.Message) []model.Tool {
	var tools []model.Tool
	seen := map[string]bool{}
	for _, m := range messages {
		for _, c := range m.Calls() {
			if !seen[c.Name] {
				seen[c.Name] = true
				tools = append(tools, model.Tool{Name: c.Name, Parameters: json.RawMessage(wire.EmptySchema)})
			}
		}
	}
	return tools
}

// toolEntries encodes tools. A hosted tool that has no name in Bedrock is an error, as is one
// with settings.
func (p *protocol) toolEntries(tools []model.Tool) ([]toolEntry, error) {
	list := make([]toolEntry, len(tools))
	for i, t := range tools {
		name := hostedTools[t.Hosted]
		switch {
		case t.Hosted == "":
			s := toolSpec{Name: t.Name, Description: t.Description}
			s.Schema.JSON = t.Parameters
			if known := p.Info.Known; t.Strict && known != nil && known.Structured.StrictTools == catalogue.Yes {
				s.Strict, s.Schema.JSON = true, anthropic.ClosedSchema(t.Parameters)
			}
			list[i].Spec = &s
		case name == "":
			return nil, fmt.Errorf("aws-bedrock has no hosted tool %s; it has code_execution, grounding, web_search", t.Hosted)
		case len(t.Settings) > 0 && string(t.Settings) != "{}":
			return nil, fmt.Errorf("the hosted tool %s has no settings in aws-bedrock", t.Hosted)
		default:
			list[i].System = &systemTool{name}
		}
	}
	return list, nil
}

// schemaForm is how a request has the schema of its answer.
type schemaForm int

const (
	noSchema   schemaForm = iota // only the caller's message describes it
	schemaText                   // outputConfig.textFormat
	schemaTool                   // a tool that the model must call, whose input is the answer
)

// schemaForm returns the form for a request, by what is known of the model. A tool cannot be
// forced next to others, and not while the thinking of older models of Anthropic is enabled.
func (p *protocol) schemaForm(req model.Request) schemaForm {
	if req.Schema == nil || p.Info.Known == nil {
		return noSchema
	}
	known := p.Info.Known.Structured
	forces := known.ForcedTool == catalogue.Yes
	switch {
	case known.By == "outputConfig.textFormat" && (known.JSONSchema == catalogue.Yes || !forces), !forces && known.JSONSchema == catalogue.Yes:
		return schemaText
	case forces && len(req.Tools) == 0 && !p.thinkingEnabled():
		return schemaTool
	}
	return noSchema
}

// thinkingEnabled reports whether the parameters enable thinking by a budget.
func (p *protocol) thinkingEnabled() bool {
	var thinking struct {
		Type string `json:"type"`
	}
	raw := p.Encoded["thinking"]
	for _, name := range []string{"additionalModelRequestFields", "additional_model_request_fields"} {
		var fields map[string]json.RawMessage
		if json.Unmarshal(p.Encoded[name], &fields) == nil && fields["thinking"] != nil {
			raw = fields["thinking"]
		}
	}
	return json.Unmarshal(raw, &thinking) == nil && thinking.Type == "enabled"
}

// addTextFormat requests an answer in the form of a schema, which is a text in this protocol. A
// textFormat in the parameters precedes it.
func addTextFormat(fields map[string]any, s *model.Schema, claude bool) {
	config, _ := fields["outputConfig"].(map[string]json.RawMessage)
	if config == nil {
		config = map[string]json.RawMessage{}
	}
	if config["textFormat"] == nil {
		schema := s.JSON
		if claude {
			schema = anthropic.ClosedSchema(schema)
		}
		format := map[string]any{"type": "json_schema", "structure": map[string]any{"jsonSchema": map[string]string{"name": s.Name, "schema": string(schema)}}}
		config["textFormat"], _ = json.Marshal(format) // texts always encode
	}
	fields["outputConfig"] = config
}
