package server_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/model/modeltest/batchtest"
	"github.com/qtype-dev/qtype/internal/server"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/internal/waves"
	"github.com/qtype-dev/qtype/memory"
)

// batchApp has flows of one call, of two that depend on each other, of an agent, and of what cannot wait for batches.
const batchApp = `id: app
memories: [{id: talks}]
auths: [{type: api_key, id: key, api_key: secret}]
models:
  - {type: Model, id: writer, provider: openai, model_id: gpt-6-luna, base_url: "%[1]s/v1", auth: key, prices: {input: 2, output: 8}}
  - {type: Model, id: several, provider: openai, model_id: gpt-6-luna, base_url: "%[1]s/v1", auth: key, prices: {input: 2, output: 8}, batch: {min_calls: 3}}
  - {type: Model, id: none, provider: mock, rules: [{echo: true}]}
tools: [{type: PythonFunctionTool, id: clock, name: clock, description: tells the time, module_path: qtype.application.commons.tools, function_name: get_current_timestamp, outputs: [{id: result, type: datetime}]}]
flows:
  - &flow
    id: one
    variables: [{id: q, type: text}, {id: a, type: text}, {id: b, type: text}, {id: all, type: "list[text]"}]
    inputs: [q]
    outputs: [a]
    steps: [{type: LLMInference, id: s1, model: writer, inputs: [q], outputs: [a]}]
  - {<<: *flow, id: two, outputs: [b], steps: [{type: LLMInference, id: s2, model: writer, inputs: [q], outputs: [a]}, {type: LLMInference, id: s3, model: writer, inputs: [a], outputs: [b]}]}
  - {<<: *flow, id: talk, steps: [{type: LLMInference, id: s0, model: writer, memory: talks, inputs: [q], outputs: [a]}]}
  - {<<: *flow, id: agent, steps: [{type: Agent, id: s4, model: writer, tools: [clock], inputs: [q], outputs: [a]}]}
  - {<<: *flow, id: gathers, outputs: [all], steps: [{type: LLMInference, id: s5, model: writer, inputs: [q], outputs: [a]}, {type: Collect, id: s6, inputs: [a], outputs: [all]}]}
  - {<<: *flow, id: few, steps: [{type: LLMInference, id: s7, model: several, inputs: [q], outputs: [a]}]}
  - {<<: *flow, id: late, steps: [{type: LLMInference, id: s8, model: writer, timeout: 5s, inputs: [q], outputs: [a]}]}
  - {<<: *flow, id: mocked, steps: [{type: LLMInference, id: s9, model: none, inputs: [q], outputs: [a]}]}
`

// batchServers are servers of batchApp, one after the other, with one store, one file of batches and one provider.
type batchServers struct {
	t        *testing.T
	provider *batchtest.Server
	document string
	store    memory.Store
	file     string
	log      *slog.Logger // nil for none
}

// awaitedLine is a log that closes seen when it has a line with a text.
type awaitedLine struct {
	text string
	seen chan struct{}
	once sync.Once
}

func (l *awaitedLine) Write(line []byte) (int, error) {
	if strings.Contains(string(line), l.text) {
		l.once.Do(func() { close(l.seen) })
	}
	return len(line), nil
}

func newBatchServers(t *testing.T, faults batchtest.Faults) *batchServers {
	provider := batchtest.New(1, faults, batchtest.Deterministic)
	at := httptest.NewServer(provider)
	t.Cleanup(func() { testkit.CloseServer(at) })
	return &batchServers{t, provider, testkit.WriteFile(t, "app.qtype.yaml", fmt.Sprintf(batchApp, at.URL)), clockedStore{memory.NewInProcess()}, filepath.Join(t.TempDir(), "batches.db"), nil}
}

// serve starts the next server. stop ends it.
func (b *batchServers) serve() (s *testServer, stop func()) {
	b.t.Helper()
	shared, err := waves.OpenShared(b.file, time.Millisecond)
	testkit.Must(b.t, err)
	shared.Run.Poll = func(int) time.Duration { return time.Millisecond }
	shared.Run.Settle = time.Millisecond
	app, err := qtype.Open(waves.With(context.Background(), shared.Run), b.document, qtype.WithStore(b.store))
	testkit.Must(b.t, err)
	s = serveApp(b.t, app, server.Options{Batches: shared, Log: b.log})
	_, err = s.own.Resume(b.t.Context())
	testkit.Must(b.t, err)
	stop = sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		testkit.Must(b.t, s.own.Shutdown(ctx))
		testkit.Must(b.t, app.Close(ctx))
		testkit.Must(b.t, shared.Close())
	})
	b.t.Cleanup(stop)
	return s, stop
}

// batchedRun is what the API says of a run.
type batchedRun struct {
	ID     string `json:"id"`
	Status string `json:"status"`
	Batch  *struct {
		Wave, Gathered, Calls, Batches int
		Cost, Saved                    float64
		Expected                       string
	}
	Pending []any
	Errors  []any
	Outputs []map[string]any
}

// begin starts a run of a flow with some rows, and returns its id.
func (s *testServer) beginBatch(flow string, questions ...string) string {
	s.t.Helper()
	var rows []map[string]string
	for _, q := range questions {
		rows = append(rows, map[string]string{"q": q})
	}
	body, err := json.Marshal(map[string]any{"rows": rows, "batch": true})
	testkit.Must(s.t, err)
	got := s.post("/flows/"+flow, string(body), "Prefer", "respond-async")
	if got.status != http.StatusAccepted {
		s.t.Fatalf("%d %s", got.status, got.body)
	}
	return got.run(s.t).ID
}

func (r reply) run(t testing.TB) (run batchedRun) {
	t.Helper()
	r.into(t, &run)
	return run
}

// await returns a run as soon as is returns true.
func (s *testServer) await(id string, is func(batchedRun) bool) batchedRun {
	s.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		got := s.do("GET", "/runs/"+id, "")
		if run := got.run(s.t); is(run) {
			return run
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("the run is still %s", got.body)
		}
	}
}

func isDone(r batchedRun) bool { return r.Status != "running" }

// waitsFor reports whether so many calls of a run are at the provider.
func waitsFor(calls int) func(batchedRun) bool {
	return func(r batchedRun) bool { return r.Batch.Calls == calls }
}

// blockFirst blocks the creation of the first batch until release is called; blocked is closed when it is.
func blockFirst(provider *batchtest.Server) (blocked <-chan struct{}, release func()) {
	begins, ends := make(chan struct{}), make(chan struct{})
	var first sync.Once
	provider.Watch(func(r *http.Request) {
		if batchtest.IsCreation(r) {
			first.Do(func() { close(begins); <-ends })
		}
	})
	return begins, sync.OnceFunc(func() { close(ends) })
}

// TestBatch_RunsShare checks that calls of several runs that wait are in one batch, also those of several rows, and that
// other runs do not wait.
func TestBatch_RunsShare(t *testing.T) {
	b := newBatchServers(t, batchtest.Faults{Polls: 2})
	s, _ := b.serve()
	blocked, release := blockFirst(b.provider)
	defer release()
	first := s.beginBatch("one", "alone")
	<-blocked
	second, third := s.beginBatch("one", "x"), s.beginBatch("gathers", "x", "y", "z")
	gathered := func(n int) func(batchedRun) bool {
		return func(r batchedRun) bool { return r.Batch.Gathered == n && r.Batch.Calls == 0 && r.Batch.Wave == 0 }
	}
	s.await(second, gathered(1))
	s.await(third, gathered(3))
	if got := s.post("/flows/one", `{"q": "now"}`); got.status != http.StatusOK || !strings.Contains(got.body, `"a":"answer `) {
		t.Errorf("another run: %d %s", got.status, got.body)
	}
	release()
	for id, rows := range map[string]int{first: 1, second: 1, third: 1} {
		run := s.await(id, isDone)
		if run.Status != "succeeded" || len(run.Outputs) != rows || run.Batch.Cost <= 0 || run.Batch.Saved != run.Batch.Cost {
			t.Errorf("%+v %+v", run, run.Batch)
		}
	}
	// One for the first run, and one for the second and three rows of the third.
	calls, twice := b.provider.Paid()
	if atOnce, batches := b.provider.Made(); calls != 5 || twice != 0 || atOnce != 1 || batches != 2 {
		t.Errorf("%d calls in %d batches, %d twice, %d at once", calls, batches, twice, atOnce)
	}
}

// TestBatch_Restart checks that a run goes on with its open batches in the next server, and that its file has nothing of it at the end.
func TestBatch_Restart(t *testing.T) {
	for _, tt := range []struct {
		flow  string
		first int // calls of the first wave
		calls int // of all waves
	}{{"two", 3, 6}, {"agent", 3, 6}, {"gathers", 3, 3}, {"talk", 1, 3}} {
		t.Run(tt.flow, func(t *testing.T) {
			b := newBatchServers(t, batchtest.Faults{Polls: 1 << 30})
			s, stop := b.serve()
			id := s.beginBatch(tt.flow, "x", "y", "z")
			s.await(id, waitsFor(tt.first))
			stop()
			s, stop = b.serve()
			b.provider.End()
			s.await(id, func(r batchedRun) bool { // a later wave
				return isDone(r) || r.Batch.Wave > 1 && r.Batch.Calls > 0
			})
			stop()
			s, stop = b.serve()
			run := s.await(id, func(r batchedRun) bool { b.provider.End(); return isDone(r) })
			if run.Status != "succeeded" || len(run.Errors) > 0 || len(run.Outputs) == 0 || run.Batch.Saved <= 0 {
				t.Errorf("%+v", run)
			}
			if calls, twice := b.provider.Paid(); calls != tt.calls || twice != 0 {
				t.Errorf("%d calls were paid, %d twice", calls, twice)
			}
			stop()
			if left := leftCalls(t, b.file); left != 0 {
				t.Errorf("%d calls are left", left)
			}
		})
	}
}

// TestBatch_LaterStep checks that the calls of all rows wait at once in a later step, too.
func TestBatch_LaterStep(t *testing.T) {
	b := newBatchServers(t, batchtest.Faults{Polls: 1 << 30})
	s, _ := b.serve()
	id := s.beginBatch("two", "v", "w", "x", "y", "z")
	s.await(id, waitsFor(5))
	b.provider.End()
	const first = 5 * 0.00014 // what the calls of the first step cost
	s.await(id, func(r batchedRun) bool { return r.Batch.Cost > 0.9*first && r.Batch.Calls == 5 })
	if run := s.await(id, func(r batchedRun) bool { b.provider.End(); return isDone(r) }); run.Status != "succeeded" || len(run.Outputs) != 5 {
		t.Errorf("%+v", run)
	}
}

// TestBatch_Cancel checks that the batch of a run that is canceled is canceled, unless another run needs it.
func TestBatch_Cancel(t *testing.T) {
	b := newBatchServers(t, batchtest.Faults{Polls: 1 << 30})
	line := &awaitedLine{text: "a part of a run failed", seen: make(chan struct{})}
	b.log = slog.New(slog.NewTextHandler(line, nil))
	s, stop := b.serve()
	defer func() {
		stop()
		select {
		case <-line.seen:
			t.Error("the log has failures of rows that do not wait any more")
		default:
		}
	}()
	blocked, release := blockFirst(b.provider)
	defer release()
	alone := s.beginBatch("one", "alone")
	<-blocked
	first, second := s.beginBatch("one", "x"), s.beginBatch("one", "y")
	for _, id := range []string{first, second} {
		s.await(id, func(r batchedRun) bool { return r.Batch.Gathered == 1 })
	}
	release()
	for _, id := range []string{alone, first, second} {
		s.await(id, waitsFor(1))
	}
	for _, id := range []string{alone, first} {
		s.post("/runs/"+id+"/cancel", "")
		if run := s.await(id, isDone); run.Status != "cancelled" {
			t.Errorf("%+v", run)
		}
	}
	for b.provider.Canceled() == 0 {
		time.Sleep(time.Millisecond)
	}
	b.provider.End()
	if run := s.await(second, isDone); run.Status != "succeeded" || b.provider.Canceled() != 1 {
		t.Errorf("%+v, %d batches were canceled", run, b.provider.Canceled())
	}
}

// TestBatch_OtherFile checks that a server without the file of a run's batches does not continue it.
func TestBatch_OtherFile(t *testing.T) {
	b := newBatchServers(t, batchtest.Faults{Polls: 1 << 30})
	s, stop := b.serve()
	id := s.beginBatch("one", "x")
	s.await(id, waitsFor(1))
	link := filepath.Join(t.TempDir(), "link.db")
	testkit.Must(t, os.Symlink(b.file, link))
	for _, file := range []string{b.file, link} {
		if _, err := waves.OpenShared(file, 0); err == nil || !strings.Contains(err.Error(), "another process uses the file") {
			t.Errorf("the file was opened twice: %v", err)
		}
	}
	stop()
	own := b.file
	b.file = filepath.Join(t.TempDir(), "other.db")
	s, stop = b.serve()
	if run := s.await(id, func(batchedRun) bool { return true }); run.Status != "running" {
		t.Errorf("%+v", run)
	}
	stop()
	b.file = own
	s, _ = b.serve()
	b.provider.End()
	if run := s.await(id, isDone); run.Status != "succeeded" {
		t.Errorf("%+v", run)
	}
	if calls, _ := b.provider.Paid(); calls != 1 {
		t.Errorf("%d calls were paid", calls)
	}
}

// TestBatch_Failures checks what the rows of a run say about batches that are refused, canceled, lost, not complete, or too small.
func TestBatch_Failures(t *testing.T) {
	for _, tt := range []struct {
		name   string
		faults batchtest.Faults
		flow   string
		during func(*batchtest.Server)
		status string
		atOnce int
	}{
		{name: "refused", faults: batchtest.Faults{Refused: true}, status: "failed"},
		{name: "canceled", faults: batchtest.Faults{Polls: 1 << 30}, during: (*batchtest.Server).Cancel, status: "failed"},
		{name: "lost", faults: batchtest.Faults{Polls: 1 << 30}, during: func(s *batchtest.Server) { s.Lose(false) }, status: "failed"},
		{name: "unmade", faults: batchtest.Faults{Unmade: 0.3, Failing: 0.3, Shuffled: true, Ambiguous: 0.3, Requests: 0.3}, status: "succeeded"},
		{name: "few", flow: "few", status: "succeeded", atOnce: 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBatchServers(t, tt.faults)
			s, _ := b.serve()
			if tt.flow == "" {
				tt.flow = "one"
			}
			id := s.beginBatch(tt.flow, "x", "y")
			if tt.during != nil {
				s.await(id, waitsFor(2))
				tt.during(b.provider)
			}
			run := s.await(id, isDone)
			if atOnce, _ := b.provider.Made(); run.Status != tt.status || atOnce != tt.atOnce {
				t.Errorf("%d calls at once: %+v", atOnce, run)
			}
			if _, twice := b.provider.Paid(); twice != 0 {
				t.Errorf("%d calls were paid twice", twice)
			}
		})
	}
}

// TestBatch_DiskFull checks that calls that could not be stored for a moment are sent later.
func TestBatch_DiskFull(t *testing.T) {
	b := newBatchServers(t, batchtest.Faults{})
	line := &awaitedLine{text: "disk full", seen: make(chan struct{})}
	b.log = slog.New(slog.NewTextHandler(line, nil))
	s, _ := b.serve()
	db, err := sql.Open("sqlite", b.file+"?_pragma=busy_timeout(10000)")
	testkit.Must(t, err)
	defer func() { testkit.Must(t, db.Close()) }()
	_, err = db.ExecContext(t.Context(), "CREATE TRIGGER full BEFORE INSERT ON calls BEGIN SELECT RAISE(ABORT, 'disk full'); END")
	testkit.Must(t, err)
	id := s.beginBatch("one", "x", "y")
	<-line.seen
	_, err = db.ExecContext(t.Context(), "DROP TRIGGER full")
	testkit.Must(t, err)
	if run := s.await(id, isDone); run.Status != "succeeded" || len(run.Outputs) != 2 {
		t.Errorf("%+v", run)
	}
}

// TestBatch_NotPossible checks the problems of requests that ask for batches where there are none.
func TestBatch_NotPossible(t *testing.T) {
	b := newBatchServers(t, batchtest.Faults{})
	s, _ := b.serve()
	for _, tt := range []struct{ flow, body, prefer, want string }{
		{"one", `{"rows": [{"q": "x"}], "batch": true}`, "", "to /flows/one with the header Prefer: respond-async"},
		{"one/stream", `{"q": "x", "batch": true}`, "respond-async", "to /flows/one with the header Prefer: respond-async"},
		{"one", `{"q": "x", "batch": "yes"}`, "respond-async", "expected true or false"},
		{"mocked", `{"q": "x", "batch": true}`, "respond-async", "no model of flow mocked has batches: none (mock)"},
		{"late", `{"q": "x", "batch": true}`, "respond-async", "step s8 has a timeout"},
	} {
		got := s.post("/flows/"+tt.flow, tt.body, "Prefer", tt.prefer)
		if got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, tt.want) || !strings.Contains(got.body, `"/batch"`) {
			t.Errorf("%s: %d %s", tt.body, got.status, got.body)
		}
	}
	without := serveApp(t, openApp(t, b.document), server.Options{})
	if got := without.post("/flows/one", `{"q": "x", "batch": true}`, "Prefer", "respond-async"); got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, "without --batches FILE") {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := without.post("/flows/one", `{"q": "x", "batch": false}`); got.status != http.StatusOK {
		t.Errorf("no batches: %d %s", got.status, got.body)
	}
}

// leftCalls returns the number of calls in a file of batches.
func leftCalls(t *testing.T, file string) (n int) {
	t.Helper()
	shared, err := waves.OpenShared(file, 0)
	testkit.Must(t, err)
	n, err = shared.Run.Waiting()
	testkit.Must(t, err)
	testkit.Must(t, shared.Close())
	return n
}
