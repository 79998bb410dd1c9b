package openai_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/server"
)

// FuzzRequest sends any body: the answer is JSON or a stream, and no internal error.
func FuzzRequest(f *testing.F) {
	for _, seed := range []string{
		`{"model":"talk","messages":[{"role":"user","content":"hi"}]}`,
		`{"model":"talk","stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}}]}]}`,
		`{"model":"work","messages":[{"role":"user","content":"weather in Rome"},{"role":"assistant","tool_calls":[{"id":"call_A_b-0","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"call_A_b-0","content":"x"}]}`,
		`{"model":"greet","messages":[{"role":"user","content":"x"}],"inputs":{"name":"a","stars":1e9},"metadata":{"session_id":"s"}}`,
		`{"model":"talk","input":"hi","instructions":"x","previous_response_id":"resp_YQ.B"}`,
		`{"model":"talk","input":[{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"x"},{"role":"user","content":[{"type":"input_text","text":"x"}]}]}`,
		`{"model":"approve","input":[{"type":"mcp_approval_response","approval_request_id":"mcpr_A_b","approve":true}],"conversation":{"id":"c"}}`,
		`{"model":"work","messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}],"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[]}}}`,
		`{"model":"vectors","input":["a","b"],"encoding_format":"base64"}`,
		`null`, `{`, `{"model":null}`, `{"model":"talk","messages":[null]}`, `{"model":"talk","input":[null]}`, `{"model":"talk","messages":[{"role":"user","content":[null]}],"tools":[null]}`,
	} {
		f.Add(seed)
	}
	s := serve(f, nil, server.Options{})
	f.Fuzz(func(t *testing.T, body string) {
		if strings.Contains(body, "slow") {
			t.Skip()
		}
		for _, path := range []string{"/v1/chat/completions", "/v1/responses", "/v1/embeddings"} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
			r.Host = "localhost"
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			s.own.ServeHTTP(w, r)
			if w.Code == http.StatusInternalServerError {
				t.Errorf("%s %s: %d %s", path, body, w.Code, w.Body)
			}
			if w.Header().Get("Content-Type") == "application/json" && !json.Valid(w.Body.Bytes()) {
				t.Errorf("%s %s: invalid JSON %s", path, body, w.Body)
			}
		}
	})
}
