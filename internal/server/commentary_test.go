package server_test

import (
	"context"
	"iter"
	"net/http"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/server"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// commentingModel reasons, comments, and answers.
type commentingModel struct{ info model.Info }

func (m commentingModel) Info() model.Info { return m.info }

func (m commentingModel) Generate(context.Context, model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		answer := chat.Message{ID: chat.NewID(), Role: chat.Assistant, Origin: &chat.Origin{API: "responses"}, Blocks: []chat.Block{
			{Type: chat.ReasoningType, Text: "Hm.", Item: &chat.Item{Field: "reasoning", JSON: `{"secret":1}`}},
			{Type: chat.CommentaryType, Text: "I look."}, {Type: "text", Text: "Done."}}}
		for _, ev := range []model.Event{{Reasoning: "Hm."}, {Commentary: "I "}, {Commentary: "look."}, {Text: "Done."},
			{Response: &model.Response{Message: answer, Finish: "stop"}}} {
			if !yield(ev, nil) {
				return
			}
		}
	}
}

const commentingDocument = `
id: desk
models: [{type: Model, id: clerk, provider: openai}]
memories: [{id: talks, policy: message_window, max_messages: 40}]
flows:
  - id: talk
    interface: {type: Conversational}
    variables: [{id: message, type: ChatMessage}, {id: answer, type: ChatMessage}]
    inputs: [message]
    outputs: [answer]
    steps: [{type: LLMInference, id: reply, model: clerk, memory: talks, inputs: [message], outputs: [answer]}]
`

func serveCommenting(t *testing.T) *testServer {
	path := testkit.WriteFile(t, "app.qtype.yaml", commentingDocument)
	mocks := runtime.Mocks{Model: func(m *spec.Model) (model.Chat, error) { return commentingModel{model.Describe(m)}, nil }}
	return serveApp(t, openApp(t, path, qtype.WithMocks(mocks)), server.Options{})
}

// Each protocol has commentary in a form that its clients do not take for the answer.
func TestCommentary_Protocols(t *testing.T) {
	s := serveCommenting(t)
	question := `"messages": [{"role": "user", "content": "hi"}]`
	for name, c := range map[string]struct {
		path, body string
		want       []string
		headers    []string
	}{
		"AI SDK": {"/flows/talk/stream", chatOf("c", "hi"), []string{`{"type":"reasoning-start","id":"com_2","providerMetadata":{"qtype":{"phase":"commentary"}}}`,
			`{"type":"reasoning-delta","id":"com_2","delta":"look."}`, `{"type":"text-delta","id":"txt_3","delta":"Done."}`}, nil},
		"AG-UI":                     {"/flows/talk/agui", aguiOf("a", `{"id": "m", "role": "user", "content": "hi"}`, ""), []string{`"type":"REASONING_MESSAGE_CONTENT"`, `"delta":"look."`, `"delta":"Done."`}, nil},
		"chat completions":          {"/v1/chat/completions", `{"model": "talk", ` + question + `}`, []string{`"content":"Done."`, `"reasoning_content":"Hm.\n\nI look."`}, nil},
		"chat completions, streams": {"/v1/chat/completions", `{"model": "talk", "stream": true, ` + question + `}`, []string{`{"reasoning_content":"look."}`, `{"content":"Done."}`}, nil},
		"responses": {"/v1/responses", `{"model": "talk", "input": "hi"}`, []string{`"type":"message","role":"assistant","phase":"commentary","status":"completed","content":[{"type":"output_text","text":"I look."`,
			`"type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Done."`}, nil},
		"responses, streams": {"/v1/responses", `{"model": "talk", "input": "hi", "stream": true}`, []string{`"phase":"commentary"`, `"delta":"look."`}, nil},
		"A2A": {"/flows/talk/a2a", `{"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": {"message": {"messageId": "1", "role": "ROLE_USER", "parts": [{"text": "hi"}]}}}`,
			[]string{`"parts":[{"text":"I look."}]`, `"state":"TASK_STATE_WORKING"`, `"parts":[{"text":"Done."}]`}, []string{"A2A-Version", "1.0"}},
	} {
		got := s.post(c.path, c.body, c.headers...)
		for _, want := range c.want {
			if !strings.Contains(got.body, want) {
				t.Errorf("%s: %s is missing in\n%s", name, want, got.body)
			}
		}
		if strings.Contains(got.body, "secret") {
			t.Errorf("%s: it has the item: %s", name, got.body)
		}
	}
}

// The events of a run have commentary by a separate type; its result has the answer only, and the stored
// conversation all but the item.
func TestCommentary_RunAndSession(t *testing.T) {
	s := serveCommenting(t)
	got := s.post("/flows/talk/stream", chatOf("c", "hi"))
	events := s.do("GET", "/runs/"+got.header.Get("X-Run-Id")+"/events", "").body
	for _, want := range []string{"event: reasoning.delta", "event: commentary.delta", `"text":"look."`, `"answer":{"role":"assistant","blocks":[{"type":"text","content":"Done."}]}`} {
		if !strings.Contains(events, want) {
			t.Errorf("%s is missing in\n%s", want, events)
		}
	}
	stored := s.do("GET", "/sessions/c/messages", "").body
	want := `{"type":"reasoning","text":"Hm.","state":"done"},{"type":"reasoning","text":"I look.","state":"done","providerMetadata":{"qtype":{"phase":"commentary"}}},{"type":"text","text":"Done.","state":"done"}`
	if !strings.Contains(stored, want) {
		t.Errorf("the session has %s", stored)
	}
	if trace := s.do("GET", "/runs/"+got.header.Get("X-Run-Id")+"/trace", "").body; strings.Contains(trace+events+stored, "secret") || !strings.Contains(trace, "[item reasoning, 12 bytes]") {
		t.Errorf("the trace is %s", trace)
	}
}

// A caller must not pass off reasoning, items or an origin as a model's.
func TestCallers_GiveNoModelsBlocks(t *testing.T) {
	s := serve(t)
	for name, m := range map[string]string{
		"reasoning":  `{"role": "assistant", "blocks": [{"type": "reasoning", "content": "x"}]}`,
		"commentary": `{"role": "assistant", "blocks": [{"type": "commentary", "content": "x"}]}`,
		"item":       `{"role": "assistant", "blocks": [{"type": "item", "content": "", "item": {"field": "a", "json": "{}"}}]}`,
		"an item":    `{"role": "user", "blocks": [{"type": "text", "content": "x", "item": {"field": "a", "json": "{}"}}]}`,
		"origin":     `{"role": "user", "blocks": [{"type": "text", "content": "x"}], "origin": {"api": "messages"}}`,
	} {
		if got := s.post("/flows/talk", `{"message": `+m+`}`); got.status != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
}
