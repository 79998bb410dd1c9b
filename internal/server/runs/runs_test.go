package runs_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/runtimetest"
	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/storetest"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open returns the application of the approval example over a store.
func open(t *testing.T, store memory.Store) *runtime.App {
	t.Helper()
	app, err := runtimetest.Open(t.Context(), "../../../examples/approval/app.qtype.yaml", runtime.Options{Store: storetest.Shared(store)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = app.Close(context.Background()) })
	return app
}

func flowOf(t *testing.T, app *runtime.App, id string) *spec.Flow {
	t.Helper()
	f, err := app.Flow(id)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// asOwner returns a context with the caller who has started a run.
func asOwner(t *testing.T, r *runs.Run) context.Context {
	t.Helper()
	return access.WithPrincipal(t.Context(), access.Principal{Name: r.Owner})
}

// await follows a run until an event of a type, and returns all events so far.
func await(t *testing.T, r *runs.Run, typ runs.Type) []runs.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var all []runs.Event
	for {
		events, err := r.Next(ctx, len(all))
		if err != nil || len(events) == 0 {
			t.Fatalf("no %s: %v; events %v", typ, err, typesOf(all))
		}
		all = append(all, events...)
		if slices.ContainsFunc(events, func(ev runs.Event) bool { return ev.Type == typ }) {
			return all
		}
	}
}

func typesOf(events []runs.Event) string {
	var names []string
	for _, ev := range events {
		names = append(names, string(ev.Type))
	}
	return strings.Join(names, " ")
}

func talk(t *testing.T, app *runtime.App) runs.Start {
	return runs.Start{App: app, Flow: flowOf(t, app, "talk"), Owner: "ada", Session: "ada/s", Events: true, Durable: true, Digest: "1",
		ID: "run_1", Rows: []map[string]any{{"message": "Please refund order 8812"}}}
}

func yes() *bool { v := true; return &v }

func TestRun_WaitsForApproval(t *testing.T) {
	store := memory.NewInProcess()
	app := open(t, store)
	m := runs.NewManager(runs.Options{})
	defer func() { _ = m.Shutdown(t.Context()) }()
	r, err := m.Begin(t.Context(), talk(t, app))
	if err != nil {
		t.Fatal(err)
	}
	await(t, r, runs.RequestOpened)
	s := r.State()
	if s.Status != runs.Waiting || len(s.Pending) != 1 || s.Pending[0].Kind != runs.Approval || string(s.Pending[0].Arguments) != `{"order":8812}` {
		t.Fatalf("state %+v", s)
	}
	id := s.Pending[0].ID
	for name, a := range map[string]*runs.Answer{"unknown": {ID: "x", Approved: yes()}, "incomplete": {ID: id}} {
		if err := m.Answer(asOwner(t, r), r, a); err == nil {
			t.Errorf("%s answer was accepted", name)
		}
	}
	if err := m.Answer(asOwner(t, r), r, &runs.Answer{ID: id, Approved: yes()}); err != nil {
		t.Fatal(err)
	}
	events := await(t, r, runs.RunFinished)
	if last := events[len(events)-1]; last.Text != string(runs.Succeeded) {
		t.Errorf("ended with %+v", last)
	}
	if err := m.Answer(asOwner(t, r), r, &runs.Answer{ID: id, Approved: yes()}); !errors.Is(err, runs.ErrAnswered) {
		t.Errorf("second answer: %v", err)
	}
	for _, want := range []runs.Type{runs.RunStarted, runs.StepStarted, runs.ToolCalled, runs.RequestOpened, runs.RequestAnswered, runs.ToolReturned, runs.TextDelta, runs.StepFinished, runs.RowFinished} {
		if !strings.Contains(typesOf(events), string(want)) {
			t.Errorf("no %s in %s", want, typesOf(events))
		}
	}
}

// A run that waits when its process shuts down continues in the next one: the model is
// not called again, and the memory has one turn.
func TestRun_SurvivesRestart(t *testing.T) {
	store, state := memory.NewInProcess(), memory.NewInProcess()
	first := runs.NewManager(runs.Options{State: in(state)})
	r, err := first.Begin(t.Context(), talk(t, open(t, store)))
	if err != nil {
		t.Fatal(err)
	}
	before := await(t, r, runs.RequestOpened)
	if err := first.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	app := open(t, store)
	second := runs.NewManager(runs.Options{State: in(state)})
	defer func() { _ = second.Shutdown(t.Context()) }()
	snapshot, err := second.Find(t.Context(), app, "ada", "run_1")
	if err != nil || snapshot == nil || len(snapshot.State().Pending) != 1 {
		t.Fatalf("stored run: %+v, %v", snapshot, err)
	}
	// The answer may come before the run continues.
	if err := second.Answer(asOwner(t, snapshot), snapshot, &runs.Answer{ID: snapshot.State().Pending[0].ID, Approved: yes()}); err != nil {
		t.Fatal(err)
	}
	if n, err := second.Resume(t.Context(), app); n != 1 || err != nil {
		t.Fatalf("resumed %d, %v", n, err)
	}
	r, err = second.Find(t.Context(), app, "ada", "run_1")
	if err != nil {
		t.Fatal(err)
	}
	after := await(t, r, runs.RunFinished)
	if got := after[len(after)-1]; got.Text != string(runs.Succeeded) {
		t.Errorf("ended with %+v", got)
	}
	if usage(before) != 1 || usage(after) != 2 {
		t.Errorf("usage events: %d before, %d after", usage(before), usage(after))
	}
	var roles []string
	for e, err := range app.Memory("desk").History(t.Context(), "ada/s") {
		if err != nil {
			t.Fatal(err)
		}
		roles = append(roles, string(e.Message.Role))
	}
	if got := strings.Join(roles, " "); got != "user assistant tool assistant" {
		t.Errorf("history: %s", got)
	}
	if n, err := second.Resume(t.Context(), app); n != 0 || err != nil {
		t.Errorf("resumed again: %d, %v", n, err)
	}
}

func usage(events []runs.Event) int {
	n := 0
	for _, ev := range events {
		if ev.Type == runs.UsageReported {
			n++
		}
	}
	return n
}

// The id of a durable run is an idempotency key.
func TestManager_BeginTwice(t *testing.T) {
	state := memory.NewInProcess()
	app := open(t, memory.NewInProcess())
	m := runs.NewManager(runs.Options{State: in(state)})
	defer func() { _ = m.Shutdown(t.Context()) }()
	r, err := m.Begin(t.Context(), talk(t, app))
	if err != nil {
		t.Fatal(err)
	}
	again, err := m.Begin(t.Context(), talk(t, app))
	if err != nil || again != r {
		t.Errorf("second Begin: %v, %v", again, err)
	}
	other := talk(t, app)
	other.Digest = "2"
	if _, err := m.Begin(t.Context(), other); !errors.Is(err, runs.ErrDigest) {
		t.Errorf("another request: %v", err)
	}
	if found, err := m.Find(t.Context(), app, "eve", "run_1"); found != nil || err != nil {
		t.Errorf("another owner found %v, %v", found, err)
	}
	if err := m.Cancel(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	events := await(t, r, runs.RunFinished)
	if got := events[len(events)-1].Text; got != string(runs.Cancelled) {
		t.Errorf("ended with %s", got)
	}
	// After the end, the result is that of the store in every process.
	other2 := runs.NewManager(runs.Options{State: in(state)})
	defer func() { _ = other2.Shutdown(t.Context()) }()
	stored, err := other2.Begin(t.Context(), talk(t, app))
	if err != nil || stored.State().Status != runs.Cancelled {
		t.Errorf("stored run: %+v, %v", stored, err)
	}
}

// An answer that another process receives reaches the process that runs the run.
func TestManager_AnswerElsewhere(t *testing.T) {
	state := memory.NewInProcess()
	app := open(t, memory.NewInProcess())
	one, two := runs.NewManager(runs.Options{State: in(state)}), runs.NewManager(runs.Options{State: in(state)})
	defer func() { _ = one.Shutdown(t.Context()) }()
	defer func() { _ = two.Shutdown(t.Context()) }()
	r, err := one.Begin(t.Context(), talk(t, app))
	if err != nil {
		t.Fatal(err)
	}
	await(t, r, runs.RequestOpened)
	if n, err := two.Resume(t.Context(), app); n != 0 || err != nil {
		t.Errorf("a run of a live process was resumed: %d, %v", n, err)
	}
	seen, err := two.Find(t.Context(), app, "ada", "run_1")
	if err != nil || seen == nil {
		t.Fatal(seen, err)
	}
	no := false
	if err := two.Answer(asOwner(t, seen), seen, &runs.Answer{ID: seen.State().Pending[0].ID, Approved: &no, Reason: "too expensive"}); err != nil {
		t.Fatal(err)
	}
	events := await(t, r, runs.RunFinished)
	rejected := slices.ContainsFunc(events, func(ev runs.Event) bool {
		return ev.Type == runs.ToolReturned && strings.Contains(ev.Error, "too expensive")
	})
	if !rejected {
		t.Errorf("events: %+v", events)
	}
}

// A client tool gets its result from the client, and a wrong result fails the row.
func TestRun_ClientTool(t *testing.T) {
	app := open(t, memory.NewInProcess())
	m := runs.NewManager(runs.Options{})
	defer func() { _ = m.Shutdown(t.Context()) }()
	for result, want := range map[string]string{`{"pay": true, "note": "ok"}`: "", `{"pay": "perhaps"}`: "pay"} {
		r, err := m.Begin(t.Context(), runs.Start{App: app, Flow: flowOf(t, app, "complaint"), Session: "s", Rows: []map[string]any{{"order": 8812, "amount": 40.0}}})
		if err != nil {
			t.Fatal(err)
		}
		await(t, r, runs.RequestOpened)
		req := r.State().Pending[0]
		if !strings.Contains(string(req.Schema), `"pay"`) {
			t.Errorf("schema %s", req.Schema)
		}
		if err := m.Answer(asOwner(t, r), r, &runs.Answer{ID: req.ID, Result: []byte(result)}); err != nil {
			t.Fatal(err)
		}
		if err := r.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		res := r.State().Results
		if len(res) != 1 || !strings.Contains(res[0].Error, want) || (want == "") != (res[0].Error == "") {
			t.Errorf("%s: %+v", result, res[0])
		}
	}
}
