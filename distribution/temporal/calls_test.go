package temporal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/durable"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/model/modeltest"
	"github.com/qtype-dev/qtype/runtime"
)

// desk has an agent with a tool, one that requires approval, and one of the caller.
const desk = `id: desk
models: [{type: Model, id: m, provider: openai, model_id: gpt-6-luna, base_url: "URL/v1", retry: {max_attempts: 1}}]
memories: [{id: talk, token_limit: 50000}]
tools:
  - {type: APITool, id: lookup, name: lookup, description: finds, endpoint: "URL/tools/lookup", method: POST, allow_private: true, inputs: [{id: order, type: text}], outputs: [{id: state, type: text}]}
  - {type: APITool, id: refund, name: refund, description: refunds, endpoint: "URL/tools/refund", method: POST, idempotency_header: Idempotency-Key, allow_private: true, inputs: [{id: order, type: text}], outputs: [{id: state, type: text}]}
  - {type: ClientTool, id: locate, name: locate, description: locates the user, inputs: [], outputs: [{id: city, type: text}]}
flows:
  - id: main
    variables: [{id: text, type: text}, {id: answer, type: text}]
    inputs: [text]
    outputs: [answer]
    steps: [{type: Agent, id: assist, model: m, memory: talk, tools: [lookup, refund, locate], approve: [refund], inputs: [text], outputs: [answer]}]
`

// caller is the server of the models and tools of desk: it calls the tools one after the other,
// without ids, and counts calls.
type caller struct {
	mu     sync.Mutex
	counts map[string]int
	before func(call string) // called before a call is answered; may be nil
	last   string            // the result of the last tool
	order  string            // of the calls of tools; empty for 7
	keys   []string          // of refunds
}

func (s *caller) count(call string) {
	s.mu.Lock()
	s.counts[call]++
	s.mu.Unlock()
	if s.before != nil {
		s.before(call)
	}
}

func (s *caller) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if name, ok := strings.CutPrefix(r.URL.Path, "/tools/"); ok {
		if key := r.Header.Get("Idempotency-Key"); key != "" {
			s.mu.Lock()
			s.keys = append(s.keys, key)
			s.mu.Unlock()
		}
		s.count(name)
		_, _ = io.WriteString(w, `{"state": "paid"}`)
		return
	}
	var req struct{ Messages []modeltest.Message }
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	round := 0
	for _, m := range req.Messages {
		if m.Role == "tool" {
			round++
			s.last = m.Content
		}
	}
	s.count(fmt.Sprintf("model %d", round))
	message, finish := map[string]any{"role": "assistant", "content": "done: " + s.last}, "stop"
	if round < 3 {
		finish, message["content"] = "tool_calls", ""
		name, arguments := []string{"lookup", "refund", "locate"}[round], `{"order": "`+max(s.order, "7")+`"}`
		if round == 2 {
			arguments = `{}`
		}
		message["tool_calls"] = []any{map[string]any{"type": "function", "function": map[string]any{"name": name, "arguments": arguments}}}
	}
	_, _ = io.WriteString(w, modeltest.JSON(map[string]any{
		"choices": []any{map[string]any{"finish_reason": finish, "message": message}}, "usage": map[string]any{"prompt_tokens": 3, "completion_tokens": 5},
	}))
}

// openDesk returns a runner of chunks, the server of its model, and a chunk with one row.
func openDesk(t *testing.T) (*chunkRunner, *caller, task) {
	t.Helper()
	server := &caller{counts: map[string]int{}}
	runner, in := openChunk(t, desk, server, "refund order 7")
	return runner, server, in
}

// openChunk returns a runner of chunks of a document whose models and tools a server has, and a chunk with rows.
func openChunk(t *testing.T, document string, server http.Handler, rows ...string) (*chunkRunner, task) {
	t.Helper()
	t.Setenv("OPENAI_API_KEY", "x")
	site := httptest.NewServer(server)
	t.Cleanup(site.Close)
	path := filepath.Join(t.TempDir(), "app.qtype.yaml")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(document, "URL", site.URL)), 0o600); err != nil {
		t.Fatal(err)
	}
	app, err := qtype.Open(t.Context(), path, qtype.WithEphemeral())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := app.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	codec, err := app.NewRowCodec("main")
	if err != nil {
		t.Fatal(err)
	}
	var all chunk
	for i, text := range rows {
		row, _ := codec.EncodeInput(t.Context(), runtime.Input{Values: map[string]any{"text": text}, Session: "s", Number: int64(i) + 1}, 0)
		all.Rows = append(all.Rows, row)
	}
	data, err := encode(all)
	if err != nil {
		t.Fatal(err)
	}
	runner := &chunkRunner{app: app, blobs: newBlobs(durable.Config{Blobs: t.TempDir()}), beat: func(context.Context, []byte, ...any) error { return nil }}
	return runner, task{Run: "r", Flow: "main", Rows: data, Heartbeat: time.Minute, Max: maxInline}
}

// attempt runs a chunk once. stop is closed when the worker is to stop; it may be nil.
func attempt(t *testing.T, w *chunkRunner, in task, stop chan struct{}) (done, error) {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	if stop != nil {
		env.SetWorkerStopChannel(stop)
	}
	env.RegisterActivityWithOptions(w.run, activity.RegisterOptions{Name: activityName})
	future, err := env.ExecuteActivity(activityName, in)
	if err != nil {
		return done{}, err
	}
	var made done
	err = future.Get(&made)
	return made, err
}

// answered runs the chunk with an answer to its request.
func answered(t *testing.T, w *chunkRunner, in task, waits done, a durable.Answer) (done, task) {
	t.Helper()
	if len(waits.Waiting) != 1 {
		t.Fatalf("got %+v", waits)
	}
	all := map[string]durable.Answer{waits.Waiting[0].ID: a}
	for id, earlier := range in.Answers {
		all[id] = earlier
	}
	in.Answers = all
	made, err := attempt(t, w, in, nil)
	if err != nil {
		t.Fatal(err)
	}
	return made, in
}

// resultOf returns the answer of the only row of a chunk.
func resultOf(t *testing.T, w *chunkRunner, made done) string {
	t.Helper()
	codec, err := w.app.NewRowCodec("main")
	if err != nil {
		t.Fatal(err)
	}
	var out output
	if err := decode(made.Output, &out); err != nil || len(out.Results) != 1 {
		t.Fatalf("%+v, %v", made, err)
	}
	res, err := codec.DecodeResult(out.Results[0])
	if err != nil || res.Err != nil {
		t.Fatal(err, res)
	}
	text, _ := res.Get("answer")
	return fmt.Sprint(text)
}

// TestChunk_Calls: a chunk whose worker stops at any call is repeated without the calls whose
// results were stored: only the interrupted one is made again.
func TestChunk_Calls(t *testing.T) {
	for _, last := range []string{"model 0", "lookup", "model 1", "refund", "model 2"} {
		t.Run(last, func(t *testing.T) {
			w, server, in := openDesk(t)
			w.approved, in.MayWait = []string{"refund"}, true
			stop, stopped := make(chan struct{}), make(chan struct{})
			var once sync.Once
			server.before = func(call string) {
				if call == last {
					once.Do(func() { close(stop) })
					<-stopped // the activity ends before the call is answered
				}
			}
			moved, err := attempt(t, w, in, stop)
			close(stopped)
			if err != nil || moved.Moved == nil {
				t.Fatalf("the first attempt: %+v, %v", moved, err)
			}
			in.Moved = moved.Moved
			waits, err := attempt(t, w, in, nil)
			if err != nil {
				t.Fatal(err)
			}
			made, _ := answered(t, w, in, waits, durable.Answer{Result: json.RawMessage(`"Graz"`)})
			if text := resultOf(t, w, made); !strings.Contains(text, "Graz") {
				t.Errorf("got %q", text)
			}
			want := map[string]int{"model 0": 1, "lookup": 1, "model 1": 1, "refund": 1, "model 2": 1, "model 3": 1}
			want[last]++
			if keys := slices.Compact(server.keys); len(keys) != 1 {
				t.Errorf("keys of one refund: %q", keys)
			}
			if diff := cmp.Diff(want, server.counts); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestChunk_Drained: a worker that stops lets the calls of its chunks end, and begins no others. None is repeated.
func TestChunk_Drained(t *testing.T) {
	for _, last := range []string{"model 0", "lookup", "model 1", "refund", "model 2"} {
		t.Run(last, func(t *testing.T) {
			w, server, in := openDesk(t)
			w.approved, w.drain, in.MayWait = []string{"refund"}, time.Minute, true
			stop := make(chan struct{})
			var once sync.Once
			server.before = func(call string) {
				if call == last {
					once.Do(func() { close(stop) })
				}
			}
			made, err := attempt(t, w, in, stop)
			if err == nil && made.Moved != nil {
				in.Moved = made.Moved
				made, err = attempt(t, w, in, nil)
			}
			if err != nil || len(made.Waiting) != 1 {
				t.Fatalf("%+v, %v", made, err)
			}
			want := map[string]int{"model 0": 1, "lookup": 1, "model 1": 1, "refund": 1, "model 2": 1}
			if diff := cmp.Diff(want, server.counts); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestChunk_Answers: a chunk ends when it needs an answer, and goes on with it: no call is
// repeated, and none is made that was rejected.
func TestChunk_Answers(t *testing.T) {
	for _, yes := range []bool{true, false} {
		t.Run(fmt.Sprint(yes), func(t *testing.T) {
			w, server, in := openDesk(t)
			in.MayWait = true
			waits, err := attempt(t, w, in, nil)
			if err != nil {
				t.Fatal(err)
			}
			made, in := answered(t, w, in, waits, durable.Answer{Approved: yes})
			if req := waits.Waiting[0]; req.Kind != durable.Approval || req.Tool != "refund" || req.Row != 1 || req.Session != "s" || string(req.Arguments) != `{"order":"7"}` {
				t.Errorf("got %+v", req)
			}
			if req := made.Waiting; len(req) != 1 || req[0].Kind != durable.ClientTool || !strings.Contains(string(req[0].Schema), `"city"`) {
				t.Fatalf("got %+v", made)
			}
			made, _ = answered(t, w, in, made, durable.Answer{Result: json.RawMessage(`{"city": "Graz"}`)})
			if text := resultOf(t, w, made); !strings.Contains(text, "Graz") {
				t.Errorf("got %q", text)
			}
			want := map[string]int{"model 0": 1, "lookup": 1, "model 1": 1, "model 2": 1, "model 3": 1}
			if yes {
				want["refund"] = 1
			}
			if diff := cmp.Diff(want, server.counts); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestChunk_Lost: a worker that Temporal does not answer ends its chunks, because another worker
// gets them; one that has answers goes on, however long a call takes.
func TestChunk_Lost(t *testing.T) {
	w, server, in := openDesk(t)
	in.MayWait, in.Heartbeat = true, 60*time.Millisecond
	w.beat = func(context.Context, []byte, ...any) error { return errors.New("not reachable") }
	ended := make(chan struct{})
	server.before = func(string) { <-ended }
	_, err := attempt(t, w, in, nil)
	close(ended)
	if err == nil || !strings.Contains(err.Error(), errLost.Error()) {
		t.Fatalf("without answers: %v", err)
	}
	beats := make(chan struct{})
	w.beat = func(ctx context.Context, _ []byte, _ ...any) error {
		select {
		case beats <- struct{}{}:
		case <-ctx.Done(): // no more are counted
		}
		return nil
	}
	server.before = func(call string) {
		for range beatsLost + 1 {
			if call == "model 0" {
				<-beats
			}
		}
	}
	in.Resumed, in.Heartbeat = true, time.Second
	if made, err := attempt(t, w, in, nil); err != nil || len(made.Waiting) != 1 {
		t.Errorf("with answers: %+v, %v", made, err)
	}
}

// TestChunk_NotRecorded: a chunk ends if calls cannot be recorded, and makes none.
func TestChunk_NotRecorded(t *testing.T) {
	w, server, in := openDesk(t)
	in.MayWait = true
	w.blobs.base = filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(w.blobs.base, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := attempt(t, w, in, nil); err == nil || !strings.Contains(err.Error(), "blobs: ") {
		t.Errorf("got %v", err)
	}
	if len(server.counts) > 0 {
		t.Errorf("calls: %v", server.counts)
	}
}

// TestChunk_LargeRequests: large arguments and answers are blobs, of which the workflow has the names.
func TestChunk_LargeRequests(t *testing.T) {
	w, server, in := openDesk(t)
	server.order, in.MayWait = strings.Repeat("7", 20<<10), true
	waits, err := attempt(t, w, in, nil)
	if err != nil || len(waits.Waiting) != 1 {
		t.Fatalf("%+v, %v", waits, err)
	}
	req := waits.Waiting[0]
	if !req.InBlobs || len(req.Arguments) > 10 || req.Row != 1 || req.Session != "s" || req.Tool != "refund" {
		t.Errorf("got %+v", req)
	}
	var full []durable.Request
	if err := w.blobs.read(t.Context(), req.Blob, &full); err != nil || len(full) != 1 || len(full[0].Arguments) < 20<<10 || full[0].Key != req.ID {
		t.Errorf("%d requests, %v", len(full), err)
	}
	kept, err := w.keep(t.Context(), in.folder(), givenAnswer{Answer: durable.Answer{Approved: true, Reason: strings.Repeat("x", maxKept)}, ID: req.ID})
	if err != nil || kept.Approved || kept.Reason != "" {
		t.Fatalf("%+v, %v", kept, err)
	}
	in.Answers, in.Kept = map[string]durable.Answer{req.ID: kept.Answer}, map[string]string{req.ID: kept.Blob}
	if made, err := attempt(t, w, in, nil); err != nil || len(made.Waiting) != 1 || made.Waiting[0].Kind != durable.ClientTool || server.counts["refund"] != 1 {
		t.Errorf("%+v, %v, calls %v", made, err, server.counts)
	}
	in.Kept[req.ID] = "../elsewhere"
	if _, err := attempt(t, w, in, nil); err == nil || !strings.Contains(err.Error(), "is not the name of a blob") {
		t.Errorf("a name outside: %v", err)
	}
}

// TestCallLog: a recorded call is reported as repeated by each attempt that takes its result, because none before has finished the row. A
// worker that was frozen until another one has the chunk begins no call.
func TestCallLog(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	c := &chunkRun{blobs: newBlobs(durable.Config{Blobs: t.TempDir()}), task: task{Run: "r"}, cancel: cancel}
	for attempts := range 3 {
		l := c.newCallLog(ctx)
		testkit.Must(t, c.blobs.readJournals(ctx, callsName("r", 0, 0), l.restore))
		if attempts == 2 {
			if l.Recorded("call") == nil || l.Repeats("call") != 1 || l.Repeats("another") != 0 {
				t.Errorf("the call is repeated %d times", l.Repeats("call"))
			}
			l.setDue(time.Now().Add(-time.Second))
			if _, _, err := l.Begin(ctx, "late"); !errors.Is(err, errLost) {
				t.Errorf("a call has begun too late: %v", err)
			}
			continue
		}
		_, before, err := l.Begin(ctx, "call") // the worker of the first attempt ends
		if testkit.Must(t, err); before != attempts {
			t.Errorf("attempt %d: %d before", attempts, before)
		}
		if attempts == 1 {
			testkit.Must(t, l.Record(ctx, "call", []byte("1")))
		}
		l.journal.close()
	}
}
