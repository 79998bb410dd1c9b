package openai

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/internal/modelparams"
	"github.com/qtype-dev/qtype/model"
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
	return wire.Format{Answers: "response", Example: example, Params: modelparams.Responses, Forbids: true}
}

// responses is the Responses API. It is immutable.
type responses struct {
	*wire.Server
	target
}

// Request encodes a request.
func (p *responses) Request(req model.Request) (wire.Call, error) {
	body, err := p.body(req)
	answer := &responseReader{texts: textProperties(req.Tools), servers: serverTools(req.Tools)}
	return wire.Call{URL: p.endpoint, Header: p.header, Body: body, Answer: answer}, err
}

// Answer returns a reader for the response to a request without tools.
func (p *responses) Answer() wire.ResponseReader { return &responseReader{} }

// body encodes a request.
func (p *responses) body(req model.Request) (map[string]any, error) {
	fields := p.params(req.Schema)
	system, rest := wire.Split(req.Messages)
	in := inputs{calls: map[string]*callAttributes{}}
	for i := range rest {
		if err := in.add(&rest[i]); err != nil {
			return nil, err
		}
	}
	input := in.compacted()
	switch {
	case strings.TrimSpace(system) == "":
	case marksSystem(p.Server, system) && !in.isCompacted():
		content := []cachedText{{"input_text", system, explicitCache()}}
		input = slices.Insert(input, 0, encode(cachedMessage{Type: "message", Role: "developer", Content: content}))
	default:
		fields["instructions"] = system
	}
	fields["model"], fields["input"] = p.model, input
	tools, err := responseTools(req.Tools)
	if err != nil {
		return nil, err
	}
	if len(tools) > 0 {
		fields["tools"] = tools
		if req.NoCalls {
			fields["tool_choice"] = "none"
		}
	}
	if _, set := fields["tool_choice"]; req.MustCall && !set {
		fields["tool_choice"] = "required"
	}
	if req.Stream {
		fields["stream"] = true
	}
	return fields, nil
}

// cachedMessage is a message whose end is a breakpoint of the cache.
type cachedMessage struct {
	Type    string       `json:"type"`
	Role    string       `json:"role"`
	Content []cachedText `json:"content"`
}

// params returns the parameters of the document. Names of chat completions with the same meaning
// become the names of this API, unless the document has these too; objects are merged.
func (p *responses) params(schema *model.Schema) map[string]any {
	given := maps.Clone(p.Encoded)
	take := func(names ...string) (first json.RawMessage) {
		for _, name := range names {
			if raw := given[name]; isSet(raw) && first == nil {
				first = raw
			}
			delete(given, name)
		}
		return first
	}
	fields := map[string]any{"store": false}
	if limit := take("max_output_tokens", "max_completion_tokens", "max_tokens"); limit != nil {
		fields["max_output_tokens"] = limit
	}
	if reasoning := merged(take("reasoning"), object{"effort": take("reasoning_effort")}); reasoning != nil {
		fields["reasoning"] = reasoning
	}
	text := object{"verbosity": take("verbosity"), "format": flatFormat(take("response_format"))}
	if schema != nil && text["format"] == nil {
		text["format"] = flatFormat(encode(responseFormat(schema)))
	}
	if text := merged(take("text"), text); text != nil {
		fields["text"] = text
	}
	if choice := take("tool_choice"); choice != nil {
		fields["tool_choice"] = flatChoice(choice)
	}
	if include := included(take("include"), p.Info.Known); include != nil {
		fields["include"] = include
	}
	if p.NoCache && hasBreakpoints(p.Server) {
		fields["prompt_cache_options"] = explicitCache()
	}
	for name, raw := range given {
		fields[name] = raw
	}
	return fields
}

// merged returns an object of the document with more keys where it does not have them, nil for an
// empty one. A value that is not an object is left to the server.
func merged(raw json.RawMessage, more object) json.RawMessage {
	var all object
	if isSet(raw) && json.Unmarshal(raw, &all) != nil {
		return raw
	}
	if all == nil {
		all = object{}
	}
	for name, value := range more {
		if value != nil && !isSet(all[name]) {
			all[name] = value
		}
	}
	if len(all) == 0 {
		return nil
	}
	return encode(all)
}

// flatFormat returns a response_format without the level that this API does not have.
func flatFormat(raw json.RawMessage) json.RawMessage { return flat(raw, "json_schema") }

// flatChoice returns a tool_choice without the levels that this API does not have.
func flatChoice(raw json.RawMessage) json.RawMessage {
	return flat(flat(flat(raw, "function"), "custom"), "allowed_tools")
}

// flat moves the keys of the object under a key to the level of the key.
func flat(raw json.RawMessage, key string) json.RawMessage {
	var outer, inner object
	if json.Unmarshal(raw, &outer) != nil || json.Unmarshal(outer[key], &inner) != nil {
		return raw
	}
	delete(outer, key)
	maps.Copy(outer, inner)
	return encode(outer)
}

// encryptedReasoning is what requests include: the server does not store the reasoning.
const encryptedReasoning = "reasoning.encrypted_content"

// included returns what the document includes, and encryptedReasoning: models without reasoning
// refuse a request for it.
func included(raw json.RawMessage, known *catalogue.Model) json.RawMessage {
	if known != nil && known.Reasoning.Mode == catalogue.ReasonsNever {
		return raw
	}
	var list []json.RawMessage
	if isSet(raw) && json.Unmarshal(raw, &list) != nil {
		return raw // not a list: the server explains it
	}
	own := encode(encryptedReasoning)
	if !slices.ContainsFunc(list, func(r json.RawMessage) bool { return string(r) == string(own) }) {
		list = append(list, own)
	}
	return encode(list)
}

// responseTool is a function, or a tool that gets a text in a grammar.
type responseTool struct {
	Type        string           `json:"type"` // function or custom
	Name        string           `json:"name"`
	Description string           `json:"description,omitempty"`
	Parameters  json.RawMessage  `json:"parameters,omitempty"`
	Strict      *bool            `json:"strict,omitempty"` // of a function: the API binds them to their schemas by default
	Format      *responseGrammar `json:"format,omitempty"`
	Deferred    bool             `json:"defer_loading,omitempty"`
}

// responseGrammar is a grammar in the form of this API.
type responseGrammar struct {
	Type       string `json:"type"` // always grammar
	Syntax     string `json:"syntax"`
	Definition string `json:"definition"`
}

// hostedTool returns a tool that OpenAI runs, without settings; nil for an unknown kind.
func hostedTool(kind string) object {
	switch kind {
	case "web_search", "file_search", "image_generation", "mcp", "tool_search":
		return object{"type": encode(kind)}
	case "code_execution":
		return object{"type": encode("code_interpreter"), "container": json.RawMessage(`{"type":"auto"}`)}
	}
	return nil
}

// responseTools declares tools. Deferred ones need a search of tools, which is added if no tool is one.
func responseTools(tools []model.Tool) ([]json.RawMessage, error) {
	var list []json.RawMessage
	for _, t := range tools {
		if t.Hosted == "" {
			list = append(list, encode(newResponseTool(t)))
			continue
		}
		tool := hostedTool(t.Hosted)
		if tool == nil {
			return nil, fmt.Errorf("tool %s: the Responses API has no hosted tool %s", t.Name, t.Hosted)
		}
		if t.Deferred {
			tool["defer_loading"] = json.RawMessage("true")
		}
		list = append(list, merged(t.Settings, tool))
	}
	deferred := slices.ContainsFunc(tools, func(t model.Tool) bool { return t.Deferred })
	if deferred && !slices.ContainsFunc(tools, func(t model.Tool) bool { return t.Hosted == "tool_search" }) {
		list = append(list, encode(hostedTool("tool_search")))
	}
	return list, nil
}

func newResponseTool(t model.Tool) responseTool {
	r := responseTool{Type: "custom", Name: t.Name, Description: t.Description, Deferred: t.Deferred}
	if t.Grammar != nil {
		r.Format = &responseGrammar{"grammar", t.Grammar.Syntax, t.Grammar.Definition}
		return r
	}
	strict := t.Strict && isStrictSchema(t.Parameters)
	r.Type, r.Parameters, r.Strict = "function", t.Parameters, &strict
	return r
}

// OpenAI may ask for an approval before it calls a server of the Model Context Protocol. The request
// becomes a call of the hosted tool, and the result of the call is the decision.

// approvalRequest is an item of an output that asks for an approval.
type approvalRequest struct {
	ID        string `json:"id"`
	Server    string `json:"server_label"`
	Name      string `json:"name"` // of the server's tool
	Arguments string `json:"arguments"`
}

// serverTools returns the names of the hosted tools by the labels of their servers.
func serverTools(tools []model.Tool) map[string]string {
	names := map[string]string{}
	for _, t := range tools {
		var settings struct {
			Label string `json:"server_label"`
		}
		if t.Hosted == "mcp" && json.Unmarshal(t.Settings, &settings) == nil {
			names[settings.Label] = t.Name
		}
	}
	return names
}

// approval adds a request for an approval as a call of the hosted tool. The arguments are the name of
// the server's tool and its arguments.
func (a *responseReader) approval(raw json.RawMessage) error {
	var r approvalRequest
	if err := shape(json.Unmarshal(raw, &r)); err != nil {
		return err
	}
	name, ok := a.servers[r.Server]
	if !ok {
		return fmt.Errorf("an approval is requested for a call of %q, and the request has no tool with this server_label", r.Server)
	}
	arguments := json.RawMessage(r.Arguments)
	if !json.Valid(arguments) {
		arguments = encode(r.Arguments)
	}
	a.draft.Call(r.ID, name, string(encode(struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}{r.Name, arguments})))
	return a.draft.Attach(chat.CallType, chat.Item{Field: model.ApprovalRequest, JSON: string(raw)})
}

// decision encodes the result of a call that asks for an approval.
func decision(m *chat.Message) json.RawMessage {
	answer := object{"type": encode("mcp_approval_response"), "approval_request_id": encode(m.ToolCallID), "approve": encode(true)}
	if text := m.Text(); text != model.Approved {
		answer["approve"], answer["reason"] = encode(false), encode(text)
	}
	return encode(answer)
}
