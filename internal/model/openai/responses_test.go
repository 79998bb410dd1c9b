package openai_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/model/openai"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/model/modeltest"
	"github.com/qtype-dev/qtype/spec/chat"
)

func outputItems(a modeltest.Answer) []object {
	var items []object
	if a.Reasoning != "" {
		items = append(items, object{"type": "reasoning", "id": "rs_1", "summary": []any{}, "encrypted_content": "sealed"})
	}
	items = append(items, object{"type": "message", "role": "assistant", "content": []object{{"type": "output_text", "text": strings.Join(a.Chunks, "")}}})
	for _, c := range a.Calls {
		items = append(items, object{"type": "function_call", "id": "fc_" + c.ID, "call_id": c.ID, "name": c.Name, "arguments": c.Arguments})
	}
	return items
}

func responseOf(a modeltest.Answer) object {
	r := object{"object": "response", "status": "completed", "error": nil, "incomplete_details": nil, "output": outputItems(a),
		"usage": object{"input_tokens": a.Input, "output_tokens": a.Output, "input_tokens_details": object{"cached_tokens": 0}}}
	if a.Length {
		r["status"], r["incomplete_details"] = "incomplete", object{"reason": "max_output_tokens"}
	}
	return r
}

func streamedResponse(a modeltest.Answer) []string {
	var records []string
	add := func(kind string, fields object) {
		fields["type"] = kind
		records = append(records, "event: "+kind+"\ndata: "+modeltest.JSON(fields)+"\n\n")
	}
	add("response.created", object{"response": object{"status": "in_progress", "output": []any{}}})
	if a.Reasoning != "" {
		add("response.reasoning_summary_text.delta", object{"delta": a.Reasoning})
	}
	for _, text := range a.Chunks {
		add("response.output_text.delta", object{"delta": text})
	}
	for i, it := range outputItems(a) {
		add("response.output_item.done", object{"output_index": i, "item": it})
	}
	add("response."+map[bool]string{true: "incomplete", false: "completed"}[a.Length], object{"response": responseOf(a)})
	return records
}

func parseResponse(path string) func(t testing.TB, r modeltest.Request) modeltest.Conversation {
	return func(t testing.TB, r modeltest.Request) modeltest.Conversation {
		if r.Path != path || r.Body["store"] != false {
			t.Errorf("called %s, store %v", r.Path, r.Body["store"])
		}
		h := modeltest.Conversation{Key: strings.TrimPrefix(r.Header.Get("Authorization")+r.Header.Get("Api-Key"), "Bearer "),
			Temperature: r.Body["temperature"], MaxTokens: r.Body["max_output_tokens"]}
		h.Model, _ = r.Body["model"].(string)
		h.System, _ = r.Body["instructions"].(string)
		h.Stream, _ = r.Body["stream"].(bool)
		names := map[any]any{}
		for _, it := range r.Body["input"].([]any) {
			switch it := it.(object); it["type"] {
			case "function_call":
				names[it["call_id"]] = it["name"]
				h.Messages = append(h.Messages, fmt.Sprint("assistant calls ", it["name"], " ", it["arguments"]))
			case "function_call_output":
				h.Messages = append(h.Messages, fmt.Sprint("result of ", names[it["call_id"]], ": ", it["output"]))
			default:
				h.Messages = append(h.Messages, fmt.Sprint(it["role"], ": ", it["content"].([]any)[0].(object)["text"]))
			}
		}
		tools, _ := r.Body["tools"].([]any)
		for _, tool := range tools {
			var arguments []string
			for name := range tool.(object)["parameters"].(object)["properties"].(object) {
				arguments = append(arguments, name)
			}
			h.Tools = append(h.Tools, fmt.Sprint(tool.(object)["name"], "(", strings.Join(arguments, ","), ")"))
		}
		return h
	}
}

func TestResponses_Contract(t *testing.T) {
	wire := modeltest.Wire{
		Open:  func(t modeltest.Target) (model.Chat, error) { return openai.NewResponses(contractConfig(t)) },
		Whole: func(a modeltest.Answer) string { return modeltest.JSON(responseOf(a)) }, Stream: streamedResponse,
		Closing: 1, Kind: "text/event-stream", Parse: parseResponse("/v1/responses"), Reasoning: true,
		ErrorBody: func(status int, message string) string {
			return modeltest.JSON(object{"error": object{"message": message, "type": "some_error", "param": nil, "code": status}})
		},
		ErrorRecord: "data: " + modeltest.JSON(object{"type": "error", "code": "server_error", "message": "it broke"}) + "\n\n",
	}
	t.Run("openai", func(t *testing.T) { modeltest.Run(t, wire) })
	wire.Open = func(to modeltest.Target) (model.Chat, error) {
		return openai.NewAzureResponses(openai.AzureConfig{Config: to.Config(), Deployment: "some-model"})
	}
	wire.Parse = parseResponse("/openai/v1/responses")
	t.Run("azure", func(t *testing.T) { modeltest.Run(t, wire) })
}

// Reasoning items are sent back with the results of the calls that follow them; a schema
// is the format of the text.
func TestResponses_Reasoning(t *testing.T) {
	s := modeltest.Serve(t, modeltest.Respond(200, "application/json", modeltest.JSON(responseOf(modeltest.Answer{Reasoning: "Hm.", Calls: []chat.ToolCall{{ID: "c1", Name: "now", Arguments: "{}"}}}))))
	m, err := openai.NewResponses(contractConfig(modeltest.Target{Info: model.Info{ID: "m", Name: "gpt-6-luna"}, URL: s.URL, HTTP: s.Client(), Params: map[string]any{"reasoning_effort": "low"}}))
	if err != nil {
		t.Fatal(err)
	}
	picture := chat.Message{Role: chat.User, Blocks: []chat.Block{{Type: "text", Text: "When?"}, {Type: "image", Data: []byte("PNG")}}}
	req := model.Request{Messages: []chat.Message{picture}, Tools: []model.Tool{{Name: "now"}},
		Schema: &model.Schema{Name: "time", JSON: []byte(`{"type":"object","properties":{},"required":[],"additionalProperties":false}`)}}
	got, err := model.Call(t.Context(), m, req, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Messages = append(req.Messages, got.Message, chat.Message{Role: chat.Tool, ToolCallID: "c1", Blocks: []chat.Block{{Type: "text", Text: "noon"}}})
	if _, err = model.Call(t.Context(), m, req, nil); err != nil {
		t.Fatal(err)
	}
	body := s.Requests()[1].Body
	want := []any{
		object{"type": "message", "role": "user", "content": []any{object{"type": "input_text", "text": "When?"}, object{"type": "input_image", "image_url": "data:image/png;base64,UE5H"}}},
		object{"type": "reasoning", "id": "rs_1", "summary": []any{}, "encrypted_content": "sealed"},
		object{"type": "function_call", "call_id": "c1", "name": "now", "arguments": "{}"},
		object{"type": "function_call_output", "call_id": "c1", "output": "noon"},
	}
	if d := cmp.Diff(want, body["input"]); d != "" {
		t.Error(d)
	}
	for name, value := range map[string]string{"include": `["reasoning.encrypted_content"]`, "reasoning": `{"effort":"low"}`,
		"text": `{"format":{"name":"time","schema":{"additionalProperties":false,"properties":{},"required":[],"type":"object"},"strict":true,"type":"json_schema"}}`} {
		if got := modeltest.JSON(body[name]); got != value {
			t.Errorf("%s is %s", name, got)
		}
	}
}

// The output of a call is a list of parts where it has an image.
func TestResponses_ToolImages(t *testing.T) {
	s := modeltest.Serve(t, modeltest.Respond(200, "application/json", modeltest.JSON(responseOf(modeltest.Answer{Chunks: []string{"Yes."}}))))
	m, err := openai.NewResponses(contractConfig(modeltest.Target{Info: model.Info{ID: "m", Name: "gpt-6-sol"}, URL: s.URL, HTTP: s.Client()}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := model.Call(t.Context(), m, model.Request{Messages: modeltest.ToolImages()}, nil); err != nil {
		t.Fatal(err)
	}
	want := []any{
		object{"type": "function_call_output", "call_id": "call00001", "output": []any{object{"type": "input_text", "text": "a plot"},
			object{"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="},
			object{"type": "input_text", "text": "[a sound of type audio/ogg, which cannot be passed to this model]"}}},
		object{"type": "function_call_output", "call_id": "call00002", "output": "noon"},
	}
	if d := cmp.Diff(want, s.Requests()[0].Body["input"].([]any)[3:]); d != "" {
		t.Error(d)
	}
}
