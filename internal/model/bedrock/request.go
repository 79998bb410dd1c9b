package bedrock

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/model"
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
