package anthropic_test

import (
	"encoding/json"
	"testing"

	"github.com/qtype-dev/qtype/internal/model/anthropic"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/model/modeltest"
	"github.com/qtype-dev/qtype/spec/chat"
)

// FuzzAnswer reads answers of any form, whole and streamed. What is read as a message can be stored
// and sent back.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		omitted, summary, call, search, found, cited, `null`, `1`, `{}`, `{"type":1}`, `{"type":"text"}`, `{"type":"tool_use","input":[1]}`,
		`{"type":"text_delta","text":"x"}`, `{"type":"citations_delta","citation":null}`, `{"type":"input_json_delta","partial_json":"{"}`, `{"type":"new_delta","a":[null],"a":2}`,
	} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, begin, delta string) {
		if !json.Valid([]byte(begin)) || !json.Valid([]byte(delta)) {
			t.Skip()
		}
		const end = "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n"
		record := func(kind, member, value string) string {
			raw, err := json.Marshal(map[string]json.RawMessage{"type": json.RawMessage(`"` + kind + `"`), member: json.RawMessage(value)})
			if err != nil {
				t.Fatal(err)
			}
			return "data: " + string(raw) + "\n\n"
		}
		for kind, body := range map[string]string{
			"application/json":  `{"type":"message","content":[` + begin + `],"stop_reason":"end_turn"}`,
			"text/event-stream": record("content_block_start", "content_block", begin) + record("content_block_delta", "delta", delta) + end,
		} {
			s := modeltest.Serve(t, modeltest.Respond(200, kind, body), modeltest.Respond(200, "application/json", `{"type":"message","content":[],"stop_reason":"end_turn"}`))
			target := modeltest.Target{Info: model.Info{ID: "m", Name: "claude"}, URL: s.URL, HTTP: s.Client()}
			m, err := anthropic.New(anthropic.Config{Config: target.Config()})
			if err != nil {
				t.Fatal(err)
			}
			got, err := model.Call(t.Context(), m, model.Request{Stream: kind != "application/json", Messages: []chat.Message{chat.Text(chat.User, "a")}}, nil)
			if err != nil {
				continue
			}
			raw, err := json.Marshal(got.Message)
			if err != nil {
				t.Fatal(err)
			}
			var stored chat.Message
			if err := json.Unmarshal(raw, &stored); err != nil {
				t.Fatalf("%s: %v", raw, err)
			}
			if _, err := model.Call(t.Context(), m, model.Request{Messages: []chat.Message{chat.Text(chat.User, "a"), stored, chat.Text(chat.User, "b")}}, nil); err != nil {
				t.Fatalf("%s: %v", raw, err)
			}
		}
	})
}
