package googleai_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/model/googleai"
	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/model/modeltest"
	"github.com/qtype-dev/qtype/spec/chat"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type object = map[string]any

func open(t modeltest.Target) (model.Chat, error) {
	return googleai.New(t.Config())
}

func reply(finish string, usage object, parts ...object) string {
	candidate := object{"content": object{"role": "model", "parts": parts}, "index": 0}
	if finish != "" {
		candidate["finishReason"] = finish
	}
	o := object{"candidates": []object{candidate}, "modelVersion": "x"}
	if usage != nil {
		o["usageMetadata"] = usage
	}
	return modeltest.JSON(o)
}

func usage(a modeltest.Answer) object {
	return object{"promptTokenCount": a.Input, "candidatesTokenCount": a.Output, "totalTokenCount": a.Input + a.Output}
}

func finish(a modeltest.Answer) string {
	if a.Length {
		return "MAX_TOKENS"
	}
	return "STOP"
}

func calls(a modeltest.Answer) []object {
	var parts []object
	for i, c := range a.Calls { // without ids
		parts = append(parts, object{"functionCall": object{"name": c.Name, "args": wire.Arguments(c.Arguments)}, "thoughtSignature": fmt.Sprint("seal", i)})
	}
	return parts
}

func whole(a modeltest.Answer) string {
	return reply(finish(a), usage(a), append([]object{{"text": strings.Join(a.Chunks, "")}}, calls(a)...)...)
}

func stream(a modeltest.Answer) []string {
	var records []string
	add := func(finish string, u object, parts ...object) {
		records = append(records, "data: "+reply(finish, u, parts...)+"\r\n\r\n")
	}
	if a.Reasoning != "" {
		add("", nil, object{"text": a.Reasoning, "thought": true})
	}
	for _, p := range a.Chunks {
		add("", object{"promptTokenCount": a.Input}, object{"text": p})
	}
	for _, p := range calls(a) {
		add("", nil, p)
	}
	add(finish(a), usage(a), object{"text": ""})
	return records
}

func parse(t testing.TB, r modeltest.Request) modeltest.Conversation {
	return parseAt(t, r, "/v1beta/models/some-model", r.Header.Get("X-Goog-Api-Key"))
}

// parseAt decodes a request to a model, whose path it checks.
func parseAt(t testing.TB, r modeltest.Request, model, key string) modeltest.Conversation {
	path, isStream := model+":generateContent", false
	if strings.Contains(r.Path, "stream") {
		path, isStream = model+":streamGenerateContent?alt=sse", true
	}
	if r.Path != path {
		t.Errorf("called %s", r.Path)
	}
	settings, _ := r.Body["generationConfig"].(object)
	h := modeltest.Conversation{Key: key, Model: "some-model", Stream: isStream, Temperature: settings["temperature"], MaxTokens: settings["maxOutputTokens"]}
	if system, ok := r.Body["systemInstruction"].(object); ok {
		h.System = system["parts"].([]any)[0].(object)["text"].(string)
	}
	results := 0
	for _, c := range r.Body["contents"].([]any) {
		role := strings.ReplaceAll(c.(object)["role"].(string), "model", "assistant")
		made := 0
		for _, p := range c.(object)["parts"].([]any) {
			p := p.(object)
			switch {
			case p["functionCall"] != nil:
				f := p["functionCall"].(object)
				h.Messages = append(h.Messages, fmt.Sprint(role, " calls ", f["name"], " ", modeltest.JSON(f["args"])))
				if p["thoughtSignature"] != fmt.Sprint("seal", made) {
					t.Errorf("call %d came back with the signature %v", made, p["thoughtSignature"])
				}
				made++
			case p["functionResponse"] != nil:
				f := p["functionResponse"].(object)
				results++
				h.Messages = append(h.Messages, fmt.Sprint("result of ", f["name"], ": ", f["response"].(object)["result"]))
			default:
				h.Messages = append(h.Messages, fmt.Sprint(role, ": ", p["text"]))
			}
		}
	}
	tools, _ := r.Body["tools"].([]any)
	for _, tool := range tools {
		for _, f := range tool.(object)["functionDeclarations"].([]any) {
			var arguments []string
			if schema, ok := f.(object)["parametersJsonSchema"].(object); ok {
				for name := range schema["properties"].(object) {
					arguments = append(arguments, name)
				}
			}
			h.Tools = append(h.Tools, fmt.Sprint(f.(object)["name"], "(", strings.Join(arguments, ","), ")"))
		}
	}
	return h
}

func errorBody(status int, message string) string {
	return modeltest.JSON(object{"error": object{"code": status, "message": message, "status": "SOME_STATUS"}})
}

func TestContract(t *testing.T) {
	modeltest.Run(t, modeltest.Wire{
		Open: open, Whole: whole, Stream: stream, Closing: 1, Kind: "text/event-stream", Parse: parse, Reasoning: true, ErrorBody: errorBody,
		ErrorRecord: "data: " + errorBody(500, "it broke") + "\r\n\r\n",
	})
}

// Strict tools bind all calls of a request, unless the document or another tool says otherwise.
func TestRequest_StrictTools(t *testing.T) {
	bound, free := model.Tool{Name: "a", Strict: true}, model.Tool{Name: "b"}
	for name, c := range map[string]struct {
		tools  []model.Tool
		params map[string]any
		want   string
	}{
		"all":          {[]model.Tool{bound}, nil, `{"functionCallingConfig":{"mode":"VALIDATED"}}`},
		"one":          {[]model.Tool{bound, free}, nil, "null"},
		"none":         {[]model.Tool{free}, nil, "null"},
		"declared":     {[]model.Tool{bound}, map[string]any{"tool_config": map[string]any{"functionCallingConfig": map[string]any{"mode": "ANY"}}}, `{"functionCallingConfig":{"mode":"ANY"}}`},
		"and a search": {[]model.Tool{bound, {Hosted: "web_search"}}, nil, `{"functionCallingConfig":{"mode":"VALIDATED"},"includeServerSideToolInvocations":true}`},
	} {
		m, s := gemini(t, "gemini-4-argon", c.params, false, event("STOP", `{"text":"Yes."}`))
		if _, err := model.Call(t.Context(), m, model.Request{Messages: []chat.Message{chat.Text(chat.User, "x")}, Tools: c.tools}, nil); err != nil {
			t.Fatal(err)
		}
		if got := modeltest.JSON(s.Requests()[0].Body["toolConfig"]); got != c.want {
			t.Errorf("%s: toolConfig is %s, want %s", name, got, c.want)
		}
	}
}

func TestRequest_Parameters(t *testing.T) {
	s := modeltest.Serve(t, modeltest.Respond(200, "application/json", whole(modeltest.Answer{Chunks: []string{"Yes."}})))
	m, err := open(modeltest.Target{Info: model.Info{ID: "m", Name: "models/gemini-2.5-flash-lite"}, URL: s.URL + "/v1", HTTP: s.Client(), Params: map[string]any{
		"top_p": 0.5, "topK": 3, "stop": "END", "thinking_config": map[string]any{"thinkingBudget": 0}, "safety_settings": []any{}}})
	if err != nil {
		t.Fatal(err)
	}
	picture := chat.Message{Role: chat.User, Blocks: []chat.Block{{Type: "text", Text: "What is it?"}, {Type: "image", Data: []byte("PNG")}, {Type: "file", Text: "https://a.example/b.pdf", MimeType: "application/pdf"}}}
	req := model.Request{Messages: []chat.Message{picture}, Schema: &model.Schema{Name: "thing", JSON: []byte(`{"type":"object"}`)}}
	if _, err := model.Call(t.Context(), m, req, nil); err != nil {
		t.Fatal(err)
	}
	want := object{
		"contents": []any{object{"role": "user", "parts": []any{object{"text": "What is it?"}, object{"inlineData": object{"mimeType": "image/png", "data": "UE5H"}},
			object{"fileData": object{"mimeType": "application/pdf", "fileUri": "https://a.example/b.pdf"}}}}},
		"safetySettings": []any{},
		"generationConfig": object{"topP": 0.5, "topK": 3.0, "stopSequences": []any{"END"}, "thinkingConfig": object{"thinkingBudget": 0.0},
			"responseMimeType": "application/json", "responseJsonSchema": object{"type": "object"}},
	}
	got := s.Requests()[0]
	if d := cmp.Diff(want, got.Body); d != "" {
		t.Error(d)
	}
	if got.Path != "/v1/models/gemini-2.5-flash-lite:generateContent" {
		t.Errorf("called %s", got.Path)
	}
}

// Images of the results of tools are parts of the results from Gemini 3, and follow all
// results in the same content for earlier models.
func TestRequest_ToolImages(t *testing.T) {
	image := object{"inlineData": object{"mimeType": "image/png", "data": "iVBORw0KGgo="}}
	sound := object{"inlineData": object{"mimeType": "audio/ogg", "data": "T2dnUw=="}}
	result := func(id, name, text string) object {
		return object{"functionResponse": object{"id": id, "name": name, "response": object{"result": text}}}
	}
	within := result("call00001", "plot", "a plot")
	within["functionResponse"].(object)["parts"] = []any{image, sound}
	for name, want := range map[string][]any{
		"gemini-2.5-flash-lite":  {result("call00001", "plot", "a plot\n[2 files follow the results of the tools]"), result("call00002", "now", "noon"), image, sound},
		"gemini-3.1-pro-preview": {within, result("call00002", "now", "noon")},
	} {
		s := modeltest.Serve(t, modeltest.Respond(200, "application/json", whole(modeltest.Answer{Chunks: []string{"Yes."}})))
		m, err := open(modeltest.Target{Info: model.Info{ID: "m", Name: name}, URL: s.URL, HTTP: s.Client()})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := model.Call(t.Context(), m, model.Request{Messages: modeltest.ToolImages()}, nil); err != nil {
			t.Fatal(err)
		}
		got := s.Requests()[0].Body["contents"].([]any)
		if d := cmp.Diff(want, got[len(got)-1].(object)["parts"]); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// A blocked prompt and a blocked answer are errors, and Google reports in the body
// how long to wait.
func TestBlockedAnswers(t *testing.T) {
	for body, want := range map[string]string{
		`{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":3}}`: "content_filter",
		`{"candidates":[{"finishReason":"RECITATION"}]}`:                                     "content_filter",
	} {
		for _, streamed := range []bool{false, true} {
			answer := modeltest.Respond(200, "application/json", body)
			if streamed {
				answer = modeltest.Respond(200, "text/event-stream", "data: "+body+"\n\n")
			}
			s := modeltest.Serve(t, answer)
			m, err := open(modeltest.Target{Info: model.Info{ID: "m"}, URL: s.URL, HTTP: s.Client()})
			if err != nil {
				t.Fatal(err)
			}
			got, err := model.Call(t.Context(), m, model.Request{Stream: streamed}, nil)
			if err != nil || got.Finish != want {
				t.Errorf("%s: got %+v, %v", body, got, err)
			}
		}
	}
	bad := modeltest.Serve(t, modeltest.Respond(200, "application/json", `{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL","content":{}}]}`))
	malformed, err := open(modeltest.Target{Info: model.Info{ID: "m"}, URL: bad.URL, HTTP: bad.Client()})
	if err != nil {
		t.Fatal(err)
	}
	_, err = model.Call(t.Context(), malformed, model.Request{}, nil)
	if e, ok := err.(*model.Error); !ok || !e.Temporary || e.Code != "MALFORMED_FUNCTION_CALL" { //nolint:errorlint // the client's own
		t.Errorf("got %+v", err)
	}
	s := modeltest.Serve(t, modeltest.Respond(429, "application/json",
		`{"error":{"code":429,"message":"Quota exceeded","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"36s"}]}}`))
	m, err := open(modeltest.Target{Info: model.Info{ID: "m"}, URL: s.URL, HTTP: s.Client()})
	if err != nil {
		t.Fatal(err)
	}
	_, err = model.Call(t.Context(), m, model.Request{}, nil)
	if e, ok := err.(*model.Error); !ok || e.RetryAfter != 36*time.Second || e.Code != "RESOURCE_EXHAUSTED" || !e.Temporary { //nolint:errorlint // the client's own
		t.Errorf("got %+v", err)
	}
}
