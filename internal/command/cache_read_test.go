package command

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/qtype-dev/qtype/internal/cli"
)

// caches is a flow with a cache and no memory.
const caches = `id: caches
models: [{type: Model, id: m, provider: openai, model_id: gpt-6-luna, base_url: "%s/v1", retry: {max_attempts: 1}}]
flows:
  - id: main
    variables: [{id: text, type: text}, {id: answer, type: text}]
    inputs: [text]
    outputs: [answer]
    steps: [{type: LLMInference, id: say, model: m, cache_config: {}, inputs: [text], outputs: [answer]}]
`

// TestCache_OneRead: qtype cache reads a document, and what it includes, once.
func TestCache_OneRead(t *testing.T) {
	application, flows, _ := strings.Cut(fmt.Sprintf(caches, "http://127.0.0.1:1"), "flows:\n")
	var reads atomic.Int64
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reads.Add(1)
		fmt.Fprint(w, flows)
	}))
	defer site.Close()
	inFolder(t, map[string]string{"caches.qtype.yaml": application + "flows: !include " + site.URL + "/flows.yaml\n"})
	t.Setenv("NO_PROXY", "*")
	if out, code := call(t, "cache", "stats", "caches.qtype.yaml"); code != cli.ExitDone || out != "" || reads.Load() != 1 {
		t.Errorf("status %d, output %q, %d reads", code, out, reads.Load())
	}
}
