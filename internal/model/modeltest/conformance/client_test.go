package conformance_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/model/modeltest/conformance"
	"github.com/qtype-dev/qtype/internal/testkit"
)

type object = map[string]any

// rawClient is a client without a library: it sends back what it got, so that it fulfils all rules.
type rawClient struct {
	t        testing.TB
	server   *conformance.Running
	scenario string
	name     string // of the server
	wire     string
	model    string
	header   http.Header
	body     object // the request without the conversation
	system   string
	tools    bool
	list     []any // the conversation
	// change alters what is sent back of an answer, if not nil.
	change func(answer []any) []any
	forget bool // declares tools in the first request only
}

// field is where a wire has the conversation.
func (p *rawClient) field() string {
	return map[string]string{"chat": "messages", "responses": "input", "messages": "messages", "gemini": "contents", "converse": "messages", "ollama": "messages"}[p.wire]
}

// say adds a message of the user.
func (p *rawClient) say(text string) {
	switch p.wire {
	case "gemini":
		p.list = append(p.list, object{"role": "user", "parts": []any{object{"text": text}}})
	case "converse":
		p.list = append(p.list, object{"role": "user", "content": []any{object{"text": text}}})
	default:
		p.list = append(p.list, object{"role": "user", "content": text})
	}
}

// path is the address of a request.
func (p *rawClient) path() string {
	switch p.wire {
	case "chat":
		return "/v1/chat/completions"
	case "responses":
		return "/v1/responses"
	case "messages":
		if p.name == "vertex" {
			return "/v1/projects/p/locations/global/publishers/anthropic/models/" + p.model + ":rawPredict"
		}
		return "/v1/messages"
	case "gemini":
		return "/v1beta/models/" + p.model + ":generateContent"
	case "converse":
		return "/model/" + p.model + "/converse"
	}
	return "/api/chat"
}

const orderSchema = `{"type":"object","properties":{"number":{"type":"string"}},"required":["number"],"additionalProperties":false}`

// request returns the body of the next request.
func (p *rawClient) request() object {
	body := maps.Clone(p.body)
	if body == nil {
		body = object{}
	}
	list := p.list
	schema := json.RawMessage(orderSchema)
	function := object{"name": "find_order", "description": "Finds an order.", "parameters": schema}
	var tools any
	switch p.wire {
	case "chat", "ollama":
		body["model"], tools = p.model, []any{object{"type": "function", "function": function}}
		if p.system != "" {
			list = append([]any{object{"role": "system", "content": p.system}}, list...)
		}
		if p.wire == "ollama" {
			body["stream"] = false
		}
	case "responses":
		body["model"], tools, body["store"] = p.model, []any{object{"type": "function", "name": "find_order", "parameters": schema}}, false
		if p.system != "" {
			body["instructions"] = p.system
		}
	case "messages":
		body["model"], tools = p.model, []any{object{"name": "find_order", "input_schema": schema}}
		if _, set := body["max_tokens"]; !set {
			body["max_tokens"] = 64000
		}
		if p.system != "" {
			body["system"] = p.system
		}
		if p.name == "vertex" {
			body["anthropic_version"] = "vertex-2023-10-16"
		}
	case "gemini":
		tools = []any{object{"functionDeclarations": []any{function}}}
		if p.system != "" {
			body["systemInstruction"] = object{"parts": []any{object{"text": p.system}}}
		}
	case "converse":
		if p.system != "" {
			body["system"] = []any{object{"text": p.system}}
		}
		if p.tools {
			body["toolConfig"] = object{"tools": []any{object{"toolSpec": object{"name": "find_order", "inputSchema": object{"json": schema}}}}}
		}
	}
	if p.tools && tools != nil {
		body["tools"] = tools
	}
	body[p.field()] = list
	return body
}

// post sends a request.
func (p *rawClient) post(body object) (status int, answer object) {
	p.t.Helper()
	raw, err := json.Marshal(body)
	testkit.Must(p.t, err)
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, p.server.URL+"/"+p.scenario+"/"+p.name+p.path(), bytes.NewReader(raw))
	testkit.Must(p.t, err)
	req.Header.Set("anthropic-version", "2023-06-01")
	maps.Copy(req.Header, p.header)
	resp, err := http.DefaultClient.Do(req)
	testkit.Must(p.t, err)
	defer func() { _ = resp.Body.Close() }()
	got, err := io.ReadAll(resp.Body)
	testkit.Must(p.t, err)
	if err := json.Unmarshal(got, &answer); err != nil {
		p.t.Fatalf("%d: %q is not JSON", resp.StatusCode, got)
	}
	return resp.StatusCode, answer
}

// call sends the next request and adds the answer, and the results of its calls, to the conversation. It reports
// whether there were calls.
func (p *rawClient) call() (calls bool, status int, answer object) {
	p.t.Helper()
	status, answer = p.post(p.request())
	if status != http.StatusOK {
		return false, status, answer
	}
	p.tools = p.tools && !p.forget
	return p.take(answer), status, answer
}

// turn sends a message of the user, and requests until there is an answer.
func (p *rawClient) turn(text string) (status int, answer object) {
	p.t.Helper()
	p.say(text)
	for range 9 {
		calls, status, answer := p.call()
		if !calls {
			return status, answer
		}
	}
	p.t.Fatal("the model calls tools without an end")
	return 0, nil
}

// take adds an answer and its results.
func (p *rawClient) take(answer object) (calls bool) {
	changed := func(list []any) []any {
		if p.change == nil {
			return list
		}
		raw, err := json.Marshal(list)
		testkit.Must(p.t, err)
		var copied []any
		testkit.Must(p.t, json.Unmarshal(raw, &copied))
		return p.change(copied)
	}
	var results []any
	result := func(v any) { results = append(results, v) }
	switch p.wire {
	case "chat", "ollama":
		m := answer["message"]
		if p.wire == "chat" {
			m = answer["choices"].([]any)[0].(object)["message"]
		}
		p.list = append(p.list, changed([]any{m})...)
		list, _ := m.(object)["tool_calls"].([]any)
		for _, c := range list {
			result(object{"role": "tool", "tool_call_id": c.(object)["id"], "content": "shipped"})
		}
		p.list = append(p.list, results...)
	case "responses":
		output := answer["output"].([]any)
		p.list = append(p.list, changed(output)...)
		for _, c := range output {
			if c := c.(object); c["type"] == "function_call" {
				result(object{"type": "function_call_output", "call_id": c["call_id"], "output": "shipped"})
			}
		}
		p.list = append(p.list, results...)
	case "messages":
		content := answer["content"].([]any)
		for _, c := range content {
			if c := c.(object); c["type"] == "tool_use" {
				result(object{"type": "tool_result", "tool_use_id": c["id"], "content": "shipped"})
			}
		}
		p.both("content", "assistant", changed(content), results)
	case "gemini":
		parts := answer["candidates"].([]any)[0].(object)["content"].(object)["parts"].([]any)
		for _, c := range parts {
			if f, ok := c.(object)["functionCall"].(object); ok {
				result(object{"functionResponse": object{"id": f["id"], "name": f["name"], "response": object{"result": "shipped"}}})
			}
		}
		p.both("parts", "model", changed(parts), results)
	case "converse":
		content := answer["output"].(object)["message"].(object)["content"].([]any)
		for _, c := range content {
			if u, ok := c.(object)["toolUse"].(object); ok {
				result(object{"toolResult": object{"toolUseId": u["toolUseId"], "content": []any{object{"text": "shipped"}}}})
			}
		}
		p.both("content", "assistant", changed(content), results)
	}
	return len(results) > 0
}

// both adds a message with the parts of an answer, and one with results.
func (p *rawClient) both(field, role string, parts, results []any) {
	if len(parts) > 0 {
		p.list = append(p.list, object{"role": role, field: parts})
	}
	if len(results) > 0 {
		p.list = append(p.list, object{"role": "user", field: results})
	}
}

// message returns the message of an error.
func message(answer object) string {
	switch e := answer["error"].(type) {
	case object:
		return fmt.Sprint(e["message"])
	case string:
		return e
	}
	return fmt.Sprint(answer["message"])
}

// violations returns what the server has found, as "rule: text".
func violations(s *conformance.Running) (list []string) {
	for _, v := range s.Verdicts() {
		for _, f := range v.Violations {
			list = append(list, fmt.Sprintf("%s (%s): %s", f.Rule, f.At, f.Text))
		}
	}
	return list
}

// kinds are servers with a model each, for all wires.
var kinds = []rawClient{
	{name: "openai", wire: "responses", model: "gpt-6-sol"},
	{name: "azure", wire: "responses", model: "gpt-5.5"},
	{name: "anthropic", wire: "messages", model: "claude-opus-5-5"},
	{name: "anthropic", wire: "messages", model: "claude-sonnet-4-6"}, // does not think
	{name: "anthropic", wire: "messages", model: "claude-opus-4-6", body: object{"thinking": object{"type": "adaptive"}}},
	{name: "vertex", wire: "messages", model: "claude-sonnet-5-5"},
	{name: "google", wire: "gemini", model: "gemini-4-argon"},
	{name: "vertex", wire: "gemini", model: "gemini-3.8-flash"},
	{name: "bedrock", wire: "converse", model: "us.anthropic.claude-opus-5"},
	{name: "openai", wire: "chat", model: "gpt-4.1"},
	{name: "mistral", wire: "chat", model: "mistral-large-4", body: object{"reasoning_effort": "high"}},
	{name: "deepseek", wire: "chat", model: "deepseek-v4-pro"},
	{name: "kimi", wire: "chat", model: "kimi-k3"},
	{name: "glm", wire: "chat", model: "glm-5.2", body: object{"thinking": object{"type": "enabled", "clear_thinking": false}}},
	{name: "minimax", wire: "chat", model: "MiniMax-M3"},
	{name: "minimax-split", wire: "chat", model: "MiniMax-M3"},
	{name: "qwen", wire: "chat", model: "qwen-plus", body: object{"enable_thinking": true}},
	{name: "xai", wire: "chat", model: "grok-4.6"},
	{name: "openrouter", wire: "chat", model: "anthropic/claude-opus-5-5"},
	{name: "groq", wire: "chat", model: "openai/gpt-oss-120b"},
	{name: "vllm", wire: "chat", model: "qwen3-32b"},
	{name: "google", wire: "chat", model: "gemini-4-argon"},
	{name: "ollama", wire: "ollama", model: "gpt-oss"},
}

// TestServer_Faithful: a client that sends everything back breaks no rule, in any scenario, at any server.
func TestServer_Faithful(t *testing.T) {
	for _, kind := range kinds {
		for _, scenario := range conformance.Scenarios() {
			t.Run(strings.Join([]string{kind.name, kind.wire, scenario.Name}, "/"), func(t *testing.T) {
				p := kind
				p.t, p.server, p.scenario, p.tools, p.system = t, conformance.New(t), scenario.Name, true, "Be brief."
				for _, text := range []string{"Where are order 7 and 8?", "Thanks. And order 9?"} {
					if status, answer := p.turn(text); status != http.StatusOK {
						t.Fatalf("%d: %s", status, message(answer))
					}
				}
				for _, f := range violations(p.server) {
					t.Error(f)
				}
			})
		}
	}
}
