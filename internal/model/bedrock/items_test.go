package bedrock_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/model/modeltest"
	"github.com/qtype-dev/qtype/spec/chat"
)

// converse opens a model of a server that answers one body after the other. A body that begins
// with a message is refused.
func converse(t *testing.T, name string, params map[string]any, bodies ...string) (model.Chat, *modeltest.Server) {
	t.Helper()
	n := 0
	s := modeltest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		body := bodies[min(n, len(bodies)-1)]
		n++
		status, kind := 200, "application/json"
		switch {
		case strings.HasPrefix(body, `{"message"`):
			status = 400
		case strings.HasSuffix(r.URL.Path, "converse-stream"):
			kind = "application/vnd.amazon.eventstream"
		}
		modeltest.Respond(status, kind, body)(w, r)
	})
	m, err := open(modeltest.Target{Info: model.Info{ID: "m", Name: name, Provider: "aws-bedrock"}, URL: s.URL, HTTP: s.Client(), Params: params})
	if err != nil {
		t.Fatal(err)
	}
	return m, s
}

// message returns a whole answer with blocks.
func message(stop string, blocks ...string) string {
	return `{"output":{"message":{"role":"assistant","content":[` + strings.Join(blocks, ",") + `]}},"stopReason":"` + stop + `","usage":{"inputTokens":3,"outputTokens":2}}`
}

// streamed returns a streamed answer with the same blocks: texts in two pieces.
func streamed(t *testing.T, stop string, blocks ...string) string {
	t.Helper()
	var b strings.Builder
	for i, raw := range blocks {
		var block map[string]object
		var text struct{ Text string }
		if json.Unmarshal([]byte(raw), &text) == nil && text.Text != "" {
			block = map[string]object{"text": {"text": text.Text}}
		} else if err := json.Unmarshal([]byte(raw), &block); err != nil {
			t.Fatal(err)
		}
		delta := func(d object) {
			b.WriteString(frame("event", "contentBlockDelta", object{"delta": d, "contentBlockIndex": i}))
		}
		halves := func(s any, d func(string) object) {
			text := s.(string)
			for _, half := range []string{text[:len(text)/2], text[len(text)/2:]} {
				if half != "" {
					delta(d(half))
				}
			}
		}
		for kind, v := range block {
			switch kind {
			case "text":
				halves(v["text"], func(s string) object { return object{"text": s} })
			case "toolUse":
				input := modeltest.JSON(v["input"])
				delete(v, "input")
				b.WriteString(frame("event", "contentBlockStart", object{"start": object{"toolUse": v}, "contentBlockIndex": i}))
				halves(input, func(s string) object { return object{"toolUse": object{"input": s}} })
			case "toolResult":
				content := v["content"]
				delete(v, "content")
				b.WriteString(frame("event", "contentBlockStart", object{"start": object{"toolResult": v}, "contentBlockIndex": i}))
				delta(object{"toolResult": content})
			case "reasoningContent":
				if redacted, ok := v["redactedContent"]; ok {
					delta(object{"reasoningContent": object{"redactedContent": redacted}})
					break
				}
				text := v["reasoningText"].(object)
				halves(text["text"], func(s string) object { return object{"reasoningContent": object{"text": s}} })
				if s := text["signature"]; s != nil {
					delta(object{"reasoningContent": object{"signature": s}})
				}
			case "citationsContent":
				halves(v["content"].([]any)[0].(object)["text"], func(s string) object { return object{"text": s} })
				for _, c := range v["citations"].([]any) {
					delta(object{"citation": c})
				}
			}
		}
		b.WriteString(frame("event", "contentBlockStop", object{"contentBlockIndex": i}))
	}
	return b.String() + frame("event", "messageStop", object{"stopReason": stop}) + frame("event", "metadata", object{"usage": object{"inputTokens": 3, "outputTokens": 2}})
}

// blocksSent returns the blocks of the answer in a request, without markers of the prompt cache.
func blocksSent(r modeltest.Request) any {
	content := r.Body["messages"].([]any)[1].(object)["content"].([]any)
	return slices.DeleteFunc(content, func(b any) bool { return b.(object)["cachePoint"] != nil })
}

// Reasoning and the blocks of Bedrock's own tools come back unchanged in their places, also
// through a memory; the texts of the answer are one.
func TestItems_ComeBack(t *testing.T) {
	use := func(id string) string {
		return `{"toolUse":{"toolUseId":"` + id + `","name":"find_order","input":{"number":"7"}}}`
	}
	const sealed, redacted = `{"reasoningContent":{"reasoningText":{"text":"Hm <7>.","signature":"c2Vh"}}}`, `{"reasoningContent":{"redactedContent":"cmVk"}}`
	for name, c := range map[string]struct {
		blocks, want []string // want nil is the same
		text         string
	}{
		"reasoning before parallel calls": {blocks: []string{sealed, `{"text":"Looking."}`, use("a"), use("b")}, text: "Looking."},
		"between calls":                   {blocks: []string{sealed, use("a"), `{"reasoningContent":{"reasoningText":{"text":"And 8.","signature":"dHdv"}}}`, use("b")}},
		"encrypted and omitted":           {blocks: []string{redacted, `{"reasoningContent":{"reasoningText":{"text":"","signature":"c2Vh"}}}`, redacted, `{"text":"Friday."}`}, text: "Friday."},
		"without a signature":             {blocks: []string{`{"reasoningContent":{"reasoningText":{"text":"Hm."}}}`, `{"text":"Friday."}`}, want: []string{`{"text":"Friday."}`}, text: "Friday."},
		"Bedrock's own tools": {blocks: []string{`{"toolUse":{"toolUseId":"s","name":"nova_grounding","input":{"q":"7"},"type":"server_tool_use"}}`,
			`{"toolResult":{"toolUseId":"s","status":"success","type":"nova_grounding_result","content":[{"text":"It ships."}]}}`, `{"text":"It ships."}`}, text: "It ships."},
		"cited texts": {blocks: []string{`{"text":"It "}`, `{"citationsContent":{"content":[{"text":"ships."}],"citations":[{"title":"Shop","location":{"web":{"url":"https://a.example/"}}}]}}`},
			want: []string{`{"text":"It ships."}`}, text: "It ships."},
	} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, stream %v", name, stream), func(t *testing.T) {
				body := message("end_turn", c.blocks...)
				if stream {
					body = streamed(t, "end_turn", c.blocks...)
				}
				m, s := converse(t, "us.anthropic.claude-opus-5", nil, body)
				got, err := model.Call(t.Context(), m, model.Request{Stream: stream, Messages: []chat.Message{chat.Text(chat.User, "Where is order 7?")}}, nil)
				if err != nil || got.Message.Text() != c.text {
					t.Fatalf("got %+v, %v", got, err)
				}
				if _, err := model.Call(t.Context(), m, model.Request{Stream: stream, Messages: modeltest.Answered(modeltest.Stored(t, got.Message))}, nil); err != nil {
					t.Fatal(err)
				}
				wanted := c.want
				if wanted == nil {
					wanted = c.blocks
				}
				var want any
				if err := json.Unmarshal([]byte("["+strings.Join(wanted, ",")+"]"), &want); err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(want, blocksSent(s.Requests()[1])); d != "" {
					t.Error(d)
				}
				other, o := converse(t, "us.anthropic.claude-opus-4-8", nil, message("end_turn", `{"text":"Yes."}`))
				if _, err := model.Call(t.Context(), other, model.Request{Messages: modeltest.Answered(modeltest.Stored(t, got.Message))}, nil); err != nil {
					t.Fatal(err)
				}
				if sent := modeltest.JSON(o.Requests()[0].Body); strings.Contains(sent, "reasoningContent") || strings.Contains(sent, "server_tool_use") {
					t.Errorf("another model got %s", sent)
				}
			})
		}
	}
}

// Sources that a text cites are citations behind it, each once.
func TestCitations(t *testing.T) {
	m, _ := converse(t, "us.amazon.nova-2-lite-v1:0", nil, message("end_turn", `{"citationsContent":{"content":[{"text":"It ships."}],"citations":[
		{"title":"Shop","location":{"web":{"url":"https://a.example/","domain":"a.example"}}},{"title":"Manual","source":"doc-1","sourceContent":[{"text":"Ships on Friday."}],"location":{"documentPage":{"documentIndex":0,"start":3,"end":4}}},
		{"title":"Shop","location":{"web":{"url":"https://a.example/"}}}]}}`))
	got, err := model.Call(t.Context(), m, model.Request{Messages: []chat.Message{chat.Text(chat.User, "When?")}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, b := range got.Message.Blocks {
		blocks = append(blocks, b.Type+" "+b.Text)
	}
	want := []string{"text It ships.", `citation_url {"number":1,"source_id":"https://a.example/","title":"Shop","url":"https://a.example/"}`,
		`citation_document {"number":2,"source_id":"doc-1","title":"Manual","page":3,"text":"Ships on Friday."}`}
	if d := cmp.Diff(want, blocks); d != "" {
		t.Error(d)
	}
}

// A request whose reasoning the model refuses is sent without that of earlier turns, and then
// without any.
func TestItems_Refused(t *testing.T) {
	const refusal = "{\"message\":\"The model returned the following errors: messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation.\"}"
	answer := message("tool_use", `{"reasoningContent":{"reasoningText":{"text":"Hm.","signature":"c2Vh"}}}`, `{"toolUse":{"toolUseId":"a","name":"find_order","input":{}}}`)
	m, s := converse(t, "us.anthropic.claude-opus-5", nil, answer, refusal, refusal, answer)
	got, err := model.Call(t.Context(), m, model.Request{Messages: []chat.Message{chat.Text(chat.User, "Where?")}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	earlier := append(modeltest.Answered(got.Message), chat.Text(chat.Assistant, "Friday."))
	if _, err := model.Call(t.Context(), m, model.Request{Messages: append(earlier, modeltest.Answered(got.Message)...)}, nil); err != nil {
		t.Fatal(err)
	}
	var counts []int
	for _, r := range s.Requests()[1:] {
		counts = append(counts, strings.Count(modeltest.JSON(r.Body), "c2Vh"))
	}
	if fmt.Sprint(counts) != "[2 1 0]" {
		t.Errorf("requests had %v blocks of reasoning", counts)
	}
}

// A model without throughput on demand is served by inference profiles, which the error names.
func TestErrors_Profiles(t *testing.T) {
	m, _ := converse(t, "anthropic.claude-haiku-4-5-20251001-v1:0", nil, `{"message":"Invocation of model ID x with on-demand throughput isn’t supported. Retry your request with the ID or ARN of an inference profile that contains this model."}`)
	_, err := model.Call(t.Context(), m, model.Request{Messages: []chat.Message{chat.Text(chat.User, "Hi.")}}, nil)
	if err == nil || !strings.Contains(err.Error(), "contains this model. Set model_id to a profile: ") || !strings.Contains(err.Error(), "us.anthropic.claude-haiku-4-5-20251001-v1:0") {
		t.Errorf("got %v", err)
	}
}

// The form of an answer is a text in outputConfig for models that cannot be forced to call a
// tool, or that have both; it never has a marker of the prompt cache.
func TestRequest_SchemaForms(t *testing.T) {
	schema := &model.Schema{Name: "place", JSON: []byte(`{"type":"object"}`)}
	for _, c := range []struct {
		model  string
		params map[string]any
		tools  []model.Tool
		want   string
	}{
		{"us.anthropic.claude-opus-5-5", nil, nil, "text"},
		{"us.anthropic.claude-sonnet-5-5", nil, nil, "text"},
		{"us.anthropic.claude-fable-5-1", nil, []model.Tool{{Name: "now"}}, "text"},
		{"us.anthropic.claude-haiku-5-5", map[string]any{"output_config": map[string]any{"effort": "low", "task_budget": map[string]any{"total": 9}}}, nil, "text"},
		{"us.anthropic.claude-sonnet-4-5-20250929-v1:0", nil, []model.Tool{{Name: "now"}}, "text"},
		{"us.anthropic.claude-opus-5-5", nil, nil, "text"},
		{"us.anthropic.claude-opus-4-1-20250805-v1:0", nil, nil, "tool"},
		{"us.anthropic.claude-opus-4-1-20250805-v1:0", nil, []model.Tool{{Name: "now"}}, ""},
		{"us.anthropic.claude-opus-4-1-20250805-v1:0", map[string]any{"thinking": map[string]any{"type": "enabled", "budget_tokens": 1024}}, nil, ""},
		{"us.amazon.nova-lite-v1:0", nil, nil, "tool"},
		{"openai.gpt-oss-120b-1:0", nil, nil, "text"},
		{"meta.llama3-70b-instruct-v1:0", nil, nil, ""},
	} {
		m, s := converse(t, c.model, c.params, message("end_turn", `{"text":"{}"}`))
		if _, err := model.Call(t.Context(), m, model.Request{Schema: schema, Tools: c.tools, Messages: []chat.Message{chat.Text(chat.User, "Where?")}}, nil); err != nil {
			t.Fatal(err)
		}
		body := s.Requests()[0].Body
		config, _ := body["outputConfig"].(object)
		tools, _ := body["toolConfig"].(object)
		got := ""
		switch {
		case config["textFormat"] != nil:
			got = "text"
			if d := cmp.Diff(any(object{"type": "json_schema", "structure": object{"jsonSchema": object{"name": "place", "schema": `{"type":"object"}`}}}), config["textFormat"]); d != "" {
				t.Error(d)
			}
		case tools["toolChoice"] != nil:
			got = "tool"
			if strings.Contains(modeltest.JSON(body), "cachePoint") {
				t.Errorf("%s: a marker for a tool that is the form of one answer", c.model)
			}
		}
		if got != c.want {
			t.Errorf("%s: got the form %q, want %q", c.model, got, c.want)
		}
		if c.model == "us.anthropic.claude-haiku-5-5" {
			own := body["additionalModelRequestFields"]
			if d := cmp.Diff(any(object{"output_config": object{"task_budget": object{"total": 9.0}}}), own); d != "" || config["effort"] != "low" {
				t.Errorf("outputConfig %v, %s", config, d)
			}
		}
	}
}

// A strict tool is bound to its closed schema by models that have it.
func TestRequest_StrictTools(t *testing.T) {
	tool := model.Tool{Name: "now", Strict: true, Parameters: json.RawMessage(`{"type":"object","properties":{"zone":{"type":"string","minLength":2}}}`)}
	for name, strict := range map[string]bool{"us.anthropic.claude-sonnet-4-6": true, "us.anthropic.claude-opus-4-7": false, "us.amazon.nova-lite-v1:0": false} {
		m, s := converse(t, name, nil, message("end_turn", `{"text":"Yes."}`))
		if _, err := model.Call(t.Context(), m, model.Request{Messages: []chat.Message{chat.Text(chat.User, "Where?")}, Tools: []model.Tool{tool}}, nil); err != nil {
			t.Fatal(err)
		}
		body := modeltest.JSON(s.Requests()[0].Body["toolConfig"])
		if strings.Contains(body, `"strict":true`) != strict || strings.Contains(body, `"additionalProperties":false`) != strict {
			t.Errorf("%s: sent %s", name, body)
		}
	}
}

// Newer models keep a system message within the conversation; others get it first.
func TestRequest_SystemWithin(t *testing.T) {
	list := []chat.Message{chat.Text(chat.System, "Be brief."), chat.Text(chat.User, "Hello"), chat.Text(chat.Assistant, "Hi"), chat.Text(chat.System, "It is Friday."), chat.Text(chat.User, "Day?")}
	for name, want := range map[string]string{
		"us.anthropic.claude-opus-5-5":   `[[{"text":"Be brief."}],[{"content":[{"text":"Hello"}],"role":"user"},{"content":[{"text":"Hi"}],"role":"assistant"},{"content":[{"text":"Day?"}],"role":"user"},{"content":[{"text":"It is Friday."}],"role":"system"}]]`,
		"us.anthropic.claude-sonnet-4-6": `[[{"text":"Be brief.\n\nIt is Friday."}],[{"content":[{"text":"Hello"}],"role":"user"},{"content":[{"text":"Hi"}],"role":"assistant"},{"content":[{"text":"Day?"}],"role":"user"}]]`,
	} {
		m, s := converse(t, name, map[string]any{}, message("end_turn", `{"text":"Yes."}`))
		if _, err := model.Call(t.Context(), m, model.Request{Messages: list}, nil); err != nil {
			t.Fatal(err)
		}
		body := s.Requests()[0].Body
		got := regexp.MustCompile(`,?\{"cachePoint":[^}]*\}\}`).ReplaceAllString(modeltest.JSON([]any{body["system"], body["messages"]}), "")
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// Hosted tools are Bedrock's own, next to functions; tiers and betas have the form of Converse.
func TestRequest_HostedTools(t *testing.T) {
	m, s := converse(t, "us.amazon.nova-2-lite-v1:0", map[string]any{"service_tier": "flex", "anthropic_beta": "one", "additional_model_request_fields": map[string]any{"anthropic_beta": []any{"two"}}}, message("end_turn", `{"text":"Yes."}`))
	req := model.Request{Messages: []chat.Message{chat.Text(chat.User, "Where?")}, Tools: []model.Tool{{Hosted: "grounding"}, {Name: "now"}}}
	if _, err := model.Call(t.Context(), m, req, nil); err != nil {
		t.Fatal(err)
	}
	body := s.Requests()[0].Body
	tools := body["toolConfig"].(object)["tools"].([]any)
	if d := cmp.Diff(any(object{"systemTool": object{"name": "nova_grounding"}}), tools[0]); d != "" || len(tools) != 2 {
		t.Errorf("sent %v: %s", tools, d)
	}
	if d := cmp.Diff([]any{object{"type": "flex"}, object{"anthropic_beta": []any{"two", "one"}}}, []any{body["serviceTier"], body["additionalModelRequestFields"]}); d != "" {
		t.Error(d)
	}
	for want, tool := range map[string]model.Tool{
		"aws-bedrock has no hosted tool mcp; it has": {Hosted: "mcp"},
		"the hosted tool grounding has no settings":  {Hosted: "grounding", Settings: json.RawMessage(`{"x":1}`)},
	} {
		req.Tools = []model.Tool{tool}
		if _, err := model.Call(t.Context(), m, req, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// A call that the model has not completed is a temporary error.
func TestAnswer_Malformed(t *testing.T) {
	for _, word := range []string{"malformed_tool_use", "malformed_model_output"} {
		m, _ := converse(t, "us.amazon.nova-2-lite-v1:0", nil, message(word, `{"text":"x"}`))
		_, err := model.Call(t.Context(), m, model.Request{Messages: []chat.Message{chat.Text(chat.User, "Where?")}}, nil)
		if e, ok := err.(*model.Error); !ok || !e.Temporary || e.Code != word { //nolint:errorlint // the client's own
			t.Errorf("got %+v", err)
		}
	}
}
