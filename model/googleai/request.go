package googleai

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/catalogue"
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
	Parts    []resultPart      `json:"parts,omitempty"` // media, for models from Gemini 3
}

// resultPart is an image or another file in the result of a tool.
type resultPart struct {
	Inline *blob `json:"inlineData,omitempty"`
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
			var own map[string]any
			if err := json.Unmarshal(raw, &own); err != nil {
				return nil, nil, fmt.Errorf("inference_params: generationConfig must be a map")
			}
			maps.Copy(config, own)
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
			resultsFirst(all[n-1].Parts)
			continue
		}
		all = append(all, content{Role: role, Parts: parts})
	}
	return all, nil
}

func (p *protocol) partsOf(m chat.Message, names map[string]string) ([]part, error) {
	if name := names[m.ToolCallID]; wire.NormalizeRole(m.Role) == chat.Tool && name != "" {
		return p.result(m, name), nil
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
	for _, call := range m.Calls() {
		names[call.ID] = call.Name
		parts = append(parts, part{Call: &functionCall{ID: call.ID, Name: call.Name, Args: wire.Arguments(call.Arguments)}, Signature: p.signatures.Find(call.ID)})
	}
	return parts, nil
}

// result encodes the result of a tool. Its media are a part of it for models from Gemini 3,
// and follow the results for others, which accept only text in a result.
func (p *protocol) result(m chat.Message, name string) []part {
	r := &functionResult{ID: m.ToolCallID, Name: name}
	texts := []string{}
	if text := m.Text(); text != "" {
		texts = append(texts, text)
	}
	var media []part
	for _, b := range m.Blocks {
		if !b.Media() {
			continue
		}
		made, err := partOf(b)
		switch {
		case err != nil:
			texts = append(texts, wire.ResultNote(b))
		case p.Info.Known != nil && p.Info.Known.Tools.MediaResults == catalogue.Yes:
			r.Parts = append(r.Parts, resultPart{Inline: made.Inline})
		default:
			media = append(media, made)
		}
	}
	if len(media) > 0 {
		texts = append(texts, fmt.Sprintf("[%d files follow the results of the tools]", len(media)))
	}
	r.Response = map[string]string{"result": strings.Join(texts, "\n")}
	return append([]part{{Result: r}}, media...)
}

// resultsFirst moves the results of tools before other parts, in their order: the results of
// all calls must be together.
func resultsFirst(parts []part) {
	rank := func(p part) int {
		if p.Result != nil {
			return 0
		}
		return 1
	}
	if len(parts) > 0 && parts[0].Result != nil {
		slices.SortStableFunc(parts, func(a, b part) int { return rank(a) - rank(b) })
	}
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
