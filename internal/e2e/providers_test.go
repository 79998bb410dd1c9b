package e2e_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// TestModel_ProviderProtocols: each provider is called with its protocol, including
// the messages of the memory.
func TestModel_ProviderProtocols(t *testing.T) {
	answers := map[string]string{
		"anthropic": `{"type":"message","content":[{"type":"text","text":"Good morning."}],"stop_reason":"end_turn","usage":{"input_tokens":3,"output_tokens":2}}`,
		"google-ai": `{"candidates":[{"content":{"parts":[{"text":"Good morning."}]},"finishReason":"STOP"}]}`,
		"mistral":   `{"choices":[{"message":{"content":"Good morning."},"finish_reason":"stop"}]}`,
		"ollama":    `{"message":{"content":"Good morning."},"done":true,"done_reason":"stop"}`,
	}
	paths := map[string]string{"anthropic": "/v1/messages", "google-ai": "/v1beta/models/some-model:generateContent", "mistral": "/chat/completions", "ollama": "/api/chat"}
	for provider, body := range answers {
		t.Run(provider, func(t *testing.T) {
			var mu sync.Mutex
			var sent []string
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				raw, _ := io.ReadAll(r.Body) // a short read fails the assertions below
				mu.Lock()
				sent = append(sent, r.URL.Path+" "+string(raw))
				mu.Unlock()
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, body)
			}))
			t.Cleanup(s.Close)
			app := openApp(t, fmt.Sprintf(`
id: app
auths: [{type: api_key, id: k, api_key: "${QTYPE_TEST_UNSET_KEY:-secret-key}"}]
memories: [{id: chat}]
models: [{type: Model, id: writer, provider: %s, model_id: some-model, base_url: "%s", auth: k}]
flows:
  - id: main
    variables: [{id: message, type: ChatMessage}, {id: answer, type: ChatMessage}]
    inputs: [message]
    outputs: [answer]
    steps:
      - {type: LLMInference, id: reply, model: writer, memory: chat, system_message: Be brief., inputs: [message], outputs: [answer]}
`, provider, s.URL))
			for _, message := range []string{"I am Ada.", "Who am I?"} {
				runRow(t, app, "main", "s", map[string]any{"message": message})
			}
			last := sent[len(sent)-1]
			if len(sent) != 2 || !strings.HasPrefix(last, paths[provider]+" ") {
				t.Fatalf("sent %q", sent)
			}
			for _, text := range []string{"Be brief.", "I am Ada.", "Good morning.", "Who am I?"} {
				if !strings.Contains(last, text) {
					t.Errorf("%q was not sent: %s", text, last)
				}
			}
		})
	}
}
