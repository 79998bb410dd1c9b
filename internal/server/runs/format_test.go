package runs_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/qtype-dev/qtype/internal/appstate"
	"github.com/qtype-dev/qtype/internal/runtimetest"
	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/memory/storetest"
	"github.com/qtype-dev/qtype/runtime"
)

// newSample is the variable that makes TestManager_StoredFormats write a sample of the present format.
const newSample = "QTYPE_NEW_RUN_SAMPLE"

// TestManager_StoredFormats continues runs that each earlier format has stored while they waited for an
// approval. Add a sample for a new format, and keep the others.
func TestManager_StoredFormats(t *testing.T) {
	open := func() *runtime.App {
		app, err := runtimetest.Open(t.Context(), "testdata/stored.qtype.yaml", runtime.Options{Store: storetest.Shared(memory.NewInProcess())})
		testkit.Must(t, err)
		t.Cleanup(func() { _ = app.Close(t.Context()) })
		return app
	}
	if path := os.Getenv(newSample); path != "" {
		writeSample(t, open(), path)
	}
	samples, err := filepath.Glob("testdata/*.run.json")
	testkit.Must(t, err)
	if len(samples) == 0 {
		t.Fatal("there are no samples")
	}
	for _, path := range samples {
		state := in(memory.NewInProcess())
		raw, err := os.ReadFile(path)
		testkit.Must(t, err)
		var texts map[string]string
		testkit.Must(t, json.Unmarshal(raw, &texts))
		values := map[string][]byte{}
		for name, text := range texts {
			values[name] = []byte(text)
		}
		testkit.Must(t, state().Records(appstate.Runs).Write(t.Context(), "run_1", store.RecordChange{Next: 1, Values: values}))
		testkit.Must(t, state().Records(appstate.Unfinished).Write(t.Context(), "run_1", store.RecordChange{Next: 1}))
		app, m := open(), runs.NewManager(runs.Options{State: state})
		if n, err := m.Resume(t.Context(), app); n != 1 || err != nil {
			t.Fatalf("%s: %d runs continue, %v", path, n, err)
		}
		r := stored(t, m, app)
		await(t, r, runs.RequestOpened)
		testkit.Must(t, m.Answer(asOwner(t, r), r, &runs.Answer{ID: r.State().Pending[0].ID, Approved: yes()}))
		testkit.Must(t, r.Wait(t.Context()))
		if s := r.State(); s.Status != runs.Succeeded || len(s.Results) != 1 || s.Results[0].Error != "" {
			t.Errorf("%s: %+v", path, s)
		}
		stop(t, m)
	}
}

// writeSample stores a run that waits, without its lease.
func writeSample(t *testing.T, app *runtime.App, path string) {
	state := in(memory.NewInProcess())
	m := runs.NewManager(runs.Options{State: state})
	begin(t, m, app)
	testkit.Must(t, m.Shutdown(t.Context()))
	rec, err := state().Records(appstate.Runs).Get(t.Context(), "run_1")
	testkit.Must(t, err)
	texts := map[string]string{}
	for name, value := range rec.Values {
		texts[name] = string(value)
	}
	raw, err := json.MarshalIndent(texts, "", "  ")
	testkit.Must(t, err)
	testkit.Must(t, os.WriteFile(path, append(raw, '\n'), 0o600))
}

// TestManager_UnknownDocument checks that a run waits for a server that has its document: one with another
// document leaves it alone, unless the client cancels it.
func TestManager_UnknownDocument(t *testing.T) {
	state, conversations := in(memory.NewInProcess()), memory.NewInProcess()
	first := runs.NewManager(runs.Options{State: state})
	app := open(t, conversations)
	begin(t, first, app)
	testkit.Must(t, first.Shutdown(t.Context()))
	other, err := runtimetest.Open(t.Context(), "testdata/stored.qtype.yaml", runtime.Options{Store: storetest.Shared(memory.NewInProcess())})
	testkit.Must(t, err)
	t.Cleanup(func() { _ = other.Close(t.Context()) })
	edited, next := runs.NewManager(runs.Options{State: state}), runs.NewManager(runs.Options{State: state})
	defer stop(t, edited)
	defer stop(t, next)
	if n, err := edited.Resume(t.Context(), other); n != 0 || err != nil {
		t.Fatalf("a server with another document continues %d runs, %v", n, err)
	}
	if s := stored(t, edited, other).State(); s.Status != runs.Waiting || len(s.Pending) != 1 {
		t.Errorf("the run there: %+v", s)
	}
	if n, err := next.Resume(t.Context(), app); n != 1 || err != nil {
		t.Fatalf("the server with its document continues %d runs, %v", n, err)
	}
	await(t, stored(t, next, app), runs.RequestOpened)
	testkit.Must(t, next.Shutdown(t.Context()))
	testkit.Must(t, edited.Cancel(t.Context(), stored(t, edited, other)))
	if n, err := edited.Resume(t.Context(), other); n != 0 || err != nil {
		t.Errorf("%d runs continue, %v", n, err)
	}
	if s := stored(t, edited, other).State(); s.Status != runs.Cancelled {
		t.Errorf("after it was cancelled: %+v", s)
	}
}
