package googleai

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/model/internal/wire"
	"github.com/qtype-dev/qtype/spec/chat"
)

// content is everything that one side adds before the other side does.
type content struct {
	Role  string `json:"role,omitempty"` // user or model
	Parts []part `json:"parts"`
}

// part is a part of a content, in a request and in an answer. One of its fields is set,
// in addition to the two about thoughts.
type part struct {
	Text      string          `json:"text,omitempty"`
	Inline    *blob           `json:"inlineData,omitempty"`
	File      *file           `json:"fileData,omitempty"`
	Call      *functionCall   `json:"functionCall,omitempty"`
	Result    *functionResult `json:"functionResponse,omitempty"`
	Thought   bool            `json:"thought,omitempty"`
	Signature string          `json:"thoughtSignature,omitempty"`
}

type blob struct {
	MimeType string `json:"mimeType"`
	Data     string `json:"data"` // base64
}

type file struct {
	MimeType string `json:"mimeType,omitempty"`
	URI      string `json:"fileUri"`
}

type functionCall struct {
	ID   string          `json:"id,omitempty"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args,omitempty"` // an object
}

type functionResult struct {
	ID       string            `json:"id,omitempty"`
	Name     string            `json:"name"`
	Response map[string]string `json:"response"`
}

// function is a tool in Gemini's format.
type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parametersJsonSchema,omitempty"`
}

// body encodes a request.
func (p *protocol) body(req model.Request) (map[string]any, error) {
	fields, config, err := p.params()
	if err != nil {
		return nil, err
	}
	system, rest := wire.Split(req.Messages)
	contents, err := p.contents(rest)
	if err != nil {
		return nil, err
	}
	fields["contents"] = contents
	if strings.TrimSpace(system) != "" {
		fields["systemInstruction"] = content{Parts: []part{{Text: system}}}
	}
	if len(req.Tools) > 0 {
		fields["tools"] = []map[string][]function{{"functionDeclarations": functions(req.Tools)}}
	}
	if _, set := config["responseMimeType"]; req.Schema != nil && !set {
		config["responseMimeType"] = "application/json"
		if req.Schema.Form != model.SchemaJSON {
			config["responseJsonSchema"] = req.Schema.JSON
		}
	}
	if len(config) > 0 {
		fields["generationConfig"] = config
	}
	return fields, nil
}

// params splits the inference parameters: most belong to generationConfig, in Google's
// spelling, so that max_tokens and topP both work.
func (p *protocol) params() (fields, config map[string]any, err error) {
	fields, config = map[string]any{}, map[string]any{}
	for name, raw := range p.Encoded {
		switch name := wire.Camel(name); name {
		case "generationConfig":
			if err := json.Unmarshal(raw, &config); err != nil {
				return nil, nil, fmt.Errorf("inference_params: generationConfig must be a map")
			}
		case "cachedContent", "safetySettings", "toolConfig", "labels":
			fields[name] = raw
		case "maxTokens", "maxCompletionTokens":
			config["maxOutputTokens"] = raw
		case "stop":
			config["stopSequences"] = wire.TextList(raw)
		default:
			config[name] = raw
		}
	}
	return fields, config, nil
}

func functions(tools []model.Tool) []function {
	list := make([]function, len(tools))
	for i, t := range tools {
		list[i] = function{Name: t.Name, Description: t.Description, Parameters: t.Parameters}
	}
	return list
}

// contents merges adjacent messages of one side: the results of several calls must be
// in the content that follows the calls.
func (p *protocol) contents(messages []chat.Message) ([]content, error) {
	var all []content
	names := map[string]string{} // tool names by the ids of the calls
	for _, m := range messages {
		role := "user"
		if wire.NormalizeRole(m.Role) == chat.Assistant {
			role = "model"
		}
		parts, err := p.partsOf(m, names)
		if err != nil {
			return nil, err
		}
		if len(parts) == 0 {
			continue
		}
		if n := len(all); n > 0 && all[n-1].Role == role {
			all[n-1].Parts = append(all[n-1].Parts, parts...)
			continue
		}
		all = append(all, content{Role: role, Parts: parts})
	}
	return all, nil
}

func (p *protocol) partsOf(m chat.Message, names map[string]string) ([]part, error) {
	if name := names[m.ToolCallID]; wire.NormalizeRole(m.Role) == chat.Tool && name != "" {
		return []part{{Result: &functionResult{ID: m.ToolCallID, Name: name, Response: map[string]string{"result": m.Text()}}}}, nil
	}
	var parts []part
	for _, b := range m.Blocks {
		p, err := partOf(b)
		if err != nil {
			return nil, err
		}
		if p != (part{}) { // an empty text is not a part
			parts = append(parts, p)
		}
	}
	for _, call := range m.ToolCalls {
		names[call.ID] = call.Name
		parts = append(parts, part{Call: &functionCall{ID: call.ID, Name: call.Name, Args: wire.Arguments(call.Arguments)}, Signature: p.signatures.Find(call.ID)})
	}
	return parts, nil
}

// partOf encodes a block. Data of any type is sent inline; the model decides which
// types it accepts.
func partOf(b chat.Block) (part, error) {
	mime := b.MimeType
	media := b.Type == "image" || b.Type == "audio" || b.Type == "video" || b.Type == "file"
	switch {
	case b.Media():
		if mime == "" && b.Type == "image" {
			mime = wire.ImageType(b.Data)
		}
		if mime == "" {
			return part{}, fmt.Errorf("%s cannot be sent to google-ai without its media type", b.Type)
		}
		return part{Inline: &blob{MimeType: mime, Data: base64.StdEncoding.EncodeToString(b.Data)}}, nil
	case media && b.Text != "":
		return part{File: &file{MimeType: mime, URI: b.Text}}, nil
	case b.Type == "bytes":
		return part{}, wire.UnsupportedContent(b, "google-ai")
	}
	return part{Text: b.Text}, nil
}
