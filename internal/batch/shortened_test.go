package batch_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/batch"
)

// The summary has the number of requests that were sent again without the oldest messages.
func TestRun_Shortened(t *testing.T) {
	calls := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if calls++; calls == 2 {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		_, _ = w.Write([]byte(`{"choices":[{"message":{"role":"assistant","content":"fine"},"finish_reason":"stop"}]}`))
	}))
	defer server.Close()
	document := fmt.Sprintf(`id: app
models:
  - {type: Model, id: m, provider: openai, model_id: gpt-6-luna, base_url: '%s/v1', retry: {max_attempts: 1}}
memories:
  - {id: mem, policy: unbounded}
flows:
  - id: main
    variables: [{id: x, type: text}, {id: y, type: text}]
    inputs: [x]
    outputs: [y]
    steps:
      - {type: LLMInference, id: ask, model: m, memory: mem, inputs: [x], outputs: [y]}
`, server.URL)
	t.Setenv("OPENAI_API_KEY", "k")
	_, errs, err := run(t, map[string]string{"app.qtype.yaml": document}, "", batch.Config{Input: `[{"x":"a","session":"s"},{"x":"b","session":"s"}]`})
	if err != nil {
		t.Fatal(err)
	}
	if want := "sent again without the oldest messages: 1 request\n"; !strings.Contains(errs, want) {
		t.Errorf("no %q in\n%s", want, errs)
	}
}
