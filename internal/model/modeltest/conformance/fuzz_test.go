package conformance_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/qtype-dev/qtype/internal/model/modeltest/conformance"
)

// FuzzHandler: no request ends the server; what is not a request is refused.
func FuzzHandler(f *testing.F) {
	paths := []string{"/tool/openai/v1/chat/completions", "/tool/openai/v1/responses", "/pause/anthropic/v1/messages", "/tool/google/v1beta/models/gemini-4-argon:generateContent",
		"/tool/bedrock/model/us.anthropic.claude-opus-5/converse", "/tool/ollama/api/chat", "/tool/vertex/v1/models/claude-opus-5-5:rawPredict", "/tool/minimax/v1/chat/completions", "/tool/mistral/v1/chat/completions"}
	for i, body := range []string{`{"messages":"x","tools":[1,{"function":null}]}`, `{"input":[{"type":7},null,{"type":"function_call"}],"tools":{}}`, `{"messages":[{"role":"assistant","content":[{"type":"thinking","signature":"cWMxCg=="}]}]}`,
		`{"contents":[null,{"parts":[{"functionCall":{}}],"role":"model"}]}`, `{"messages":[{"content":[{"reasoningContent":{"reasoningText":1}}]}]}`, `{"messages":[{"role":"assistant","tool_calls":[{}]}]}`, `{"system":[],"messages":[{}]}`, `[]`, `{"messages":[{"role":"assistant","content":"</think>"}]}`} {
		f.Add(i, []byte(body))
	}
	f.Fuzz(func(t *testing.T, path int, body []byte) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, paths[uint(path)%uint(len(paths))], bytes.NewReader(body))
		w := httptest.NewRecorder()
		(&conformance.Handler{}).ServeHTTP(w, r)
		if w.Code != http.StatusOK && w.Code/100 != 4 {
			t.Errorf("got %d: %s", w.Code, w.Body)
		}
	})
}
