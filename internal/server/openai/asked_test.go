package openai_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/server"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// What a request asks of the answer reaches the model of a flow without an Agent.
func TestChat_Asked(t *testing.T) {
	s := serve(t, nil, server.Options{})
	for _, tt := range []struct{ name, content, more, text, reason string }{
		{"stop", "say one two three", `"stop":[" three","x"]`, "one two", "stop"},
		{"stop in a later part", "say one two three", `"stop":"thr"`, "one two ", "stop"},
		{"beginning of a stop", "say one two three", `"stop":"three four"`, "one two three", "stop"},
		{"form", "a form", `"response_format":{"type":"json_schema","json_schema":{"name":"p","schema":{"type":"object","properties":{"age":{"type":"integer"}},"required":["age"]}}}`,
			`{"age":0}`, "stop"},
		{"token limit", "cut off", `"user":"x"`, "half of", "length"},
		{"content filter", "withhold", `"user":"x"`, "a part", "content_filter"},
	} {
		body := `{"model":"plain","messages":[{"role":"user","content":` + quote(tt.content) + `}],` + tt.more
		c := s.chat("plain", `[{"role":"user","content":`+quote(tt.content)+`}]`, ","+tt.more)
		if got := strings.ReplaceAll(c.text(), ": ", ":"); got != tt.text || *c.Choices[0].Reason != tt.reason {
			t.Errorf("%s: %q, %s", tt.name, c.text(), *c.Choices[0].Reason)
		}
		stream := strings.Join(s.post("/v1/chat/completions", body+`,"stream":true}`).frames(), "\n")
		if !strings.Contains(stream, `"finish_reason":"`+tt.reason+`"`) || !strings.HasSuffix(stream, "[DONE]") {
			t.Errorf("%s as a stream: %s", tt.name, stream)
		}
	}
	const prefixed = `[{"role":"user","content":"hi"},{"role":"assistant","content":"Well,"}]`
	if c := s.chat("plain", prefixed, ""); !strings.Contains(c.text(), "3 messages") || !strings.Contains(c.text(), `"Well,"`) {
		t.Errorf("a last message of the assistant: %s", c.text())
	}
}

// A flow without an Agent calls the tools of the request, and continues with their results.
func TestChat_ToolsWithoutAgent(t *testing.T) {
	s := serve(t, nil, server.Options{})
	const asked = `{"role":"user","content":"weather in Rome"}`
	c := s.chat("talk", "["+asked+"]", weather)
	calls := c.Choices[0].Message.ToolCalls
	if *c.Choices[0].Reason != "tool_calls" || len(calls) != 1 || calls[0].Function.Arguments != `{"city":"Rome"}` {
		t.Fatalf("%+v", c)
	}
	if c := s.chat("talk", history(asked, calls, "rain"), weather); c.text() != arrived {
		t.Errorf("the answer is %q", c.text())
	}
}

// After an error in a stream the connection breaks: no client takes the text so far for the answer.
func TestStream_Broken(t *testing.T) {
	s := serve(t, nil, server.Options{})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/v1/chat/completions",
		strings.NewReader(`{"model":"late","stream":true,"messages":[{"role":"user","content":"think"}]}`))
	testkit.Must(t, err)
	resp, err := http.DefaultClient.Do(req)
	testkit.Must(t, err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err == nil || !strings.Contains(string(body), "thought.") || !strings.Contains(string(body), "is broken late") || strings.Contains(string(body), "[DONE]") {
		t.Errorf("%v after %s", err, body)
	}
}
