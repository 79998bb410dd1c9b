package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

const citingApp = `
id: library
auths: [{type: api_key, id: k, api_key: "${QTYPE_TEST_UNSET_KEY:-secret-key}"}]
memories: [{id: talks, token_limit: 50000}]
models: [{type: Model, id: writer, provider: anthropic, model_id: claude-opus-5-5, base_url: %q, auth: k}]
flows:
  - id: talk
    variables: [{id: question, type: ChatMessage}, {id: hits, type: "list[SearchResult]"}, {id: answer, type: ChatMessage}]
    inputs: [question, hits]
    outputs: [answer]
    steps: [{type: %s, id: respond, model: writer, memory: talks, system_message: Be brief., sources: hits, inputs: [question], outputs: [answer]}]
`

// TestPassages_Claude: sources are search results before their question, the system message does not
// change with them, and a passage that Claude cites is a source of the answer.
func TestPassages_Claude(t *testing.T) {
	for _, step := range []string{"LLMInference", "Agent"} {
		type request struct{ System, Messages json.RawMessage }
		var got []request
		provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			raw, _ := io.ReadAll(r.Body) // a short read is no JSON
			var body request
			if err := json.Unmarshal(raw, &body); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			got = append(got, body)
			cited := fmt.Sprintf(`{"type":"search_result_location","cited_text":"Text","source":"d%d","title":"[1] d","search_result_index":0,"start_block_index":0,"end_block_index":1}`, len(got))
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"type":"message","role":"assistant","content":[{"type":"text","text":"So it is","citations":[%s]}],"stop_reason":"end_turn"}`, cited)
		}))
		app := openApp(t, fmt.Sprintf(citingApp, provider.URL, step))
		for turn := 1; turn <= 2; turn++ {
			id := fmt.Sprintf("d%d", turn)
			out := runRow(t, app, "talk", "s", map[string]any{"question": fmt.Sprintf("Question %d", turn), "hits": []any{map[string]any{"content": "Text " + id, "doc_id": id, "score": 1.0}}})
			if text := fmt.Sprint(out); !strings.Contains(text, "Text "+id) {
				t.Errorf("%s: the answer has no source %s: %s", step, id, text)
			}
		}
		provider.Close()
		if len(got) != 2 || string(got[0].System) != string(got[1].System) || strings.Contains(string(got[0].System), "Text d") {
			t.Fatalf("%s: the requests are %s", step, got)
		}
		last := string(got[1].Messages)
		if found, question := strings.Index(last, `"source":"d2","title":"[1] d2"`), strings.Index(last, "Question 2"); found < strings.Index(last, "Question 1") || found > question || strings.Contains(last, "Text d1") {
			t.Errorf("%s: the second request has %s", step, last)
		}
	}
}
