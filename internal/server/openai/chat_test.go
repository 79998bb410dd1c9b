package openai_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/server"
)

// masked replaces what differs between runs.
var masked = regexp.MustCompile(`"(id|created|created_at)":("[^"]*"|\d+)`)

func TestChat_WireFormat(t *testing.T) {
	s := serve(t, nil, server.Options{})
	r := s.post("/v1/chat/completions", `{"model":"talk","messages":[{"role":"user","content":"hello"}],"temperature":0.2,"n":1}`)
	const want = `{"id":"chatcmpl-","object":"chat.completion","created":0,"model":"talk","choices":[{"index":0,"message":{"role":"assistant","content":"[mock] I received 2 messages (14 tokens). The newest one: \"hello\"","refusal":null},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":14,"completion_tokens":19,"total_tokens":33}}`
	got := regexp.MustCompile(`chatcmpl-\w+`).ReplaceAllString(regexp.MustCompile(`"created":\d+`).ReplaceAllString(r.body, `"created":0`), "chatcmpl-")
	if r.status != http.StatusOK || got != want {
		t.Errorf("status %d\n got %s\nwant %s", r.status, got, want)
	}
	if h := r.header; h.Get("X-Ignored-Parameters") != "temperature" || !strings.HasPrefix(h.Get("X-Run-Id"), "run_") || h.Get("Content-Type") != "application/json" {
		t.Errorf("headers %v", h)
	}
}

func TestChat_Stream(t *testing.T) {
	s := serve(t, nil, server.Options{})
	r := s.post("/v1/chat/completions", `{"model":"talk","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"think"}]}`)
	const head = `{"object":"chat.completion.chunk","model":"talk","choices":`
	chunk := func(delta, reason string) string {
		return head + `[{"index":0,"delta":` + delta + `,"logprobs":null,"finish_reason":` + reason + `}],"usage":null}`
	}
	want := []string{
		chunk(`{"role":"assistant","content":""}`, "null"),
		chunk(`{"reasoning_content":"Let "}`, "null"), chunk(`{"reasoning_content":"me "}`, "null"), chunk(`{"reasoning_content":"think."}`, "null"),
		chunk(`{"content":"I "}`, "null"), chunk(`{"content":"have "}`, "null"), chunk(`{"content":"thought."}`, "null"),
		chunk(`{}`, `"stop"`),
		head + `[],"usage":{"prompt_tokens":14,"completion_tokens":4,"total_tokens":18}}`,
		"[DONE]",
	}
	got := strings.Join(r.frames(), "\n")
	got = strings.ReplaceAll(masked.ReplaceAllString(got, ""), "{,", "{")
	got = strings.ReplaceAll(got, ",,", ",")
	if got != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
	if ct := r.header.Get("Content-Type"); !strings.HasPrefix(ct, "text/event-stream") {
		t.Errorf("content type %q", ct)
	}
}

// Without a session the messages of the client are the conversation, to which the policy
// of the memory applies; nothing is stored.
func TestChat_CallersMessages(t *testing.T) {
	s := serve(t, nil, server.Options{})
	const turns = `[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"},{"role":"assistant","content":"d"},{"role":"user","content":"e"}]`
	for model, want := range map[string]string{"talk": "6 messages", "brief": "3 messages", "plain": "6 messages"} {
		for range 2 {
			if c := s.chat(model, turns, ""); !strings.Contains(c.text(), want) {
				t.Errorf("%s: %q, want %s", model, c.text(), want)
			}
		}
	}
	for _, id := range []string{"notes", "short"} {
		sessions, err := s.app.Memory(id).Sessions(t.Context())
		if err != nil || len(sessions) != 0 {
			t.Errorf("memory %s has %v, %v", id, sessions, err)
		}
	}
}

// A session keeps the conversation: only the newest message is new.
func TestChat_Session(t *testing.T) {
	s := serve(t, nil, server.Options{})
	for i, named := range []struct {
		headers []string
		more    string
	}{
		{[]string{"X-Session-Id", "me"}, ""},
		{[]string{"session_id", "me"}, ""},
		{nil, `,"metadata":{"session_id":"me"}`},
	} {
		c := s.chat("talk", `[{"role":"user","content":"ignored"},{"role":"assistant","content":"ignored"},{"role":"user","content":"new"}]`, named.more, named.headers...)
		want := []string{"2 messages", "4 messages", "6 messages"}[i]
		if !strings.Contains(c.text(), want) {
			t.Errorf("turn %d: %q, want %s", i+1, c.text(), want)
		}
	}
	// A flow without a memory has no session: the messages are the conversation.
	if c := s.chat("plain", `[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]`, "", "X-Session-Id", "me"); !strings.Contains(c.text(), "4 messages") {
		t.Errorf("plain: %q", c.text())
	}
	if r := s.post("/v1/chat/completions", `{"model":"talk","messages":[{"role":"user","content":"x"}],"metadata":{"session_id":"a\nb"}}`); r.status != http.StatusBadRequest {
		t.Errorf("invalid session: %d %s", r.status, r.body)
	}
}

// The system messages of the caller come after that of the flow, in each turn, and are
// not stored.
func TestChat_Instructions(t *testing.T) {
	s := serve(t, nil, server.Options{})
	const messages = `[{"role":"system","content":"Be kind."},{"role":"developer","content":"Be brief."},{"role":"user","content":"hi"}]`
	for model, want := range map[string]string{"talk": "3 messages", "plain": "3 messages", "brief": "2 messages"} {
		if c := s.chat(model, messages, ""); !strings.Contains(c.text(), want) {
			t.Errorf("%s: %q, want %s", model, c.text(), want)
		}
	}
	for _, want := range []string{"3 messages", "5 messages", "7 messages"} {
		if c := s.chat("talk", messages, "", "X-Session-Id", "kind"); !strings.Contains(c.text(), want) {
			t.Errorf("session: %q, want %s", c.text(), want)
		}
	}
	for e, err := range s.app.Memory("notes").History(t.Context(), "kind") {
		if err != nil || strings.Contains(e.Message.Text(), "Be kind.") {
			t.Errorf("stored %v, %v", e.Message, err)
		}
	}
}

func TestChat_Inputs(t *testing.T) {
	s := serve(t, nil, server.Options{})
	const messages = `[{"role":"user","content":"hi"}]`
	for _, more := range []string{`,"inputs":{"name":"Ada","stars":5}`, `,"metadata":{"name":"Ada","stars":"5","other":"x"}`} {
		if c := s.chat("greet", messages, more); !strings.Contains(c.text(), "Ada has 5 stars") {
			t.Errorf("%s: %q", more, c.text())
		}
	}
	// Session inputs keep their first values.
	s.chat("greet", messages, `,"inputs":{"name":"Bo","stars":1}`, "X-Session-Id", "bo")
	if c := s.chat("greet", messages, ``, "X-Session-Id", "bo"); !strings.Contains(c.text(), "Bo has 1 stars") {
		t.Errorf("second turn: %q", c.text())
	}
	r := s.post("/v1/chat/completions", `{"model":"greet","messages":`+messages+`}`)
	var f failure
	r.into(t, &f)
	if r.status != http.StatusUnprocessableEntity || !strings.Contains(f.Error.Message, "inputs.name: ") || !strings.Contains(f.Error.Message, "inputs.stars: ") {
		t.Errorf("missing inputs: %d %s", r.status, r.body)
	}
}

func TestChat_Content(t *testing.T) {
	s := serve(t, nil, server.Options{})
	for name, tt := range map[string]struct {
		part, param string
		status      int
	}{
		"image":         {`{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}}`, "", 200},
		"audio":         {`{"type":"input_audio","input_audio":{"data":"UklGRiQAAABXQVZFZm10IA==","format":"wav"}}`, "", 200},
		"file":          {`{"type":"file","file":{"filename":"a.txt","file_data":"aGVsbG8="}}`, "", 200},
		"file URL":      {`{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERi0="}}`, "", 200},
		"address":       {`{"type":"image_url","image_url":{"url":"http://127.0.0.1:1/a.png"}}`, "messages[0].content[1].image_url.url", 422},
		"no image":      {`{"type":"image_url","image_url":{"url":"data:text/plain,hi"}}`, "messages[0].content[1].image_url.url", 400},
		"broken base64": {`{"type":"input_audio","input_audio":{"data":"?"}}`, "messages[0].content[1].input_audio.data", 400},
		"file id":       {`{"type":"file","file":{"file_id":"file-1"}}`, "messages[0].content[1].file.file_id", 400},
		"unknown":       {`{"type":"hologram"}`, "messages[0].content[1].type", 400},
		"no part":       {`3`, "messages[0].content[1]", 400},
	} {
		r := s.post("/v1/chat/completions", `{"model":"talk","messages":[{"role":"user","content":[{"type":"text","text":"see"},`+tt.part+`]}]}`)
		var f failure
		r.into(t, &f)
		if r.status != tt.status || tt.param != "" && (f.Error.Param == nil || *f.Error.Param != tt.param) {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
}

// Parameters either have their meaning, or no effect that a header names, or are refused.
func TestChat_Parameters(t *testing.T) {
	s := serve(t, nil, server.Options{})
	for _, tt := range []struct {
		params, param string
		status        int
		ignored       string
	}{
		{`"temperature":1,"top_p":null,"max_tokens":5,"user":"x","seed":1`, "", 200, "max_tokens, seed, temperature, user"},
		{`"n":1,"logprobs":false,"stop":[],"response_format":{"type":"text"},"store":false,"parallel_tool_calls":true,"tool_choice":"auto"`, "", 200, ""},
		{`"n":2`, "n", 400, ""},
		{`"logprobs":true`, "logprobs", 400, ""},
		{`"stop":["a","b","c","d","e"]`, "stop", 400, ""},
		{`"stop":5`, "stop", 400, ""},
		{`"response_format":{"type":"json_schema"}`, "response_format", 400, ""},
		{`"response_format":{"type":"grammar"}`, "response_format.type", 400, ""},
		{`"store":true`, "store", 400, ""},
		{`"modalities":["audio"]`, "modalities", 400, ""},
		{`"functions":[{"name":"f"}]`, "functions", 400, ""},
		{`"tool_choice":"always"`, "tool_choice", 400, ""},
		{`"tool_choice":"required"`, "tool_choice", 400, ""}, // there are no tools
		{`"tool_choice":{"type":"function","function":{"name":"f"}}`, "tool_choice", 400, ""},
		{`"tools":[{"type":"web_search"}]`, "tools[0].type", 400, ""},
		{`"tools":[{"type":"function","function":{"name":"a b"}}]`, "tools[0].function.name", 400, ""},
		{`"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"array"}}}]`, "tools[0].function.parameters", 400, ""},
		{`"tools":[{"type":"function","function":{"name":"f"}}]`, "", 200, ""},
		{`"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"none"`, "", 200, ""},
		{`"tools":3`, "tools", 400, ""},
		{`"stream":"yes"`, "stream", 400, ""},
		{`"stream_options":{"include_usage":true}`, "stream_options", 400, ""},
		{`"metadata":{"a":1}`, "metadata", 400, ""},
		{`"inputs":{"unknown":1}`, "inputs.unknown", 400, ""},
		{`"temprature":1,"num_ctx":8`, "", 200, "num_ctx, temprature"},
	} {
		r := s.post("/v1/chat/completions", `{"model":"talk","messages":[{"role":"user","content":"hi"}],`+tt.params+`}`)
		var f failure
		r.into(t, &f)
		param := ""
		if f.Error.Param != nil {
			param = *f.Error.Param
		}
		if r.status != tt.status || param != tt.param || r.header.Get("X-Ignored-Parameters") != tt.ignored {
			t.Errorf("%s: %d %s, ignored %q", tt.params, r.status, r.body, r.header.Get("X-Ignored-Parameters"))
		}
	}
}

func TestChat_InvalidMessages(t *testing.T) {
	s := serve(t, nil, server.Options{})
	for body, param := range map[string]string{
		`{"model":"talk"}`:               "messages",
		`{"messages":[]}`:                "model",
		`{"model":3}`:                    "model",
		`{"model":"talk","messages":[]}`: "messages",
		`{"model":"talk","messages":{}}`: "messages",
		`{"model":"talk","messages":[{"role":"system","content":"x"}]}`:           "messages",
		`{"model":"talk","messages":[{"role":"robot","content":"x"}]}`:            "messages[0].role",
		`{"model":"talk","messages":[{"role":"user"}]}`:                           "messages[0].content",
		`{"model":"talk","messages":[{"role":"user","content":7}]}`:               "messages[0].content",
		`{"model":"talk","messages":[{"role":"assistant","content":"x"}]}`:        "messages[0].role",
		`{"model":"talk","messages":[{"role":"tool","content":"x"}]}`:             "messages[0].tool_call_id",
		`{"model":"work","messages":[{"role":"tool","tool_call_id":"call_1_2"}]}`: "messages[0].tool_call_id",
		`{"model":"talk","messages":[{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"user","content":"x"}]}`: "messages[1]",
	} {
		r := s.post("/v1/chat/completions", body)
		var f failure
		r.into(t, &f)
		if r.status != http.StatusBadRequest || f.Error.Param == nil || *f.Error.Param != param {
			t.Errorf("%s: %d %s", body, r.status, r.body)
		}
	}
}

// An approval has no form in chat completions: the run waits for one by other means.
func TestChat_Approval(t *testing.T) {
	s := serve(t, nil, server.Options{})
	for _, more := range []string{"", `,"stream":true`} {
		r := s.post("/v1/chat/completions", `{"model":"approve","messages":[{"role":"user","content":"refund 7"}]`+more+`}`)
		var f failure
		r.into(t, &f)
		if r.status != http.StatusUnprocessableEntity || f.Error.Code != "approval_required" {
			t.Errorf("%d %s", r.status, r.body)
		}
	}
}

// A session whose run waits for an approval takes no other message.
func TestChat_ApprovalPending(t *testing.T) {
	s := serve(t, nil, server.Options{})
	body := `{"model":"approve","messages":[{"role":"user","content":"refund 7"}]}`
	s.post("/v1/chat/completions", body, "X-Session-Id", "desk")
	r := s.post("/v1/chat/completions", body, "X-Session-Id", "desk")
	var f failure
	r.into(t, &f)
	if r.status != http.StatusConflict || f.Error.Code != "approval_pending" || r.header.Get("X-Should-Retry") != "false" {
		t.Errorf("%d %s", r.status, r.body)
	}
}

// A client that sends a request again with its key gets the same run.
func TestChat_IdempotencyKey(t *testing.T) {
	s := serve(t, nil, server.Options{})
	const body = `{"model":"talk","messages":[{"role":"user","content":"hi"}]}`
	first := s.post("/v1/chat/completions", body, "Idempotency-Key", "k", "X-Session-Id", "s")
	again := s.post("/v1/chat/completions", body, "Idempotency-Key", "k", "X-Session-Id", "s")
	if first.status != 200 || first.header.Get("X-Run-Id") != again.header.Get("X-Run-Id") {
		t.Errorf("runs %s and %s", first.body, again.body)
	}
	if other := s.post("/v1/chat/completions", strings.Replace(body, "hi", "ho", 1), "Idempotency-Key", "k", "X-Session-Id", "s"); other.status != http.StatusConflict {
		t.Errorf("another request: %d %s", other.status, other.body)
	}
}
