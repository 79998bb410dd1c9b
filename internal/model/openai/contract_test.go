package openai_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/model/openai"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/model/modeltest"
	"github.com/qtype-dev/qtype/spec/chat"
)

type object = map[string]any

func contractConfig(t modeltest.Target) openai.Config {
	if strings.HasPrefix(t.URL, "http://127.") {
		t.URL += "/v1"
	}
	return t.Config()
}

func usageOf(a modeltest.Answer) object {
	return object{"prompt_tokens": a.Input, "completion_tokens": a.Output, "total_tokens": a.Input + a.Output}
}

func wholeAnswer(a modeltest.Answer) string {
	message := object{"role": "assistant", "content": strings.Join(a.Chunks, "")}
	var calls []object
	for _, c := range a.Calls {
		calls = append(calls, object{"id": c.ID, "type": "function", "function": object{"name": c.Name, "arguments": c.Arguments}})
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	return modeltest.JSON(object{"object": "chat.completion", "choices": []object{{"index": 0, "message": message, "finish_reason": a.Stop("length", "tool_calls", "stop")}}, "usage": usageOf(a)})
}

func streamedAnswer(a modeltest.Answer) []string {
	var records []string
	add := func(delta object, finish any) {
		records = append(records, "data: "+modeltest.JSON(object{"choices": []object{{"index": 0, "delta": delta, "finish_reason": finish}}})+"\n\n")
	}
	if a.Reasoning != "" {
		add(object{"reasoning_content": a.Reasoning}, nil)
	}
	for _, p := range a.Chunks {
		add(object{"content": p}, nil)
	}
	for i, c := range a.Calls {
		add(object{"tool_calls": []object{{"index": i, "id": c.ID, "type": "function", "function": object{"name": c.Name, "arguments": ""}}}}, nil)
	}
	for i, c := range a.Calls { // interleaved
		add(object{"tool_calls": []object{{"index": i, "function": object{"arguments": c.Arguments}}}}, nil)
	}
	add(object{}, a.Stop("length", "tool_calls", "stop"))
	return append(records, "data: "+modeltest.JSON(object{"choices": []any{}, "usage": usageOf(a)})+"\n\n", "data: [DONE]\n\n")
}

func heardBy(t testing.TB, r modeltest.Request) modeltest.Conversation {
	if r.Path != "/v1/chat/completions" {
		t.Errorf("called %s", r.Path)
	}
	h := modeltest.Conversation{Key: strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), Temperature: r.Body["temperature"], MaxTokens: r.Body["max_tokens"]}
	h.Stream, _ = r.Body["stream"].(bool)
	h.ReadBody(r.Body)
	return h
}

func TestContract(t *testing.T) {
	wire := modeltest.Wire{
		Open:  func(t modeltest.Target) (model.Chat, error) { return openai.New(contractConfig(t)) },
		Whole: wholeAnswer, Stream: streamedAnswer, Closing: 3, Kind: "text/event-stream", Parse: heardBy, Reasoning: true,
		ErrorBody: func(status int, message string) string {
			return modeltest.JSON(object{"error": object{"message": message, "type": "some_error", "param": nil, "code": status}})
		},
		ErrorRecord: "data: " + modeltest.JSON(object{"error": object{"message": "it broke", "type": "server_error"}}) + "\n\n",
	}
	t.Run("openai", func(t *testing.T) { modeltest.Run(t, wire) })
	wire.Open = func(t modeltest.Target) (model.Chat, error) { return openai.NewMistral(contractConfig(t)) }
	wire.ErrorBody = func(status int, message string) string { // Mistral's format
		return modeltest.JSON(object{"object": "error", "message": message, "type": "some_error", "param": nil, "code": fmt.Sprint(status, "0")})
	}
	t.Run("mistral", func(t *testing.T) { modeltest.Run(t, wire) })
}

// Mistral rejects participants' names, stream options, and roles and ids of other formats,
// so they are not sent.
func TestMistral_Request(t *testing.T) {
	s := modeltest.Serve(t, modeltest.Respond(200, "application/json", `{"choices":[{"message":{"content":"Once"},"finish_reason":"model_length"}]}`))
	m, err := openai.NewMistral(contractConfig(modeltest.Target{Info: model.Info{ID: "m"}, URL: s.URL, HTTP: s.Client()}))
	if err != nil {
		t.Fatal(err)
	}
	msg := chat.Text(chat.User, "x")
	msg.Name = "ada"
	req := model.Request{Stream: true, Messages: []chat.Message{chat.Text(chat.Developer, "d"), msg,
		chat.Message{Role: chat.Assistant}.With(chat.ToolCall{ID: "call_0123456789", Name: "f", Arguments: "{}"}, chat.ToolCall{ID: "aBc123XyZ", Name: "g", Arguments: "{}"}),
		{Role: chat.Tool, ToolCallID: "call_0123456789", Blocks: []chat.Block{{Type: "text", Text: "r"}}}}}
	got, err := model.Call(t.Context(), m, req, nil)
	if err != nil || got.Finish != "length" {
		t.Fatalf("got %+v, %v", got, err)
	}
	body := s.Requests()[0].Body
	messages := body["messages"].([]any)
	calls := messages[2].(object)["tool_calls"].([]any)
	first, second := calls[0].(object)["id"].(string), calls[1].(object)["id"]
	if len(first) != 9 || strings.Trim(first, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789") != "" || second != "aBc123XyZ" || messages[3].(object)["tool_call_id"] != first {
		t.Errorf("ids: %v", messages[2:])
	}
	if _, named := messages[1].(object)["name"]; named || body["stream_options"] != nil || messages[0].(object)["role"] != "system" {
		t.Errorf("sent %v", body)
	}
	if req.Messages[2].Calls()[0].ID != "call_0123456789" {
		t.Error("the caller's message was changed")
	}
}
