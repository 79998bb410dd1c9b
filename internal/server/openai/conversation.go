package openai

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/server/schema"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/steps"
)

// conversation is what a client has sent as messages.
type conversation struct {
	instructions []string       // of the caller: the system messages before all others
	earlier      []chat.Message // before the newest message
	newest       *message       // of the user; nil if the request continues a run
	prefix       string         // the beginning of the answer: the text of a last message of the assistant
	results      []*message     // the results of tools that end the request: they continue a run
	calls        []string       // ids of the calls of the last message of the assistant
}

// newConversation sorts the messages of a request, which list names. open reports that
// calls may precede what the request has, because the server has the conversation. The
// error is a *problem.Problem.
func newConversation(list string, messages []*message, open bool) (*conversation, error) {
	c := &conversation{}
	for len(messages) > 0 && messages[0].isInstruction() {
		c.instructions = append(c.instructions, messages[0].Text())
		messages = messages[1:]
	}
	if len(messages) == 0 {
		return nil, bad(list, "invalid_value", "there is no message of the user")
	}
	if err := checkResults(messages, open); err != nil {
		return nil, err
	}
	rest := messages
	for len(rest) > 0 && rest[len(rest)-1].Role == chat.Tool {
		rest = rest[:len(rest)-1]
	}
	c.results = messages[len(rest):]
	if end := len(rest) - 1; len(c.results) == 0 && end > 0 && rest[end].Role == chat.Assistant && !rest[end].HasCalls() {
		c.prefix, rest, messages = rest[end].Text(), rest[:end], messages[:end]
	}
	last := messages[len(messages)-1]
	if len(c.results) == 0 {
		if last.Role != chat.User {
			return nil, bad(last.pointer+"/role", "invalid_value", "the last message must be of the user, or the result of a tool")
		}
		if len(last.Blocks) == 0 {
			return nil, bad(last.pointer+"/content", "invalid_value", "the message has no content")
		}
		c.newest, rest = last, rest[:len(rest)-1]
	}
	for _, m := range rest {
		if len(m.Blocks) > 0 && !m.approval && m.approved == nil {
			c.earlier = append(c.earlier, earlierMessage(m))
		}
	}
	c.readCalls(rest)
	return c, nil
}

// earlierMessage returns a message of the conversation as memories store it.
func earlierMessage(m *message) chat.Message {
	if m.Role == chat.Developer {
		m.Role = chat.System
	}
	return m.Message
}

// readCalls sets the calls that precede the end of the conversation.
func (c *conversation) readCalls(rest []*message) {
	for _, m := range slices.Backward(rest) {
		switch m.Role {
		case chat.Tool:
			continue
		case chat.Assistant:
			for _, call := range m.Calls() {
				c.calls = append(c.calls, call.ID)
			}
		}
		return
	}
}

// checkResults checks that each call has its result and each result its call, as
// providers of models require.
func checkResults(messages []*message, open bool) error {
	missing := map[string]bool{}
	seen := open
	for _, m := range messages {
		switch {
		case m.Role == chat.Tool && missing[m.ToolCallID]:
			delete(missing, m.ToolCallID)
		case m.Role == chat.Tool && !seen:
			return bad(m.pointer+"/tool_call_id", "unknown_tool_call", "no message before has a call with the id %q", m.ToolCallID)
		case m.Role == chat.Tool:
		case len(missing) > 0:
			return bad(m.pointer, "missing_tool_result", "messages with results must follow the calls %s", names(missing))
		default:
			seen = false
			for _, call := range m.Calls() {
				missing[call.ID] = true
			}
		}
	}
	if len(missing) > 0 {
		return bad(messages[len(messages)-1].pointer, "missing_tool_result", "messages with results must follow the calls %s", names(missing))
	}
	return nil
}

func names(set map[string]bool) string {
	list := make([]string, 0, len(set))
	for name := range set {
		list = append(list, name)
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// callPrefix begins the ids of calls, in place of that of runs.
const (
	callPrefix = "call_"
	runPrefix  = "run_"
)

// callID returns the id under which a client knows a request of a run: it names both, so
// that any process finds them.
func callID(run, request string) string {
	return callPrefix + strings.TrimPrefix(run, runPrefix) + "_" + request
}

// parseCallID returns the run and the request of an id; ok is false for any other id.
func parseCallID(id string) (run, request string, ok bool) {
	rest, ok := strings.CutPrefix(id, callPrefix)
	if !ok {
		return "", "", false
	}
	run, request, ok = strings.Cut(rest, "_")
	return runPrefix + run, request, ok && run != "" && request != ""
}

// chatInputs returns the values of the row: the message, and the inputs that the client
// sends as inputs or metadata.
func chatInputs(flow *schema.Flow, p params, metadata map[string]string) (map[string]json.RawMessage, error) {
	given := map[string]json.RawMessage{}
	for _, v := range flow.Inputs {
		text, ok := metadata[v.ID]
		if !ok || v == flow.Message {
			continue
		}
		raw := json.RawMessage(text)
		if v.Type.Is("text") || !json.Valid(raw) {
			raw, _ = json.Marshal(text) // a text always encodes
		}
		given[v.ID] = raw
	}
	var inputs map[string]json.RawMessage
	if err := p.decode("inputs", &inputs); err != nil {
		return nil, err
	}
	for name, raw := range inputs {
		if !slices.ContainsFunc(flow.Inputs, func(v *spec.Variable) bool { return v.ID == name && v != flow.Message }) {
			return nil, bad("/inputs/"+name, "unknown_parameter", "flow %s has no such input in addition to its message", flow.ID())
		}
		given[name] = raw
	}
	return given, nil
}

// parseMetadata returns the parameter metadata.
func parseMetadata(p params) (map[string]string, error) {
	var metadata map[string]string
	err := p.decode("metadata", &metadata)
	return metadata, err
}

// asked is what a request asks of the steps that write the answer.
type asked steps.Instructions

// anyObject is the schema of the format json_object.
const anyObject = `{"type":"object"}`

// readForm reads the form of the answer: that of chat completions has its schema in json_schema,
// that of responses beside its type. name is that of the parameter. The error is a *problem.Problem.
func (a *asked) readForm(name string, raw json.RawMessage) error {
	type form struct {
		Type   string          `json:"type"`
		Schema json.RawMessage `json:"schema"`
		Nested *struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"json_schema"`
	}
	var f form
	if len(raw) == 0 {
		return nil
	}
	if err := decodeAt("/"+name, raw, &f); err != nil {
		return err
	}
	if f.Nested != nil {
		f.Schema = f.Nested.Schema
	}
	switch f.Type {
	case "", "text":
		return nil
	case "json_object":
		f.Schema = json.RawMessage(anyObject)
	case "json_schema":
		if len(f.Schema) == 0 || f.Schema[0] != '{' {
			return bad("/"+name, "invalid_value", "the JSON schema of the answer is missing")
		}
	default:
		return bad("/"+name+"/type", "unsupported_value", "unknown form %q: expected text, json_schema or json_object", f.Type)
	}
	a.Schema = f.Schema
	return nil
}

// maxStops is the largest number of texts that end an answer, as in OpenAI's API.
const maxStops = 4

// readStop reads the texts that end the answer. The error is a *problem.Problem.
func (a *asked) readStop(p params) error {
	var one string
	if p.has("stop") && json.Unmarshal(p["stop"], &one) == nil {
		a.Stop = []string{one}
	} else if err := p.decode("stop", &a.Stop); err != nil {
		return err
	}
	a.Stop = slices.DeleteFunc(a.Stop, func(text string) bool { return text == "" })
	if len(a.Stop) > maxStops {
		return bad("/stop", "invalid_value", "there are %d texts; at most %d are allowed", len(a.Stop), maxStops)
	}
	return nil
}
