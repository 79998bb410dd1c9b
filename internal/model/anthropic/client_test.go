package anthropic_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/model/anthropic"
	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/model/modeltest"
	"github.com/qtype-dev/qtype/spec/chat"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type object = map[string]any

func open(t modeltest.Target) (model.Chat, error) {
	return anthropic.New(anthropic.Config{Config: t.Config()})
}

func event(kind string, fields object) string {
	fields["type"] = kind
	return fmt.Sprintf("event: %s\ndata: %s\n\n", kind, modeltest.JSON(fields))
}

func whole(a modeltest.Answer) string {
	content := []object{{"type": "text", "text": strings.Join(a.Chunks, "")}}
	for _, c := range a.Calls {
		content = append(content, object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": wire.Arguments(c.Arguments)})
	}
	return modeltest.JSON(object{"id": "msg_1", "type": "message", "role": "assistant", "model": "x", "content": content, "stop_reason": a.Stop("max_tokens", "tool_use", "end_turn"), "stop_sequence": nil,
		"usage": object{"input_tokens": a.Input, "output_tokens": a.Output}})
}

func stream(a modeltest.Answer) []string {
	records := []string{
		event("message_start", object{"message": object{"id": "msg_1", "type": "message", "role": "assistant", "content": []any{}, "usage": object{"input_tokens": a.Input, "output_tokens": 1}}}),
		event("ping", object{}),
	}
	index := 0
	block := func(start object, deltas ...object) {
		records = append(records, event("content_block_start", object{"index": index, "content_block": start}))
		for _, d := range deltas {
			records = append(records, event("content_block_delta", object{"index": index, "delta": d}))
		}
		records = append(records, event("content_block_stop", object{"index": index}))
		index++
	}
	if a.Reasoning != "" {
		block(object{"type": "thinking", "thinking": ""}, object{"type": "thinking_delta", "thinking": a.Reasoning}, object{"type": "signature_delta", "signature": "c2ln"})
	}
	var deltas []object
	for _, p := range a.Chunks {
		deltas = append(deltas, object{"type": "text_delta", "text": p})
	}
	block(object{"type": "text", "text": ""}, deltas...)
	for _, c := range a.Calls {
		half := len(c.Arguments) / 2
		if c.Arguments == "{}" { // then no delta is sent
			block(object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": object{}}, object{"type": "input_json_delta", "partial_json": ""})
			continue
		}
		block(object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": object{}},
			object{"type": "input_json_delta", "partial_json": c.Arguments[:half]}, object{"type": "input_json_delta", "partial_json": c.Arguments[half:]})
	}
	return append(records, event("message_delta", object{"delta": object{"stop_reason": a.Stop("max_tokens", "tool_use", "end_turn")}, "usage": object{"output_tokens": a.Output}}), event("message_stop", object{}))
}

func heard(t testing.TB, r modeltest.Request) modeltest.Conversation {
	if r.Path != "/v1/messages" || r.Header.Get("Anthropic-Version") != "2023-06-01" {
		t.Errorf("called %s with %v", r.Path, r.Header)
	}
	h := modeltest.Conversation{Key: r.Header.Get("X-Api-Key"), Temperature: r.Body["temperature"], MaxTokens: r.Body["max_tokens"]}
	h.Model, _ = r.Body["model"].(string)
	switch system := r.Body["system"].(type) {
	case []any: // with a marker of the prompt cache
		h.System = system[0].(object)["text"].(string)
	case string:
		h.System = system
	}
	h.Stream, _ = r.Body["stream"].(bool)
	names, before := map[any]any{}, ""
	for _, turn := range r.Body["messages"].([]any) {
		role := turn.(object)["role"].(string)
		if role == before {
			t.Errorf("two turns of %s follow one another", role)
		}
		before = role
		for _, p := range turn.(object)["content"].([]any) {
			switch p := p.(object); p["type"] {
			case "text":
				h.Messages = append(h.Messages, fmt.Sprint(role, ": ", p["text"]))
			case "tool_use":
				names[p["id"]] = p["name"]
				h.Messages = append(h.Messages, fmt.Sprint(role, " calls ", p["name"], " ", modeltest.JSON(p["input"])))
			case "tool_result":
				h.Messages = append(h.Messages, fmt.Sprint("result of ", names[p["tool_use_id"]], ": ", p["content"]))
			}
		}
	}
	tools, _ := r.Body["tools"].([]any)
	for _, tool := range tools {
		var arguments []string
		for name := range tool.(object)["input_schema"].(object)["properties"].(object) {
			arguments = append(arguments, name)
		}
		h.Tools = append(h.Tools, fmt.Sprint(tool.(object)["name"], "(", strings.Join(arguments, ","), ")"))
	}
	return h
}

func TestContract(t *testing.T) {
	modeltest.Run(t, contract())
}

// Vertex AI has the name of the model in the path and the version in the body.
func TestVertex_Contract(t *testing.T) {
	wire := contract()
	wire.Open = func(to modeltest.Target) (model.Chat, error) {
		return anthropic.NewVertex(anthropic.Config{Config: to.Config(), Cache: "none"}, []string{"v1", "publishers", "anthropic", "models", "some-model"})
	}
	wire.Parse = func(t testing.TB, r modeltest.Request) modeltest.Conversation {
		method := map[bool]string{true: ":streamRawPredict", false: ":rawPredict"}[r.Body["stream"] == true]
		if r.Path != "/v1/publishers/anthropic/models/some-model"+method || r.Body["model"] != nil || r.Body["anthropic_version"] != "vertex-2023-10-16" {
			t.Errorf("called %s with %v", r.Path, r.Body)
		}
		r.Path, r.Body["model"] = "/v1/messages", "some-model"
		r.Header.Set("Anthropic-Version", "2023-06-01")
		h := heard(t, r)
		h.Key = strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		return h
	}
	modeltest.Run(t, wire)
}

// contract describes the wire format.
func contract() modeltest.Wire {
	return modeltest.Wire{
		Open: open, Whole: whole, Stream: stream, Closing: 2, Kind: "text/event-stream; charset=utf-8", Parse: heard, Reasoning: true,
		ErrorBody: func(_ int, message string) string {
			return modeltest.JSON(object{"type": "error", "error": object{"type": "some_error", "message": message}, "request_id": "req_1"})
		},
		ErrorRecord: event("error", object{"error": object{"type": "overloaded_error", "message": "it broke"}}),
	}
}

// sent returns what the server received of a conversation.
func sent(t *testing.T, c func(*anthropic.Config), messages ...chat.Message) modeltest.Request {
	t.Helper()
	s := modeltest.Serve(t, modeltest.Respond(200, "application/json", whole(modeltest.Answer{Chunks: []string{"Yes."}})))
	target := modeltest.Target{Info: model.Info{ID: "m", Name: "claude"}, URL: s.URL, Key: "k", HTTP: s.Client()}
	cfg := anthropic.Config{Config: target.Config()}
	if c != nil {
		c(&cfg)
	}
	m, err := anthropic.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := model.Call(t.Context(), m, model.Request{Messages: messages}, nil); err != nil {
		t.Fatal(err)
	}
	return s.Requests()[0]
}

// Requirements of this protocol that others do not have.
func TestRequest_MergesTurns(t *testing.T) {
	picture := chat.Message{Role: chat.User, Blocks: []chat.Block{
		{Type: "image", Data: []byte("\x89PNG\r\n\x1a\n")}, {Type: "image", Text: "https://a.example/b.png"}, {Type: "file", Data: []byte("%PDF"), MimeType: "application/pdf"}, {Type: "text", Text: " "}}}
	r := sent(t, func(c *anthropic.Config) { c.Cache = "none" }, chat.Text(chat.System, "One."), chat.Text(chat.Assistant, "I begin."), chat.Text(chat.User, "a"), chat.Text(chat.User, "b"), picture,
		chat.Message{Role: chat.Assistant}.With(chat.ToolCall{ID: "a:b/ü", Name: "f", Arguments: "no JSON"}),
		chat.Message{Role: chat.Tool, ToolCallID: "a:b/ü", Blocks: []chat.Block{{Type: "text", Text: "r"}}}, chat.Text(chat.Developer, "Two."))
	text := func(s string) object { return object{"type": "text", "text": s} }
	want := []any{
		object{"role": "user", "content": []any{text("(earlier messages are omitted)")}},
		object{"role": "assistant", "content": []any{text("I begin.")}},
		object{"role": "user", "content": []any{text("a"), text("b"),
			object{"type": "image", "source": object{"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}},
			object{"type": "image", "source": object{"type": "url", "url": "https://a.example/b.png"}},
			object{"type": "document", "source": object{"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="}}}},
		object{"role": "assistant", "content": []any{object{"type": "tool_use", "id": "a_b__", "name": "f", "input": object{"arguments": "no JSON"}}}},
		object{"role": "user", "content": []any{object{"type": "tool_result", "tool_use_id": "a_b__", "content": "r"}}},
	}
	if d := cmp.Diff(want, r.Body["messages"]); d != "" {
		t.Error(d)
	}
	if r.Body["system"] != "One.\n\nTwo." || r.Body["max_tokens"] != 4096.0 {
		t.Errorf("got %v", r.Body)
	}
}

// Images of the results of tools are parts of the results; other media are named.
func TestRequest_ToolImages(t *testing.T) {
	r := sent(t, func(c *anthropic.Config) { c.Cache = "none" }, append(modeltest.ToolImages(), chat.Message{Role: chat.User, Blocks: []chat.Block{{Type: "file", Data: []byte("Dear shop"), MimeType: "text/plain"}}})...)
	text := func(s string) object { return object{"type": "text", "text": s} }
	want := object{"role": "user", "content": []any{
		object{"type": "tool_result", "tool_use_id": "call00001", "content": []any{text("a plot"),
			object{"type": "image", "source": object{"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}},
			text("[a sound of type audio/ogg, which cannot be passed to this model]")}},
		object{"type": "tool_result", "tool_use_id": "call00002", "content": "noon"},
		object{"type": "document", "source": object{"type": "text", "media_type": "text/plain", "data": "Dear shop"}}}}
	if d := cmp.Diff(want, r.Body["messages"].([]any)[2]); d != "" {
		t.Error(d)
	}
}

func TestRequest_URLAndCredentials(t *testing.T) {
	r := sent(t, func(c *anthropic.Config) { c.Bearer = true; c.BaseURL += "/gateway/v1" })
	if r.Path != "/gateway/v1/messages" || r.Header.Get("Authorization") != "Bearer k" || r.Header.Get("X-Api-Key") != "" {
		t.Errorf("called %s with %v", r.Path, r.Header)
	}
}

// The counts are those of all iterations, by kind and by lifetime of the cache; a stream updates them.
func TestUsage(t *testing.T) {
	const counts = `"input_tokens":5,"cache_read_input_tokens":100,"cache_creation_input_tokens":20,"cache_creation":{"ephemeral_5m_input_tokens":15,"ephemeral_1h_input_tokens":5}`
	const end = `"output_tokens":3,"output_tokens_details":{"thinking_tokens":2},"service_tier":"standard","speed":"fast","inference_geo":"us","iterations":[{"type":"compaction","input_tokens":50,"output_tokens":4},{"type":"message","input_tokens":5,"output_tokens":3}]`
	want := model.Usage{Input: 175, Output: 7, Cached: 100, CacheWrite: 20, CacheWrites: catalogue.CacheWrites{Minutes5: 15, Hour1: 5}, Reasoning: 2, Tier: "fast", Region: "us"}
	for kind, body := range map[string]string{
		"application/json": `{"type":"message","content":[{"type":"text","text":"x"}],"stop_reason":"end_turn","usage":{` + counts + "," + end + `}}`,
		"text/event-stream": "data: {\"type\":\"message_start\",\"message\":{\"usage\":{" + counts + ",\"output_tokens\":1}}}\n\n" +
			"data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{" + end + "}}\n\ndata: {\"type\":\"message_stop\"}\n\n",
	} {
		s := modeltest.Serve(t, modeltest.Respond(200, kind, body))
		m, err := open(modeltest.Target{Info: model.Info{ID: "m"}, URL: s.URL, HTTP: s.Client()})
		if err != nil {
			t.Fatal(err)
		}
		got, err := model.Call(t.Context(), m, model.Request{Stream: kind != "application/json"}, nil)
		if err != nil || got.Usage.Requests == nil || len(*got.Usage.Requests) != 2 {
			t.Fatalf("%s: got %+v, %v", kind, got, err)
		}
		for _, one := range *got.Usage.Requests {
			if one.Tier != want.Tier || one.Region != want.Region {
				t.Errorf("%s: a request of %+v", kind, one)
			}
		}
		if got.Usage.Requests = nil; got.Usage != want {
			t.Errorf("%s: got %+v", kind, got)
		}
		if m.Info().MaxTokens != anthropic.DefaultMaxTokens {
			t.Errorf("Info().MaxTokens is %d", m.Info().MaxTokens)
		}
	}
}

func TestRequest_UnsupportedContent(t *testing.T) {
	m, err := open(modeltest.Target{Info: model.Info{ID: "m"}, URL: "http://127.0.0.1:9"})
	if err != nil {
		t.Fatal(err)
	}
	sound := chat.Message{Role: chat.User, Blocks: []chat.Block{{Type: "audio", Data: []byte("x"), MimeType: "audio/wav"}}}
	_, err = model.Call(t.Context(), m, model.Request{Messages: []chat.Message{sound}}, nil)
	if err == nil || !strings.Contains(err.Error(), "model m: invalid request: audio of type audio/wav cannot be sent to anthropic") {
		t.Errorf("got %v", err)
	}
}

// What later calls begin with is marked: the tools, the system message, and a conversation
// that goes on.
func TestRequest_PromptCache(t *testing.T) {
	s := modeltest.Serve(t, modeltest.Respond(200, "application/json", `{"type":"message","content":[{"type":"text","text":"x"}],"stop_reason":"end_turn"}`))
	m, err := open(modeltest.Target{Info: model.Info{ID: "m"}, URL: s.URL, HTTP: s.Client()})
	if err != nil {
		t.Fatal(err)
	}
	single := model.Request{Messages: []chat.Message{chat.Text(chat.System, "One."), chat.Text(chat.User, "a")}}
	tools := model.Request{Messages: []chat.Message{chat.Text(chat.User, "a")}, Tools: []model.Tool{{Name: "f"}, {Name: "g"}}}
	dialog := model.Request{Messages: []chat.Message{chat.Text(chat.User, "a"), chat.Text(chat.Assistant, "b"), chat.Text(chat.User, "c")}}
	const mark = `"cache_control":{"type":"ephemeral"}`
	for i, want := range []string{`"system":[{` + mark, `"name":"g"}`, `"text":"c","type":"text"}],"role":"user"}]`} {
		req := []model.Request{single, tools, dialog}[i]
		if _, err := model.Call(t.Context(), m, req, nil); err != nil {
			t.Fatal(err)
		}
		body := modeltest.JSON(s.Requests()[i].Body)
		if n := strings.Count(body, mark); n != []int{1, 2, 1}[i] {
			t.Errorf("%d marks in %s, for %s", n, body, want)
		}
	}
}
