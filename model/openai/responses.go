package openai

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/modelparams"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/model/internal/wire"
	"github.com/qtype-dev/qtype/spec/chat"
)

// NewResponses makes a Client of OpenAI's Responses API. Conversations are those of the
// caller: the server does not store them. It calls nothing.
func NewResponses(c Config) (*Client, error) {
	s, err := wire.NewServer(c, responsesFormat(example))
	if err != nil {
		return nil, err
	}
	return &Client{wire.NewChat(s, &responses{Server: s, target: newTarget(s, "responses")}, "responses")}, nil
}

// NewAzureResponses makes a Client of the Responses API in Azure OpenAI. It calls nothing.
func NewAzureResponses(c AzureConfig) (*Client, error) {
	s, err := wire.NewServer(c.Config, responsesFormat(azureExample))
	if err != nil {
		return nil, err
	}
	return &Client{wire.NewChat(s, &responses{Server: s, target: c.target(s, "responses")}, "responses")}, nil
}

func responsesFormat(example string) wire.Format {
	return wire.Format{Answers: "response", Example: example,
		Params: modelparams.Responses}
}

// responses is the Responses API.
type responses struct {
	*wire.Server
	target
	thoughts wire.Recent[[]json.RawMessage] // reasoning items, which must be sent back, by the id of the call that follows them
}

// item is an input item: a message, a call or the result of a call.
type item struct {
	Type      string        `json:"type"`
	Role      string        `json:"role,omitempty"`
	Content   []contentPart `json:"content,omitempty"`
	CallID    string        `json:"call_id,omitempty"`
	Name      string        `json:"name,omitempty"`
	Arguments string        `json:"arguments,omitempty"`
	Output    any           `json:"output,omitempty"` // of a call: a string, or parts if it has media
}

type contentPart struct {
	Type     string `json:"type"`
	Text     string `json:"text,omitempty"`
	ImageURL string `json:"image_url,omitempty"`
	FileURL  string `json:"file_url,omitempty"`
	FileName string `json:"filename,omitempty"`
	FileData string `json:"file_data,omitempty"`
}

// Request encodes a request.
func (p *responses) Request(req model.Request) (wire.Call, error) {
	body, err := p.body(req)
	return wire.Call{URL: p.endpoint, Header: p.header, Body: body}, err
}

// Answer returns a reader for one response.
func (p *responses) Answer() wire.ResponseReader { return &responseReader{protocol: p} }

// body encodes a request. Parameters of chat completions have their names in this API.
func (p *responses) body(req model.Request) (map[string]any, error) {
	fields := map[string]any{"store": false}
	for name, raw := range p.Encoded {
		switch name {
		case "max_tokens", "max_completion_tokens":
			fields["max_output_tokens"] = raw
		case "reasoning_effort":
			fields["reasoning"] = map[string]any{"effort": raw}
		default:
			fields[name] = raw
		}
	}
	if _, set := fields["include"]; !set && p.reasons() {
		fields["include"] = []string{"reasoning.encrypted_content"}
	}
	system, rest := wire.Split(wire.WithAnswerNotes(req.Messages))
	if strings.TrimSpace(system) != "" {
		fields["instructions"] = system
	}
	input := []any{}
	for _, m := range rest {
		items, err := p.items(m)
		if err != nil {
			return nil, err
		}
		input = append(input, items...)
	}
	fields["model"], fields["input"] = p.model, input
	if len(req.Tools) > 0 {
		fields["tools"] = responseTools(req.Tools)
	}
	if _, set := fields["text"]; req.Schema != nil && !set {
		fields["text"] = map[string]any{"format": textFormat(req.Schema)}
	}
	if req.Stream {
		fields["stream"] = true
	}
	return fields, nil
}

// reasons reports whether the model reasons: others reject the request for its thoughts.
func (p *responses) reasons() bool {
	return p.Info.Known != nil && p.Info.Known.Reasoning.Reasons()
}

// responseTools declares tools, which this API binds to their schemas by default.
func responseTools(tools []model.Tool) []map[string]any {
	list := make([]map[string]any, len(tools))
	for i, t := range tools {
		list[i] = map[string]any{"type": "function", "name": t.Name, "parameters": t.Parameters, "strict": false}
		if t.Description != "" {
			list[i]["description"] = t.Description
		}
	}
	return list
}

// textFormat requests the form of an answer: that of chat completions, without a level.
func textFormat(s *model.Schema) map[string]any {
	format := responseFormat(s)
	inner, ok := format["json_schema"].(map[string]any)
	if !ok {
		return format
	}
	inner["type"] = "json_schema"
	return inner
}

// items encodes a message.
func (p *responses) items(m chat.Message) ([]any, error) {
	role := wire.NormalizeRole(m.Role)
	if role == chat.Tool {
		return []any{item{Type: "function_call_output", CallID: m.ToolCallID, Output: responseOutput(m)}}, nil
	}
	message := item{Type: "message", Role: string(role)}
	for _, b := range m.Blocks {
		part, err := responsePart(b, role)
		if err != nil {
			return nil, err
		}
		if part != (contentPart{}) {
			message.Content = append(message.Content, part)
		}
	}
	var items []any
	if len(message.Content) > 0 {
		items = append(items, message)
	}
	for _, c := range m.Calls() {
		for _, thought := range p.thoughts.Find(c.ID) {
			items = append(items, thought)
		}
		items = append(items, item{Type: "function_call", CallID: c.ID, Name: c.Name, Arguments: string(wire.Arguments(c.Arguments))})
	}
	return items, nil
}

// responseOutput encodes the result of a tool: its text, or parts if it has media.
func responseOutput(m chat.Message) any {
	if !slices.ContainsFunc(m.Blocks, chat.Block.Media) {
		return m.Text()
	}
	parts := []contentPart{}
	for _, b := range m.Blocks {
		part, err := responsePart(b, chat.Tool)
		if err != nil {
			part = contentPart{Type: "input_text", Text: wire.ResultNote(b)}
		}
		if part != (contentPart{}) {
			parts = append(parts, part)
		}
	}
	return parts
}

// responsePart encodes a block: a text, an image or a file; empty for an empty text.
func responsePart(b chat.Block, role chat.Role) (contentPart, error) {
	data := func(mime string) string {
		return "data:" + mime + ";base64," + base64.StdEncoding.EncodeToString(b.Data)
	}
	switch {
	case b.Type == "image" && !b.Media():
		return contentPart{Type: "input_image", ImageURL: b.Text}, nil
	case b.Type == "image":
		mime := b.MimeType
		if mime == "" {
			mime = wire.ImageType(b.Data)
		}
		return contentPart{Type: "input_image", ImageURL: data(mime)}, nil
	case b.Type == "file" && !b.Media():
		return contentPart{Type: "input_file", FileURL: b.Text}, nil
	case b.Type == "file" && b.MimeType == "application/pdf":
		return contentPart{Type: "input_file", FileName: "document.pdf", FileData: data(b.MimeType)}, nil
	case b.Media():
		if text, ok := wire.FileText(b); ok {
			return contentPart{Type: "input_text", Text: text}, nil
		}
		return contentPart{}, wire.UnsupportedContent(b, "the Responses API")
	case b.Text == "":
		return contentPart{}, nil
	case role == chat.Assistant:
		return contentPart{Type: "output_text", Text: b.Text}, nil
	}
	return contentPart{Type: "input_text", Text: b.Text}, nil
}

// responseObject is a response, complete or not.
type responseObject struct {
	Output     []json.RawMessage `json:"output"`
	Status     string            `json:"status"`
	Error      json.RawMessage   `json:"error"`
	Incomplete *struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	Usage *struct {
		Input   wire.Count `json:"input_tokens"`
		Output  wire.Count `json:"output_tokens"`
		Details struct {
			Cached wire.Count `json:"cached_tokens"`
		} `json:"input_tokens_details"`
	} `json:"usage"`
}

// responseReader builds a response from its parts.
type responseReader struct {
	protocol *responses
	draft    wire.ResponseBuilder
	streamed bool              // whether the texts came as deltas
	thoughts []json.RawMessage // that were not assigned to a call yet
	finish   string
	usage    model.Usage
	done     bool
}

// Complete reports whether the closing event was read.
func (a *responseReader) Complete(bool) bool { return a.done }

// Whole reads a response that is not streamed.
func (a *responseReader) Whole(raw []byte) error {
	var r responseObject
	if err := json.Unmarshal(raw, &r); err != nil {
		return wire.Shape(err)
	}
	if r.Output == nil {
		return errors.New("no output")
	}
	for _, raw := range r.Output {
		if err := a.item(raw); err != nil {
			return err
		}
	}
	return a.close(r)
}

// Chunk reads one event of a stream and returns its deltas.
func (a *responseReader) Chunk(raw []byte) ([]model.Event, error) {
	var ev struct {
		Type     string          `json:"type"`
		Delta    json.RawMessage `json:"delta"`
		Item     json.RawMessage `json:"item"`
		Response responseObject  `json:"response"`
	}
	if err := json.Unmarshal(raw, &ev); err != nil {
		return nil, wire.Shape(err)
	}
	var delta string
	switch ev.Type {
	case "response.output_text.delta", "response.refusal.delta":
		if err := json.Unmarshal(ev.Delta, &delta); err != nil {
			return nil, wire.Shape(err)
		}
		a.streamed = true
		if ev.Type == "response.refusal.delta" {
			a.finish = "refusal"
		}
		return a.draft.AppendText(delta, "")
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		if err := json.Unmarshal(ev.Delta, &delta); err != nil {
			return nil, wire.Shape(err)
		}
		return a.draft.AppendText("", delta)
	case "response.output_item.done":
		return nil, a.item(ev.Item)
	case "response.completed", "response.incomplete", "response.failed":
		a.done = true
		return nil, a.close(ev.Response)
	case "error", "": // an error, also without the form of an event
		if f, ok := wire.ParseAPIError(raw); ok {
			if f.Type == "error" {
				f.Type = "server_error"
			}
			return nil, &wire.StreamError{API: f}
		}
	}
	return nil, nil
}

// item adds a complete item of the output.
func (a *responseReader) item(raw json.RawMessage) error {
	var it struct {
		Type      string `json:"type"`
		CallID    string `json:"call_id"`
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
		Result    string `json:"result"` // an image that a tool of OpenAI made
		Content   []struct {
			Text    string `json:"text"`
			Refusal string `json:"refusal"`
		} `json:"content"`
	}
	if err := json.Unmarshal(raw, &it); err != nil {
		return wire.Shape(err)
	}
	switch it.Type {
	case "reasoning":
		a.thoughts = append(a.thoughts, raw)
	case "function_call":
		id := a.draft.Call(it.CallID, it.Name, it.Arguments)
		if len(a.thoughts) > 0 && a.protocol.reasons() {
			a.protocol.thoughts.Put(id, a.thoughts)
		}
		a.thoughts = nil
	case "image_generation_call":
		if it.Result != "" {
			return a.draft.AppendBase64("", it.Result)
		}
	case "message":
		for _, c := range it.Content {
			if c.Refusal != "" {
				a.finish = "refusal"
			}
			if a.streamed {
				continue
			}
			if _, err := a.draft.AppendText(c.Text+c.Refusal, ""); err != nil {
				return err
			}
		}
	}
	return nil
}

// close reads what a response has in addition to its output.
func (a *responseReader) close(r responseObject) error {
	if f, ok := wire.ReadAPIError(r.Error); ok {
		return &wire.StreamError{API: f}
	}
	if u := r.Usage; u != nil {
		a.usage = model.Usage{Input: int(u.Input), Output: int(u.Output), Cached: int(u.Details.Cached)}
	}
	if r.Incomplete != nil && r.Status == "incomplete" {
		a.finish = r.Incomplete.Reason
	}
	return nil
}

// Response returns the complete answer.
func (a *responseReader) Response() (*model.Response, error) {
	resp := &model.Response{Message: a.draft.Message(), Usage: a.usage}
	resp.Finish, resp.Reason = wire.Finish(a.finish, a.draft.Calls())
	return resp, nil
}
