package ollama

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
)

// message is a message of the protocol.
type message struct {
	Role       chat.Role `json:"role"`
	Content    string    `json:"content"`
	Thinking   string    `json:"thinking,omitempty"` // of an answer with calls, until its turn ends
	Images     [][]byte  `json:"images,omitempty"`   // base64 in JSON
	ToolCalls  []request `json:"tool_calls,omitempty"`
	ToolName   string    `json:"tool_name,omitempty"` // for the result of a tool
	ToolCallID string    `json:"tool_call_id,omitempty"`
}

// request is a tool call.
type request struct {
	ID       string `json:"id,omitempty"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"` // an object
	} `json:"function"`
}

// topLevel lists the parameters that are not options.
func topLevel(name string) bool {
	switch name {
	case "format", "keep_alive", "logprobs", "think", "top_logprobs", "truncate":
		return true
	}
	return false
}

// body encodes a request. Inference parameters are options of Ollama, except for those at
// the top level; max_tokens is accepted by its usual name.
func (p *protocol) body(req model.Request) (map[string]any, error) {
	fields, options := map[string]any{}, map[string]any{}
	if p.window > 0 {
		options["num_ctx"] = p.window
	}
	for name, raw := range p.Encoded {
		switch {
		case name == "options":
			var own map[string]any
			if err := json.Unmarshal(raw, &own); err != nil {
				return nil, fmt.Errorf("inference_params: options must be a map")
			}
			maps.Copy(options, own)
		case topLevel(name):
			fields[name] = raw
		case name == "max_tokens", name == "max_completion_tokens":
			options["num_predict"] = raw
		default:
			options[name] = raw
		}
	}
	if len(options) > 0 {
		fields["options"] = options
	}
	messages, err := messagesOf(wire.WithAnswerNotes(req.Messages))
	if err != nil {
		return nil, err
	}
	fields["model"], fields["messages"], fields["stream"] = p.Info.Name, messages, req.Stream
	if err := wire.NoHostedTools(req.Tools, "Ollama"); err != nil {
		return nil, err
	}
	if len(req.Tools) > 0 {
		fields["tools"] = wire.Functions(req.Tools)
	}
	if _, set := fields["format"]; req.Schema != nil && !set {
		fields["format"] = req.Schema.JSON
		if req.Schema.Form == model.SchemaJSON {
			fields["format"] = "json"
		}
	}
	return fields, nil
}

func messagesOf(list []chat.Message) ([]message, error) {
	names := map[string]string{} // tool names by the ids of the calls
	messages, turn := make([]message, len(list)), wire.TurnStart(list)
	for i, m := range list {
		to := &messages[i]
		to.Role, to.ToolCallID, to.ToolName = wire.NormalizeRole(m.Role), m.ToolCallID, names[m.ToolCallID]
		var texts []string
		for _, b := range m.Blocks {
			text, isText := wire.FileText(b)
			switch {
			case b.Item != nil && b.Item.Field == thinkingField:
				if i >= turn && m.HasCalls() {
					to.Thinking += b.Text
				}
			case b.IsModels(), b.IsCitation():
			case isText:
				texts = append(texts, text)
			case b.Type == "image" && b.Media():
				to.Images = append(to.Images, b.Data)
			case to.Role == chat.Tool && b.Media():
				texts = append(texts, wire.ResultNote(b))
			case b.Type == "image":
				return nil, fmt.Errorf("an image must be bytes, not a URL")
			case b.Media(), b.Type == "audio", b.Type == "video", b.Type == "file", b.Type == "bytes":
				return nil, wire.UnsupportedContent(b, "ollama")
			case b.Text != "":
				texts = append(texts, b.Text)
			}
		}
		to.Content = strings.Join(texts, "\n")
		for _, call := range m.Calls() {
			names[call.ID] = call.Name
			r := request{ID: call.ID}
			r.Function.Name, r.Function.Arguments = call.Name, wire.Arguments(call.Arguments)
			to.ToolCalls = append(to.ToolCalls, r)
		}
	}
	return messages, nil
}
