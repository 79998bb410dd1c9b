package anthropic

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/model"
)

// body encodes a request. It returns the beta features that the request needs, and what of the document
// it does not have. Parameters that the document does not set are not sent, except for max_tokens, which is required.
func (p *protocol) body(req model.Request) (fields map[string]any, features []string, dropped string, err error) {
	fields = map[string]any{"max_tokens": p.Info.MaxTokens}
	for name, raw := range p.Encoded {
		fields[name] = raw
	}
	text, rest := p.Split(wire.WithAnswerNotes(req.Messages))
	turns, err := turnsOf(rest, p.passageTools(req))
	if err != nil {
		return nil, nil, "", err
	}
	set, err := p.toolsOf(req.Tools)
	if err != nil {
		return nil, nil, "", err
	}
	features = slices.Concat(p.betas, set.betas)
	var system []part
	if strings.TrimSpace(text) != "" {
		system = []part{{Type: textType, Text: text}}
	}
	mark := cacheMark(p.cache)
	markCache(mark, system, set.tools, turns)
	fields["model"], fields["messages"] = p.Info.Name, turns
	switch {
	case len(system) > 0 && mark != nil:
		fields["system"] = system
	case len(system) > 0:
		fields["system"] = text
	}
	if len(set.tools) > 0 {
		fields["tools"] = set.tools
		if req.NoCalls {
			fields["tool_choice"] = object{{"type", quote("none")}}
		}
	}
	if len(set.servers) > 0 {
		fields["mcp_servers"] = set.servers
	}
	binds, dropped := p.setThinking(fields, turns)
	if binds {
		features = append(features, bindingBeta)
	}
	if _, set := fields["tool_choice"]; req.MustCall && !set {
		if fields["thinking"] == nil {
			fields["tool_choice"] = map[string]string{"type": "any"}
		} else {
			dropped = "the demand to call a tool, because thinking excludes it"
		}
	}
	if req.Schema != nil {
		if err := requestFormat(fields, req.Schema); err != nil {
			return nil, nil, "", err
		}
	}
	if req.Stream {
		fields["stream"] = true
	}
	return fields, features, dropped, nil
}

// setThinking adapts the parameter thinking to the conversation. It reports whether the request
// sets what happens to thinking that does not belong to it, and why it does not have the parameter.
func (p *protocol) setThinking(fields map[string]any, turns []turn) (binds bool, dropped string) {
	raw, _ := fields["thinking"].(json.RawMessage)
	thinking, _ := parseObject(raw) // nil without the parameter
	kind := thinking.text("type")
	if kind == "enabled" && !thinksFirst(turns) {
		delete(fields, "thinking")
		return false, "the parameter thinking, because an answer of this turn does not begin with thinking, as the one of another model"
	}
	bound := p.official && p.Info.Known != nil && p.Info.Known.Reasoning.BoundToPrefix
	if !bound || kind != "" && kind != "adaptive" || thinking.get("block_binding") != nil || !slices.ContainsFunc(turns, hasThinking) {
		return false, ""
	}
	thinking = slices.Clone(thinking)
	thinking.setText("type", "adaptive")
	thinking.set("block_binding", json.RawMessage(`{"prefix_mismatch_behavior":"drop_block"}`))
	fields["thinking"] = thinking
	return true, ""
}

// hasThinking reports whether a turn has thinking.
func hasThinking(t turn) bool { return slices.ContainsFunc(t.Content, isThinkingPart) }

func isThinkingPart(p part) bool { return p.Type == thinkingType || p.Type == redactedType }

// thinksFirst reports whether all answers of the current turn begin with thinking, as the parameter
// thinking with type enabled requires. Calls of another model, and calls without items, have none.
func thinksFirst(turns []turn) bool {
	for _, t := range slices.Backward(turns) {
		switch {
		case t.Role != userRole:
			if !isThinkingPart(t.Content[0]) {
				return false
			}
		case !slices.ContainsFunc(t.Content, func(p part) bool { return p.Type == "tool_result" }):
			return true
		}
	}
	return true
}

// requestFormat adds the schema of the answer to output_config, whose other fields the
// document may set, unless it sets a format itself.
func requestFormat(fields map[string]any, s *model.Schema) error {
	raw, set := fields["output_config"].(json.RawMessage)
	config, err := parseObject(raw)
	if set && string(raw) != "null" && err != nil {
		return errors.New("inference_params: output_config must be a map")
	}
	if config.get("format") != nil {
		return nil
	}
	config.set("format", object{{"type", quote("json_schema")}, {"schema", ClosedSchema(s.JSON)}}.json())
	fields["output_config"] = config
	return nil
}
