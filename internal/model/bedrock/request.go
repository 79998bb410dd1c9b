package bedrock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/model/anthropic"
	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
)

// body encodes a request.
func (p *protocol) body(req model.Request) (map[string]any, error) {
	fields, err := p.params()
	if err != nil {
		return nil, err
	}
	system, rest := p.Split(wire.WithAnswerNotes(req.Messages))
	turns, err := turnsOf(rest)
	if err != nil {
		return nil, err
	}
	fields["messages"] = turns
	if strings.TrimSpace(system) != "" {
		fields["system"] = []block{textBlock(system)}
	}
	var forced *model.Schema
	switch p.schemaForm(req) {
	case schemaTool:
		forced = req.Schema
	case schemaText:
		addTextFormat(fields, req.Schema, strings.Contains(p.Info.Known.ID, "anthropic."))
	}
	if err := p.addTools(fields, req, forced); err != nil {
		return nil, err
	}
	p.mark(fields, turns, forced != nil)
	return fields, nil
}

// params sorts the inference parameters: parameters of all models belong to
// inferenceConfig, fields of Converse are sent as they are, in Bedrock's or in Python's
// spelling, and the rest belongs to the model.
func (p *protocol) params() (map[string]any, error) {
	fields, config, own := map[string]any{}, map[string]any{}, map[string]any{}
	guardrail := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(p.Encoded)) { // additionalModelRequestFields precede what is merged with them
		raw := p.Encoded[name]
		switch field := wire.Camel(name); field {
		case "temperature", "topP", "maxTokens", "stopSequences":
			config[field] = raw
		case "maxCompletionTokens":
			config["maxTokens"] = raw
		case "stop":
			config["stopSequences"] = wire.TextList(raw)
		case "guardrailIdentifier", "guardrailVersion", "trace":
			guardrail[field] = raw
		case "inferenceConfig", "additionalModelRequestFields":
			into := map[string]map[string]any{"inferenceConfig": config, "additionalModelRequestFields": own}[field]
			var inner map[string]json.RawMessage
			if err := json.Unmarshal(raw, &inner); err != nil {
				return nil, fmt.Errorf("inference_params: %s must be a map", name)
			}
			for key, value := range inner {
				into[key] = value
			}
		case "outputConfig":
			if err := splitOutput(raw, fields, own); err != nil {
				return nil, err
			}
		case "anthropicBeta":
			own["anthropic_beta"] = withTexts(own["anthropic_beta"], raw)
		case "serviceTier":
			fields[field] = tierOf(raw)
		case "additionalModelResponseFieldPaths", "guardrailConfig", "performanceConfig", "projectIdentifier", "promptVariables", "requestMetadata", "toolChoice":
			fields[field] = raw
		default:
			own[name] = raw
		}
	}
	for name, group := range map[string]map[string]any{"inferenceConfig": config, "additionalModelRequestFields": own, "guardrailConfig": guardrail} {
		if len(group) > 0 {
			fields[name] = group
		}
	}
	return fields, nil
}

// splitOutput sorts the members of output_config: the format and the effort belong to Converse,
// others, such as task_budget, to the model.
func splitOutput(raw json.RawMessage, fields, own map[string]any) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil || all == nil {
		return fmt.Errorf("inference_params: output_config must be a map")
	}
	converse, rest := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if raw, ok := own["output_config"].(json.RawMessage); ok {
		_ = json.Unmarshal(raw, &rest) // what is not a map is the provider's error
	}
	for name, value := range all {
		switch field := wire.Camel(name); field {
		case "textFormat", "effort":
			converse[field] = value
		default:
			rest[name] = value
		}
	}
	if len(converse) > 0 {
		fields["outputConfig"] = converse
	}
	if len(rest) > 0 {
		own["output_config"] = rest
	}
	return nil
}

// withTexts appends a text or a list of texts to a list.
func withTexts(list any, raw json.RawMessage) any {
	var all, more []string
	before, ok := list.(json.RawMessage)
	if json.Unmarshal(wire.TextList(raw), &more) != nil || ok && json.Unmarshal(wire.TextList(before), &all) != nil {
		return raw // the provider reports it
	}
	return append(all, more...)
}

// tierOf returns a service tier in the form of Converse: flex is {"type": "flex"}.
func tierOf(raw json.RawMessage) json.RawMessage {
	var name string
	if json.Unmarshal(raw, &name) != nil {
		return raw
	}
	raw, _ = json.Marshal(map[string]string{"type": name}) // a text always encodes
	return raw
}

// cachePoint marks the end of a part of the prompt that Bedrock caches.
type cachePoint struct {
	Type     string `json:"type"`
	Lifetime string `json:"ttl,omitempty"` // 5m or 1h; empty for Bedrock's, which is five minutes
}

// mark adds markers to a request, after the parts that later calls begin with: the tools
// and the system message, which are the same in all calls of a step, and a conversation
// that goes on. Bedrock ignores markers of short prompts, and rejects requests with markers
// for other models; the ARN of an application inference profile does not name its model.
// A request whose only tool is the form of the answer has no marker after it.
func (p *protocol) mark(fields map[string]any, turns []turn, forced bool) {
	if p.cache == cacheNone || p.Info.Known == nil || p.Info.Known.Cache.Breakpoints != catalogue.Yes {
		return
	}
	point := &cachePoint{Type: "default"}
	if p.cache != cacheDefault {
		point.Lifetime = p.cache
	}
	config, _ := fields["toolConfig"].(map[string]any)
	tools, _ := config["tools"].([]toolEntry)
	if p.Info.Known.Cache.ToolPoints == catalogue.Yes && len(tools) > 0 && !forced {
		config["tools"] = append(tools, toolEntry{Cache: point})
	}
	if system, ok := fields["system"].([]block); ok {
		fields["system"] = append(system, block{Cache: point})
	}
	if n := len(turns); n > 1 || len(tools) > 0 && !forced && n > 0 {
		turns[n-1].Content = append(turns[n-1].Content, block{Cache: point})
	}
}

// Generate sends one request; model.WithRetry retries. If the model refuses the reasoning in it,
// because what precedes the reasoning has changed, it is sent without that of earlier turns, and
// then without any.
func (c *Client) Generate(ctx context.Context, req model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		ends := []int{wire.TurnStart(req.Messages), len(req.Messages)}
		for {
			refused := c.pass(ctx, req, yield, len(ends) > 0)
			if !refused {
				return
			}
			req.Messages, ends = withoutReasoning(req.Messages, ends[0]), ends[1:]
		}
	}
}

// pass sends one request and passes its answer on. It reports whether the reasoning in it was
// refused, which is the error of the answer if the request is not sent again.
func (c *Client) pass(ctx context.Context, req model.Request, yield func(model.Event, error) bool, again bool) (refused bool) {
	for ev, err := range c.Chat.Generate(ctx, req) {
		if again && refusesReasoning(err) {
			return true
		}
		again = false // a part of the answer was passed on
		if !yield(ev, c.withProfiles(err)) || err != nil {
			return false
		}
	}
	return false
}

// refusesReasoning reports whether a model refused the reasoning in a request. Bedrock passes on
// the text of Anthropic, which has no code for it.
func refusesReasoning(err error) bool {
	failure, ok := errors.AsType[*model.Error](err)
	if !ok || failure.Status != http.StatusBadRequest {
		return false
	}
	text := strings.ReplaceAll(strings.ToLower(failure.Message), "`", "")
	return strings.Contains(text, "thinking") && (strings.Contains(text, "invalid signature") || strings.Contains(text, "cannot be modified"))
}

// withProfiles completes the error of a model that Bedrock serves by inference profiles only: it
// names those that contain the model.
func (c *Client) withProfiles(err error) error {
	failure, ok := errors.AsType[*model.Error](err)
	known := c.Info().Known
	if !ok || failure.Status != http.StatusBadRequest || known == nil || len(known.Profiles) == 0 || !strings.Contains(failure.Message, "inference profile") {
		return err
	}
	var ids []string
	for _, prefix := range slices.Sorted(maps.Keys(known.Profiles)) {
		ids = append(ids, known.Profiles[prefix].ID)
	}
	named := *failure
	named.Message = fmt.Sprintf("%s Set model_id to a profile: %s", failure.Message, strings.Join(ids, ", "))
	return &named
}

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
