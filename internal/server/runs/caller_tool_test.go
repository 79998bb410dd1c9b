package runs_test

import (
	"context"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/runtimetest"
	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/runtime"
)

// A run whose client does not send the results of its tools ends.
func TestRun_ClientIsGone(t *testing.T) {
	app, err := runtimetest.Open(t.Context(), "../openai/testdata/app.qtype.yaml", runtime.Options{Store: memory.NewInProcess()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = app.Close(context.Background()) })
	m := runs.NewManager(runs.Options{MaxWait: time.Millisecond})
	defer func() { _ = m.Shutdown(t.Context()) }()
	r, err := m.Begin(t.Context(), runs.Start{App: app, Flow: flowOf(t, app, "work"), Session: "s", Events: true,
		Rows: []map[string]any{{"message": "weather in Rome and Oslo"}}, Tools: []runs.CallerTool{{Name: "get_weather"}}})
	if err != nil {
		t.Fatal(err)
	}
	await(t, r, runs.RunFinished)
	if s := r.State(); s.Status != runs.Failed || len(s.Pending) != 0 || s.Error != "the client did not send the results of its tools in time" {
		t.Errorf("state %+v", s)
	}
}
