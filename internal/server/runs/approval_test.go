package runs_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/runtimetest"
	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/runtime"
)

// payments is an application whose agent calls two tools that require approval at the same time.
const payments = `id: payments
models:
  - type: Model
    id: clerk
    provider: mock
    rules:
      - {after: tool, text: Done.}
      - {match: 'pay (\d+)', tool_calls: [{name: pay, arguments: {order: $1}}, {name: notify, arguments: {order: $1}}]}
memories: [{id: notes, token_limit: 4000}]
tools:
  - {type: FlowTool, id: pay, name: pay, description: Pays, flow: book}
  - {type: FlowTool, id: notify, name: notify, description: Notifies, flow: book}
flows:
  - id: talk
    variables: [{id: message, type: ChatMessage}, {id: answer, type: ChatMessage}]
    inputs: [message]
    outputs: [answer]
    steps: [{type: Agent, id: help, model: clerk, memory: notes, tools: [pay, notify], approve: [pay, notify], parallel_tools: true, inputs: [message], outputs: [answer]}]
  - id: book
    description: Books
    variables: [{id: order, type: int}, {id: receipt, type: text}]
    inputs: [order]
    outputs: [receipt]
    steps: [{type: PromptTemplate, id: write, template: "R{order}", inputs: [order], outputs: [receipt]}]
`

// Approvals of calls that are made at the same time are requested together, and a run that waits
// for them does not delay those of another run.
func TestRun_ParallelApprovals(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.qtype.yaml")
	if err := os.WriteFile(path, []byte(payments), 0o600); err != nil {
		t.Fatal(err)
	}
	app, err := runtimetest.Open(t.Context(), path, runtime.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m := runs.NewManager(runs.Options{})
	t.Cleanup(func() {
		_ = m.Shutdown(t.Context()) // ends the runs, because the context has ended
		_ = app.Close(context.Background())
	})
	waiting := map[string]*runs.Run{}
	for _, session := range []string{"one", "two"} {
		r, err := m.Begin(t.Context(), runs.Start{App: app, Flow: flowOf(t, app, "talk"), Session: session, Events: true, Rows: []map[string]any{{"message": "pay 17"}}})
		if err != nil {
			t.Fatal(err)
		}
		await(t, r, runs.RequestOpened)
		waiting[session] = r
	}
	for session, r := range waiting {
		pending := r.State().Pending
		if len(pending) != 2 || pending[0].Tool != "pay" || pending[1].Tool != "notify" {
			t.Errorf("session %s waits for %+v", session, pending)
		}
		for _, req := range pending {
			if err := m.Answer(asOwner(t, r), r, &runs.Answer{ID: req.ID, Approved: yes()}); err != nil {
				t.Fatal(err)
			}
		}
		events := await(t, r, runs.RunFinished)
		if got := typesOf(events); strings.Count(got, string(runs.ToolReturned)) != 2 {
			t.Errorf("session %s: %s", session, got)
		}
	}
}
