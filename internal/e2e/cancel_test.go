package e2e_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/runtime"
)

// hangingDocument has one flow for each operation that can block; HANGS is a server
// that accepts requests and never responds.
const hangingDocument = `id: app
models:
  - {type: Model, id: slow, provider: openai, model_id: gpt-6-luna, base_url: 'HANGS/v1'}
  - {type: Model, id: broken, provider: mock, rules: [{status: 500, error: down}], retry: {max_attempts: 3, initial_delay: 1h, max_delay: 1h}}
  - {type: Model, id: rare, provider: mock, rate_limit: {requests_per_minute: 1}}
memories: [{id: talk}]
tools:
  - {type: APITool, id: call, name: call, description: Calls., endpoint: 'HANGS/', allow_private: true, inputs: [{id: x, type: text}], outputs: [{id: y, type: text}]}
flows:
  - id: model
    variables: [{id: x, type: text}, {id: y, type: text}]
    inputs: [x]
    outputs: [y]
    steps: [{type: LLMInference, id: ask_slow, model: slow, memory: talk, inputs: [x], outputs: [y]}]
  - id: agent
    variables: [{id: x, type: text}, {id: y, type: text}]
    inputs: [x]
    outputs: [y]
    steps: [{type: Agent, id: work, model: slow, tools: [call], inputs: [x], outputs: [y], concurrency_config: {num_workers: 3}}]
  - id: tool
    variables: [{id: x, type: text}, {id: y, type: text}]
    inputs: [x]
    outputs: [y]
    steps: [{type: InvokeTool, id: use, tool: call, input_bindings: {x: x}, output_bindings: {y: y}}]
  - id: model_retry
    variables: [{id: x, type: text}, {id: y, type: text}]
    inputs: [x]
    outputs: [y]
    steps: [{type: LLMInference, id: ask_broken, model: broken, inputs: [x], outputs: [y]}]
  - id: rate_limit
    variables: [{id: x, type: text}, {id: y, type: text}]
    inputs: [x]
    outputs: [y]
    steps: [{type: LLMInference, id: ask_rare, model: rare, inputs: [x], outputs: [y]}]
  - id: step_retry
    variables: [{id: x, type: text}, {id: y, type: text}]
    inputs: [x]
    outputs: [y]
    steps: [{type: Decoder, id: read, format: json, inputs: [x], outputs: [y], retry: {max_attempts: 2, initial_delay: 1h, max_delay: 1h}}]
  - id: nested
    variables: [{id: x, type: text}, {id: y, type: text}]
    inputs: [x]
    outputs: [y]
    steps: [{type: InvokeFlow, id: go_in, flow: model, input_bindings: {x: x}, output_bindings: {y: y}}]
  - id: parallel
    variables: [{id: x, type: text}, {id: y, type: text}, {id: n, type: int}]
    inputs: [x]
    outputs: [y, n]
    steps: [{type: Parallel, id: both, flows: [model, query], inputs: [x], outputs: [y, n]}]
  - id: endless
    variables: [{id: x, type: text}]
    inputs: [x]
    outputs: [x]
    steps: [{type: Echo, id: same, inputs: [x], outputs: [x]}]
  - id: loop
    variables: [{id: x, type: text}]
    inputs: [x]
    outputs: [x]
    steps: [{type: Loop, id: round, flow: endless, max_iterations: 1000000000, inputs: [x], outputs: [x]}]
  - id: query
    variables: [{id: x, type: text}, {id: n, type: int}]
    inputs: [x]
    outputs: [n]
    steps:
      - type: SQLSource
        id: count
        connection: 'sqlite://'
        query: 'WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM c) SELECT max(n) AS n FROM c'
        inputs: [x]
        outputs: [n]
  - id: group
    variables: [{id: x, type: text}, {id: all, type: 'list[text]'}]
    inputs: [x]
    outputs: [all]
    steps: [{type: Collect, id: gather, inputs: [x], outputs: [all], batch_config: {batch_size: 1000, max_wait: 1h}}]
`

// TestRun_CancelEndsAllSteps: a canceled run returns, in every blocking operation.
func TestRun_CancelEndsAllSteps(t *testing.T) {
	gone := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-gone:
		}
	}))
	defer server.Close()
	defer close(gone)
	app := openApp(t, strings.ReplaceAll(hangingDocument, "HANGS", server.URL))
	enough := errors.New("enough")
	for _, f := range app.Spec().Flows {
		if f.ID == "endless" {
			continue
		}
		t.Run(f.ID, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(150*time.Millisecond, func() { cancel(enough) }) // while the step blocks: none of them ends without cancellation
			var last error
			rows := slices.Repeat([]runtime.Input{{Session: "s", Values: map[string]any{"x": "one"}}}, 3)
			input := func(yield func(runtime.Input) bool) {
				for _, row := range rows {
					if !yield(row) {
						return
					}
				}
				<-ctx.Done() // no end of input until then
			}
			for row, err := range app.Run(ctx, f.ID, input) {
				if err != nil {
					last = err
				} else if row.Err != nil {
					t.Errorf("a row failed: %v", row.Err)
				}
			}
			if !errors.Is(last, enough) {
				t.Errorf("the run ended with %v", last)
			}
		})
	}
}
