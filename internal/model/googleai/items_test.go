package googleai_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/model/googleai"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/model/modeltest"
	"github.com/qtype-dev/qtype/spec/chat"
)

// gemini opens a model of a server that answers one body after the other.
func gemini(t *testing.T, name string, params map[string]any, stream bool, bodies ...string) (model.Chat, *modeltest.Server) {
	t.Helper()
	s := modeltest.Serve(t, inTurn(stream, bodies...))
	m, err := open(modeltest.Target{Info: model.Info{ID: "m", Name: name, Provider: "google-ai"}, URL: s.URL, HTTP: s.Client(), Params: params})
	if err != nil {
		t.Fatal(err)
	}
	return m, s
}

// inTurn answers with one body after the other. A body that begins with an error is refused.
func inTurn(stream bool, bodies ...string) http.HandlerFunc {
	n := 0
	return func(w http.ResponseWriter, r *http.Request) {
		body := bodies[min(n, len(bodies)-1)]
		n++
		status, kind := 200, "application/json"
		switch {
		case strings.HasPrefix(body, `{"error"`):
			status = 400
		case stream:
			kind = "text/event-stream"
			var parts []string
			for _, record := range strings.Split(body, "\n") {
				parts = append(parts, "data: "+record+"\n\n")
			}
			body = strings.Join(parts, "")
		}
		modeltest.Respond(status, kind, body)(w, r)
	}
}

// event is an event, or a whole answer, with parts.
func event(finish string, parts ...string) string {
	if finish != "" {
		finish = fmt.Sprintf(`,"finishReason":%q`, finish)
	}
	return `{"candidates":[{"index":0,"content":{"role":"model","parts":[` + strings.Join(parts, ",") + `]}` + finish + `}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":2,"thoughtsTokenCount":1,"promptTokensDetails":[{"modality":"AUDIO","tokenCount":3}],"serviceTier":"flex"}}`
}

// partsSent returns the parts of the answer in a request.
func partsSent(r modeltest.Request) any { return r.Body["contents"].([]any)[1].(object)["parts"] }

// What Google sends with the parts of an answer comes back in its place, also through a memory.
func TestItems_ComeBack(t *testing.T) {
	call := func(id, signature string) string {
		return `{"functionCall":{"id":"` + id + `","name":"find_order","args":{"number":"7"}}` + signature + `}`
	}
	const sealed = `,"thoughtSignature":"U0lH"`
	for name, c := range map[string]struct {
		parts []string // of the answer, in a stream one in each event
		want  []string // in the next request; nil for the same
		text  string
	}{
		"a text":                      {parts: []string{`{"text":"Friday.","thoughtSignature":"Rk9P"}`}, text: "Friday."},
		"a text in pieces":            {parts: []string{`{"text":"It is "}`, `{"text":"Friday."}`, `{"text":""` + sealed + `}`}, want: []string{`{"text":"It is Friday."}`, `{"text":""` + sealed + `}`}, text: "It is Friday."},
		"the last of two texts":       {parts: []string{`{"text":"It is "}`, `{"text":"Friday."` + sealed + `}`}, text: "It is Friday."},
		"a signature without content": {parts: []string{`{"text":"Friday."}`, `{"thoughtSignature":"U0lH"}`}, want: []string{`{"text":"Friday."}`, `{"text":""` + sealed + `}`}, text: "Friday."},
		"a text and parallel calls":   {parts: []string{`{"text":"Looking.","thoughtSignature":"Rk9P"}`, call("a", sealed), call("b", "")}, text: "Looking."},
		"thoughts": {parts: []string{`{"text":"Hm.","thought":true}`, `{"text":"Well.","thought":true` + sealed + `}`, `{"text":"Friday."}`},
			want: []string{`{"text":"Hm.","thought":true}`, `{"text":"Well.","thought":true` + sealed + `}`, `{"text":"Friday."}`}, text: "Friday."},
		"summaries without a signature": {parts: []string{`{"text":"Hm.","thought":true}`, `{"text":"Friday."}`}, want: []string{`{"text":"Friday."}`}, text: "Friday."},
		"images": {parts: []string{`{"text":"Here:"` + sealed + `}`, `{"inlineData":{"mimeType":"image/png","data":"UE5H"},"thoughtSignature":"SU1H"}`, `{"inlineData":{"mimeType":"image/png","data":"UE5H"}}`},
			text: "Here:"},
		"Google's own tools": {parts: []string{`{"executableCode":{"language":"PYTHON","code":"print(1)","id":"e"}` + sealed + `}`, `{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1","id":"e"}}`,
			`{"toolCall":{"id":"s","toolType":"GOOGLE_SEARCH_WEB","args":{"queries":["order 7"]}},"thoughtSignature":"VE9P"}`, `{"toolResponse":{"id":"s","toolType":"GOOGLE_SEARCH_WEB","response":{"n":1.50}}}`,
			`{"newKind":{"x":1}}`, `{}`, `{"text":"One."}`}, text: "One."},
	} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, stream %v", name, stream), func(t *testing.T) {
				body := event("STOP", c.parts...)
				if stream {
					var records []string
					for _, p := range c.parts {
						records = append(records, event("", p))
					}
					body = strings.Join(append(records, event("STOP")), "\n")
				}
				m, s := gemini(t, "gemini-4-argon", nil, stream, body, body)
				got, err := model.Call(t.Context(), m, model.Request{Stream: stream, Messages: []chat.Message{chat.Text(chat.User, "Where is order 7?")}}, nil)
				if err != nil || got.Message.Text() != c.text {
					t.Fatalf("got %+v, %v", got, err)
				}
				if _, err := model.Call(t.Context(), m, model.Request{Stream: stream, Messages: modeltest.Answered(modeltest.Stored(t, got.Message))}, nil); err != nil {
					t.Fatal(err)
				}
				wanted := c.want
				if wanted == nil {
					for _, p := range c.parts {
						if p != "{}" {
							wanted = append(wanted, p)
						}
					}
				}
				var want any
				if err := json.Unmarshal([]byte("["+strings.Join(wanted, ",")+"]"), &want); err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(want, partsSent(s.Requests()[1])); d != "" {
					t.Error(d)
				}
			})
		}
	}
}

// A call of another model, or of Google's other service, has the documented placeholder in the
// current turn, for models that require signatures.
func TestItems_Foreign(t *testing.T) {
	made, _ := gemini(t, "gemini-4-argon", nil, false, event("STOP", `{"text":"Looking.","thoughtSignature":"Rk9P"}`,
		`{"functionCall":{"name":"find_order","args":{}},"thoughtSignature":"U0lH"}`, `{"functionCall":{"name":"find_order","args":{}}}`))
	got, err := model.Call(t.Context(), made, model.Request{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		model  string
		vertex bool
		later  bool // the call is of an earlier turn
		want   string
	}{
		"another model":       {"gemini-3.8-flash", false, false, "[<nil> skip_thought_signature_validator <nil>]"},
		"Vertex AI":           {"gemini-4-argon", true, false, "[<nil> skip_thought_signature_validator <nil>]"},
		"an earlier turn":     {"gemini-3.8-flash", false, true, "[<nil> <nil> <nil>]"},
		"Gemini 2.5":          {"gemini-2.5-flash-lite", false, false, "[<nil> <nil> <nil>]"},
		"a model without row": {"my-model", false, false, "[<nil> <nil> <nil>]"},
	} {
		s := modeltest.Serve(t, inTurn(false, event("STOP", `{"text":"Friday."}`)))
		config := modeltest.Target{Info: model.Info{ID: "m", Name: c.model}, URL: s.URL, HTTP: s.Client()}.Config()
		var m model.Chat
		if m, err = googleai.New(config); c.vertex {
			m, err = googleai.NewVertex(googleai.VertexConfig{Config: config, Project: "p", Location: "global"})
		}
		if err != nil {
			t.Fatal(err)
		}
		messages := modeltest.Answered(modeltest.Stored(t, got.Message))
		if c.later {
			messages = append(messages, chat.Text(chat.Assistant, "Friday."), chat.Text(chat.User, "And 8?"))
		}
		if _, err := model.Call(t.Context(), m, model.Request{Messages: messages}, nil); err != nil {
			t.Fatal(err)
		}
		var signatures []any
		for _, p := range partsSent(s.Requests()[0]).([]any) {
			signatures = append(signatures, p.(object)["thoughtSignature"])
		}
		if fmt.Sprint(signatures) != c.want {
			t.Errorf("%s: got %v, want %s", name, signatures, c.want)
		}
	}
}

// A request whose signatures Google refuses, because another key has issued them, is sent once
// more with the placeholder.
func TestItems_Refused(t *testing.T) {
	const refusal = `{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"Corrupted thought signature."}}`
	answer := event("STOP", `{"text":"Hm.","thought":true,"thoughtSignature":"VA=="}`, `{"functionCall":{"id":"a","name":"find_order","args":{}},"thoughtSignature":"U0lH"}`)
	for _, stream := range []bool{false, true} {
		m, s := gemini(t, "gemini-2.5-flash-lite", nil, stream, answer, refusal, answer)
		got, err := model.Call(t.Context(), m, model.Request{Stream: stream}, nil)
		if err != nil {
			t.Fatal(err)
		}
		req := model.Request{Stream: stream, Messages: modeltest.Answered(got.Message)}
		if _, err := model.Call(t.Context(), m, req, nil); err != nil {
			t.Fatal(err)
		}
		want := []any{object{"functionCall": object{"id": "a", "name": "find_order", "args": object{}}, "thoughtSignature": "skip_thought_signature_validator"}}
		if d := cmp.Diff(any(want), partsSent(s.Requests()[2])); d != "" || len(s.Requests()) != 3 {
			t.Errorf("%d requests: %s", len(s.Requests()), d)
		}
	}
	m, s := gemini(t, "gemini-4-argon", nil, false, refusal)
	_, err := model.Call(t.Context(), m, model.Request{}, nil)
	if e, ok := errors.AsType[*model.Error](err); !ok || e.Status != 400 || len(s.Requests()) != 2 {
		t.Errorf("%d requests: got %v", len(s.Requests()), err)
	}
}

// A long answer comes in the answers to several requests: the text is one, and all tokens count.
func TestContinuation(t *testing.T) {
	paused := strings.Replace(event("CONTINUATION", `{"text":"It is "}`), `"finishReason"`, `"continuationToken":"VE9L","finishReason"`, 1)
	for _, stream := range []bool{false, true} {
		m, s := gemini(t, "gemini-4-argon", nil, stream, paused, event("STOP", `{"text":"Friday.","thoughtSignature":"U0lH"}`))
		var deltas []string
		got, err := model.Call(t.Context(), m, model.Request{Stream: stream, Messages: []chat.Message{chat.Text(chat.User, "When?")}}, func(ev model.Event) { deltas = append(deltas, ev.Text) })
		if err != nil || got.Message.Text() != "It is Friday." || got.Finish != "stop" || got.Usage.Requests == nil || len(*got.Usage.Requests) != 2 {
			t.Fatalf("got %+v, %v", got, err)
		}
		if got.Usage.Requests = nil; got.Usage != (model.Usage{Input: 10, Output: 6, Reasoning: 2, AudioInput: 6, Tier: "flex"}) {
			t.Fatalf("got %+v", got.Usage)
		}
		if stream && strings.Join(deltas, "|") != "It is |Friday." {
			t.Errorf("deltas %q", deltas)
		}
		first, second := s.Requests()[0].Body, s.Requests()[1].Body
		if second["continuationToken"] != "VE9L" {
			t.Errorf("sent %s", modeltest.JSON(second))
		}
		delete(second, "continuationToken")
		if d := cmp.Diff(first, second); d != "" {
			t.Error(d)
		}
	}
	endless, s := gemini(t, "gemini-4-argon", nil, false, paused)
	if _, err := model.Call(t.Context(), endless, model.Request{}, nil); err == nil || !strings.Contains(err.Error(), "not complete after 20 requests") || len(s.Requests()) != 20 {
		t.Errorf("%d requests: got %v", len(s.Requests()), err)
	}
}

// The sources of an answer are citations behind its text, each once, and are not sent back.
func TestCitations(t *testing.T) {
	answer := strings.Replace(event("STOP", `{"text":"Friday."}`), `"finishReason"`, `"groundingMetadata":{"webSearchQueries":["q"],"groundingChunks":[{"web":{"uri":"https://a.example/1","title":"A"}},
		{"retrievedContext":{"documentName":"corpora/1/documents/2","title":"Manual","text":"Ships on Friday."}},{"web":{"uri":"https://a.example/1","title":"A"}},{"maps":{"uri":"https://maps.example/1","title":"Shop"}}]},
		"urlContextMetadata":{"urlMetadata":[{"retrievedUrl":"https://b.example/","urlRetrievalStatus":"URL_RETRIEVAL_STATUS_SUCCESS"},{"retrievedUrl":"https://c.example/","urlRetrievalStatus":"URL_RETRIEVAL_STATUS_ERROR"}]},
		"citationMetadata":{"citationSources":[{"startIndex":0,"endIndex":7,"uri":"https://d.example/","license":"mit"}]},"finishReason"`, 1)
	m, s := gemini(t, "gemini-2.5-flash-lite", nil, false, answer)
	got, err := model.Call(t.Context(), m, model.Request{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var sources []string
	for _, b := range got.Message.Blocks[1:] {
		sources = append(sources, b.Type+" "+b.Text)
	}
	want := []string{
		`citation_url {"number":1,"source_id":"https://a.example/1","title":"A","url":"https://a.example/1"}`,
		`citation_document {"number":2,"source_id":"corpora/1/documents/2","title":"Manual","text":"Ships on Friday."}`,
		`citation_url {"number":3,"source_id":"https://maps.example/1","title":"Shop","url":"https://maps.example/1"}`,
		`citation_url {"number":4,"source_id":"https://b.example/","title":"https://b.example/","url":"https://b.example/"}`,
		`citation_url {"number":5,"source_id":"https://d.example/","title":"https://d.example/","url":"https://d.example/"}`,
	}
	if d := cmp.Diff(want, sources); d != "" {
		t.Error(d)
	}
	if _, err := model.Call(t.Context(), m, model.Request{Messages: modeltest.Answered(modeltest.Stored(t, got.Message))}, nil); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(any([]any{object{"text": "Friday."}}), partsSent(s.Requests()[1])); d != "" {
		t.Error(d)
	}
}

// Tools that Google runs are next to the functions, with their settings; the Gemini API accepts
// the calls of both in one turn.
func TestRequest_HostedTools(t *testing.T) {
	m, s := gemini(t, "gemini-4-argon", map[string]any{"tool_config": map[string]any{"function_calling_config": map[string]any{"mode": "AUTO"}}}, false, event("STOP", `{"text":"Yes."}`))
	hosted := []model.Tool{{Hosted: "web_search"}, {Hosted: "url_context"}, {Hosted: "file_search", Settings: json.RawMessage(`{"file_search_store_names":["a_b"]}`)}}
	if _, err := model.Call(t.Context(), m, model.Request{Messages: []chat.Message{chat.Text(chat.User, "a")}, Tools: append(hosted, model.Tool{Name: "now"})}, nil); err != nil {
		t.Fatal(err)
	}
	body := s.Requests()[0].Body
	want := object{
		"contents":   []any{object{"role": "user", "parts": []any{object{"text": "a"}}}},
		"toolConfig": object{"functionCallingConfig": object{"mode": "AUTO"}, "includeServerSideToolInvocations": true},
		"tools": []any{object{"googleSearch": object{}}, object{"urlContext": object{}}, object{"fileSearch": object{"fileSearchStoreNames": []any{"a_b"}}},
			object{"functionDeclarations": []any{object{"name": "now", "parametersJsonSchema": object{"type": "object", "properties": object{}}}}}},
	}
	if d := cmp.Diff(want, body); d != "" {
		t.Error(d)
	}
	_, err := model.Call(t.Context(), m, model.Request{Tools: []model.Tool{{Hosted: "image_generation"}}}, nil)
	if err == nil || !strings.Contains(err.Error(), "google-ai has no hosted tool image_generation; it has code_execution, computer_use, file_search, google_maps,") {
		t.Errorf("got %v", err)
	}
}

// Parameters are where Google expects them, in its spelling; names in schemas and labels stay.
func TestRequest_Places(t *testing.T) {
	m, s := gemini(t, "gemini-4-argon", map[string]any{"service_tier": "flex", "cached_content": "cachedContents/1", "labels": map[string]any{"my_team": "a"}, "store": false,
		"thinking_config": map[string]any{"thinking_level": "low", "include_thoughts": true}, "generation_config": map[string]any{"image_config": map[string]any{"aspect_ratio": "1:1"}},
		"response_schema": map[string]any{"type": "object", "properties": map[string]any{"my_name": map[string]any{"type": "string"}}}}, false, event("STOP", `{"text":"Yes."}`))
	if _, err := model.Call(t.Context(), m, model.Request{Messages: []chat.Message{chat.Text(chat.User, "a")}}, nil); err != nil {
		t.Fatal(err)
	}
	want := object{"contents": []any{object{"role": "user", "parts": []any{object{"text": "a"}}}}, "serviceTier": "flex", "cachedContent": "cachedContents/1", "labels": object{"my_team": "a"}, "store": false,
		"generationConfig": object{"thinkingConfig": object{"thinkingLevel": "low", "includeThoughts": true}, "imageConfig": object{"aspectRatio": "1:1"},
			"responseSchema": object{"type": "object", "properties": object{"my_name": object{"type": "string"}}}}}
	if d := cmp.Diff(want, s.Requests()[0].Body); d != "" {
		t.Error(d)
	}
}
