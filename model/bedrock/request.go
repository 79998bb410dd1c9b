package bedrock

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/model/internal/wire"
	"github.com/qtype-dev/qtype/spec/chat"
)

// turn is a message of the protocol: everything that one side adds before the other side
// does.
type turn struct {
	Role    string  `json:"role"` // user or assistant
	Content []block `json:"content"`
}

// block is a part of a message; one of its fields is set.
type block struct {
	Text      *string         `json:"text,omitempty"`
	Image     *media          `json:"image,omitempty"`
	Document  *media          `json:"document,omitempty"`
	Video     *media          `json:"video,omitempty"`
	Use       *toolUse        `json:"toolUse,omitempty"`
	Result    *toolResult     `json:"toolResult,omitempty"`
	Reasoning json.RawMessage `json:"reasoningContent,omitempty"`
	Cache     *cachePoint     `json:"cachePoint,omitempty"`
}

type toolUse struct {
	ID    string          `json:"toolUseId"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

type toolResult struct {
	ID      string  `json:"toolUseId"`
	Content []block `json:"content"`
}

// toolEntry is a tool, or a marker after the tools.
type toolEntry struct {
	Spec  *toolSpec   `json:"toolSpec,omitempty"`
	Cache *cachePoint `json:"cachePoint,omitempty"`
}

// toolSpec is a tool in Bedrock's format.
type toolSpec struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Schema      struct {
		JSON json.RawMessage `json:"json"`
	} `json:"inputSchema"`
}

// body encodes a request.
func (p *protocol) body(req model.Request) (map[string]any, error) {
	fields, err := p.params()
	if err != nil {
		return nil, err
	}
	system, rest := wire.Split(wire.WithAnswerNotes(req.Messages))
	turns, err := p.turns(rest)
	if err != nil {
		return nil, err
	}
	fields["messages"] = turns
	if strings.TrimSpace(system) != "" {
		fields["system"] = []block{textBlock(system)}
	}
	choice := fields["toolChoice"]
	delete(fields, "toolChoice")
	tools := req.Tools
	switch {
	case len(tools) > 0:
	case p.forcesTool(req):
		tools = []model.Tool{{Name: req.Schema.Name, Description: "Returns the answer.", Parameters: req.Schema.JSON}}
		choice = map[string]any{"tool": map[string]string{"name": req.Schema.Name}}
	default:
		tools = calledTools(rest)
	}
	if len(tools) > 0 {
		config := map[string]any{"tools": toolSpecs(tools)}
		if choice != nil {
			config["toolChoice"] = choice
		}
		fields["toolConfig"] = config
	}
	p.mark(fields, turns)
	return fields, nil
}

// forcesTool reports whether a request makes the model call one tool, whose schema is that
// of the answer. Other models reject the choice of a tool.
func (p *protocol) forcesTool(req model.Request) bool {
	known := p.Info.Known
	return req.Schema != nil && len(req.Tools) == 0 && known != nil && known.Structured.ForcedTool == catalogue.Yes
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

func toolSpecs(tools []model.Tool) []toolEntry {
	list := make([]toolEntry, len(tools))
	for i, t := range tools {
		s := toolSpec{Name: t.Name, Description: t.Description}
		s.Schema.JSON = t.Parameters
		list[i].Spec = &s
	}
	return list
}

// turns merges adjacent messages of one side: the results of several calls must be in the
// message that follows the calls. The first message must be the user's; a window that
// begins with an answer gets one that states this.
func (p *protocol) turns(messages []chat.Message) ([]turn, error) {
	turns := []turn{}
	documents := 0
	for _, m := range messages {
		role := "user"
		if wire.NormalizeRole(m.Role) == chat.Assistant {
			role = "assistant"
		}
		blocks, err := p.blocks(m, &documents)
		if err != nil {
			return nil, err
		}
		if len(blocks) == 0 { // empty content is not allowed
			continue
		}
		if len(turns) == 0 && role == "assistant" {
			turns = append(turns, turn{Role: "user", Content: []block{textBlock("(earlier messages are omitted)")}})
		}
		if n := len(turns); n > 0 && turns[n-1].Role == role {
			turns[n-1].Content = append(turns[n-1].Content, blocks...)
			continue
		}
		turns = append(turns, turn{Role: role, Content: blocks})
	}
	return turns, nil
}

// blocks encodes a message.
func (p *protocol) blocks(m chat.Message, documents *int) ([]block, error) {
	if wire.NormalizeRole(m.Role) == chat.Tool && m.ToolCallID != "" {
		return []block{{Result: &toolResult{ID: plainID(m.ToolCallID), Content: resultOf(m, documents)}}}, nil
	}
	var blocks []block
	hasText, hasDocument := false, false
	for _, b := range m.Blocks {
		made, err := encodeBlock(b, documents)
		if err != nil {
			return nil, err
		}
		if made.Text != nil && strings.TrimSpace(*made.Text) == "" { // blank texts are rejected
			continue
		}
		hasText, hasDocument = hasText || made.Text != nil, hasDocument || made.Document != nil
		blocks = append(blocks, made)
	}
	if hasDocument && !hasText { // a document needs a text next to it
		blocks = append(blocks, textBlock("The document is attached."))
	}
	for _, c := range m.Calls() {
		blocks = append(blocks, p.thoughts.Find(c.ID)...)
		blocks = append(blocks, block{Use: &toolUse{ID: plainID(c.ID), Name: c.Name, Input: wire.Arguments(c.Arguments)}})
	}
	return blocks, nil
}

// resultOf encodes the result of a tool: its text, and images and documents.
func resultOf(m chat.Message, documents *int) []block {
	content := []block{}
	if text := m.Text(); strings.TrimSpace(text) != "" || !hasMedia(m) {
		content = append(content, textBlock(text))
	}
	for _, b := range m.Blocks {
		if !b.Media() {
			continue
		}
		made, err := encodeBlock(b, documents)
		if err != nil {
			made = textBlock(wire.ResultNote(b))
		}
		content = append(content, made)
	}
	return content
}

func hasMedia(m chat.Message) bool { return slices.ContainsFunc(m.Blocks, chat.Block.Media) }

func textBlock(text string) block { return block{Text: &text} }

// plainID converts the id of a call, which another provider may have assigned, to one that
// Bedrock accepts.
func plainID(id string) string {
	id = wire.PlainID(id)
	return id[max(0, len(id)-64):]
}

// params sorts the inference parameters: those that all models have belong to
// inferenceConfig, the fields of Converse are sent as they are, in Bedrock's or in Python's
// spelling, and what is left belongs to the model.
func (p *protocol) params() (map[string]any, error) {
	fields, config, own := map[string]any{}, map[string]any{}, map[string]any{}
	guardrail := map[string]any{}
	for name, raw := range p.Encoded {
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
			if err := json.Unmarshal(raw, &into); err != nil {
				return nil, fmt.Errorf("inference_params: %s must be a map", name)
			}
		case "additionalModelResponseFieldPaths", "guardrailConfig", "outputConfig", "performanceConfig", "promptVariables", "requestMetadata", "serviceTier", "toolChoice":
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
