package ollama_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/model/ollama"
	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/model/modeltest"
	"github.com/qtype-dev/qtype/spec/chat"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type object = map[string]any

func open(t modeltest.Target) (model.Chat, error) {
	return ollama.New(ollama.Config{Config: t.Config()})
}

func line(message, more object) string {
	o := object{"model": "x", "created_at": "2026-02-03T04:05:06Z", "done": false}
	if message != nil {
		message["role"] = "assistant"
		o["message"] = message
	}
	for k, v := range more {
		o[k] = v
	}
	return modeltest.JSON(o) + "\n"
}

func calls(a modeltest.Answer) []object {
	var list []object
	for _, c := range a.Calls { // without ids, as in older versions
		list = append(list, object{"function": object{"name": c.Name, "arguments": wire.Arguments(c.Arguments)}})
	}
	return list
}

func done(a modeltest.Answer) object {
	reason := "stop"
	if a.Length {
		reason = "length"
	}
	return object{"done": true, "done_reason": reason, "prompt_eval_count": a.Input, "eval_count": a.Output, "total_duration": 5}
}

func whole(a modeltest.Answer) string {
	return line(object{"content": strings.Join(a.Chunks, ""), "tool_calls": calls(a)}, done(a))
}

func stream(a modeltest.Answer) []string {
	var records []string
	if a.Reasoning != "" {
		records = append(records, line(object{"content": "", "thinking": a.Reasoning}, nil))
	}
	for _, p := range a.Chunks {
		records = append(records, line(object{"content": p}, nil))
	}
	for _, c := range calls(a) {
		records = append(records, line(object{"content": "", "tool_calls": []object{c}}, nil))
	}
	return append(records, line(object{"content": ""}, done(a)))
}

func heard(t testing.TB, r modeltest.Request) modeltest.Conversation {
	if r.Path != "/api/chat" {
		t.Errorf("called %s", r.Path)
	}
	options, _ := r.Body["options"].(object)
	h := modeltest.Conversation{Key: strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), Temperature: options["temperature"], MaxTokens: options["num_predict"]}
	h.Stream = r.Body["stream"].(bool) // without the key Ollama streams
	h.ReadBody(r.Body)
	return h
}

func TestContract(t *testing.T) {
	modeltest.Run(t, modeltest.Wire{
		Open: open, Whole: whole, Stream: stream, Closing: 1, Kind: "application/x-ndjson", Parse: heard, Reasoning: true,
		ErrorBody:   func(_ int, message string) string { return modeltest.JSON(object{"error": message}) },
		ErrorRecord: modeltest.JSON(object{"error": "it broke"}) + "\n",
	})
}

// Parameters are sent where Ollama expects them, and the declared context window as
// num_ctx: without it Ollama uses 4,096 tokens and truncates the rest.
func TestRequest_Options(t *testing.T) {
	s := modeltest.Serve(t, modeltest.Respond(200, "application/json", whole(modeltest.Answer{Chunks: []string{"Yes."}})))
	target := modeltest.Target{Info: model.Info{ID: "m", Name: "llama3.2"}, URL: s.URL, HTTP: s.Client(), Params: map[string]any{
		"top_p": 0.5, "keep_alive": "5m", "think": false, "options": map[string]any{"seed": 7}}}
	cfg := ollama.Config{Config: target.Config()}
	cfg.ContextWindow = 32768
	m, err := ollama.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	picture := chat.Message{Role: chat.User, Blocks: []chat.Block{{Type: "text", Text: "What is it?"}, {Type: "image", Data: []byte("PNG")}}}
	req := model.Request{Messages: []chat.Message{picture}, Schema: &model.Schema{Name: "thing", JSON: []byte(`{"type":"object"}`)}}
	if _, err := model.Call(t.Context(), m, req, nil); err != nil {
		t.Fatal(err)
	}
	want := object{"model": "llama3.2", "stream": false, "keep_alive": "5m", "think": false, "format": object{"type": "object"},
		"options":  object{"num_ctx": 32768.0, "top_p": 0.5, "seed": 7.0},
		"messages": []any{object{"role": "user", "content": "What is it?", "images": []any{"UE5H"}}}}
	if d := cmp.Diff(want, s.Requests()[0].Body); d != "" {
		t.Error(d)
	}
	req.Messages[0].Blocks[1] = chat.Block{Type: "image", Text: "https://a.example/b.png"}
	if _, err := model.Call(t.Context(), m, req, nil); err == nil || !strings.Contains(err.Error(), "an image must be bytes, not a URL") {
		t.Errorf("got %v", err)
	}
}

func TestRequest_ToolImages(t *testing.T) {
	s := modeltest.Serve(t, modeltest.Respond(200, "application/json", whole(modeltest.Answer{Chunks: []string{"Yes."}})))
	m, err := open(modeltest.Target{Info: model.Info{ID: "m", Name: "llava"}, URL: s.URL, HTTP: s.Client()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := model.Call(t.Context(), m, model.Request{Messages: modeltest.ToolImages()}, nil); err != nil {
		t.Fatal(err)
	}
	want := []any{
		object{"role": "tool", "tool_name": "plot", "tool_call_id": "call00001", "content": "a plot\n[a sound of type audio/ogg, which cannot be passed to this model]", "images": []any{"iVBORw0KGgo="}},
		object{"role": "tool", "tool_name": "now", "tool_call_id": "call00002", "content": "noon"},
	}
	if d := cmp.Diff(want, s.Requests()[0].Body["messages"].([]any)[2:]); d != "" {
		t.Error(d)
	}
}

// Thinking goes back with the calls of a turn, until it ends.
func TestReturn_Thinking(t *testing.T) {
	whole := `{"message":{"role":"assistant","content":"","thinking":"Hm.","tool_calls":[{"id":"c1","function":{"name":"find","arguments":{}}}]},"done":true,"done_reason":"stop"}`
	pieces := `{"message":{"role":"assistant","content":"","thinking":"H"},"done":false}` + "\n" + `{"message":{"role":"assistant","content":"","thinking":"m."},"done":false}` + "\n" +
		`{"message":{"role":"assistant","content":"","tool_calls":[{"id":"c1","function":{"name":"find","arguments":{}}}]},"done":false}` + "\n" + `{"message":{"role":"assistant","content":""},"done":true,"done_reason":"stop"}` + "\n"
	for _, stream := range []bool{false, true} {
		answer := map[bool]string{false: whole, true: pieces}[stream]
		s := modeltest.Serve(t, modeltest.Respond(200, "application/x-ndjson", answer), modeltest.Respond(200, "application/x-ndjson", whole))
		m, err := open(modeltest.Target{Info: model.Info{ID: "m", Name: "gpt-oss"}, URL: s.URL, HTTP: s.Client()})
		testkit.Must(t, err)
		messages := []chat.Message{chat.Text(chat.User, "Where?")}
		for i := range 3 {
			got, err := model.Call(t.Context(), m, model.Request{Stream: stream && i == 0, Messages: messages}, nil)
			testkit.Must(t, err)
			if i == 0 {
				messages = append(messages, got.Message, chat.Message{Role: chat.Tool, ToolCallID: "c1", Blocks: []chat.Block{{Type: "text", Text: "shipped"}}})
			}
			if i == 1 {
				messages = append(messages, chat.Text(chat.Assistant, "Here."), chat.Text(chat.User, "And now?"))
			}
		}
		for request, want := range map[int]any{1: "Hm.", 2: nil} {
			if got := s.Requests()[request].Body["messages"].([]any)[1].(object)["thinking"]; got != want {
				t.Errorf("stream %v, request %d: thinking is %v", stream, request, got)
			}
		}
	}
}

func TestRequest_HostedTool(t *testing.T) {
	s := modeltest.Serve(t)
	m, err := open(modeltest.Target{Info: model.Info{ID: "m", Name: "gpt-oss"}, URL: s.URL, HTTP: s.Client()})
	testkit.Must(t, err)
	_, err = model.Call(t.Context(), m, model.Request{Messages: []chat.Message{chat.Text(chat.User, "x")}, Tools: []model.Tool{{Name: "search", Hosted: "web_search"}}}, nil)
	if err == nil || !strings.Contains(err.Error(), "tool search: Ollama has no hosted tool web_search") {
		t.Errorf("got %v", err)
	}
}
