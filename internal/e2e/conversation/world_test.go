package conversation_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/internal/awsauth/awsauthtest"
	"github.com/qtype-dev/qtype/internal/clienttool"
	"github.com/qtype-dev/qtype/internal/memory/encrypted"
	"github.com/qtype-dev/qtype/internal/memory/sqlite"
	"github.com/qtype-dev/qtype/internal/model/bedrock"
	"github.com/qtype-dev/qtype/internal/model/modeltest/conformance"
	"github.com/qtype-dev/qtype/internal/runtimetest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/steps"
	"github.com/qtype-dev/qtype/tool"
)

// errKilled is what a process that ends sees: nobody reads it.
var errKilled = errors.New("the process has ended")

// fault is what happens during an attempt of a turn.
type fault struct {
	kind string // none, busy (a model fails), kill-before, kill-after (an answer), kill-write, kill-written (a write of the store)
	at   int    // the number of the request or of the write, from 0
}

// drawFault draws a fault: none of every second.
func drawFault(t *rapid.T) fault {
	return fault{kind: rapid.SampledFrom([]string{"none", "none", "none", "none", "busy", "busy", "kill-before", "kill-after", "kill-write", "kill-written"}).Draw(t, "fault"),
		at: rapid.IntRange(0, 4).Draw(t, "at")}
}

// process is an application and what ends with its process.
type process struct {
	app  *runtime.App
	kill context.CancelCauseFunc // of the current run
	to   http.RoundTripper

	mu     sync.Mutex
	fault  fault
	calls  int // requests so far in the attempt
	writes int // changes of the store so far in the attempt
	dead   bool
}

// begin prepares an attempt.
func (p *process) begin(f fault, kill context.CancelCauseFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault, p.calls, p.writes, p.kill = f, 0, 0, kill
}

// hits reports whether the fault is of a kind, and here; a kill ends the process.
func (p *process) hits(kind string, n int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fault != (fault{kind, n}) {
		return false
	}
	if strings.HasPrefix(kind, "kill") {
		p.dead = true
		p.kill(errKilled)
	}
	return true
}

// ended reports whether the process was killed.
func (p *process) ended() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

// RoundTrip sends a request to a model, or answers as the service of the tool.
func (p *process) RoundTrip(req *http.Request) (*http.Response, error) {
	p.mu.Lock()
	n := p.calls
	p.calls++
	p.mu.Unlock()
	if p.ended() || p.hits("kill-before", n) {
		return nil, errKilled
	}
	answer := func(status int, text string) *http.Response {
		return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(text)), Request: req}
	}
	if req.URL.Host == "orders.example.com" {
		return answer(http.StatusOK, `{"state": "shipped on the 21st, and it is expected to arrive at the end of the week"}`), nil
	}
	if p.hits("busy", n) {
		return answer(http.StatusServiceUnavailable, `{"error":{"message":"overloaded"}}`), nil
	}
	got, err := p.to.RoundTrip(req)
	if err != nil || !p.hits("kill-after", n) {
		return got, err
	}
	_ = got.Body.Close()
	return nil, errKilled
}

// mortal is a store that a process has open: nothing is written after its end.
type mortal struct {
	store.Store
	of *process
}

// Apply writes a change, unless the process ends before it.
func (m mortal) Apply(ctx context.Context, key store.Key, c store.Change) error {
	m.of.mu.Lock()
	n := m.of.writes
	m.of.writes++
	m.of.mu.Unlock()
	if m.of.ended() || m.of.hits("kill-write", n) {
		return errKilled
	}
	err := m.Store.Apply(ctx, key, c)
	if m.of.hits("kill-written", n) {
		return errKilled
	}
	return err
}

// world is a conversation, its document and its processes.
type world struct {
	t       *rapid.T
	tally   *tally
	doc     document
	path    string // of the document
	folder  string
	key     encrypted.Key // of the store
	secret  bool          // the store is encrypted
	stream  bool
	server  *conformance.Running
	current *process
	other   *process // another process that is running, with the same files; nil for none
	session string
	base    map[string]conformance.Verdict // the last request of the conversation to each server
	log     []string                       // what happened, for messages
	runs    int

	variables bool // variables are set
	joined    bool // an answer was joined from several
	waiting   *clienttool.Suspension
}

// note records what happened.
func (w *world) note(format string, args ...any) { w.log = append(w.log, fmt.Sprintf(format, args...)) }

// fail fails the test with what happened before.
func (w *world) fail(format string, args ...any) {
	w.t.Fatalf("%s\n%s\n%s", fmt.Sprintf(format, args...), strings.Join(w.log, "\n"), w.doc.yaml(w.server.Scenario("random")))
}

// start starts a process on the files that the one before has left.
func (w *world) start() {
	at := w.server.Scenario("random")
	p := &process{to: at}
	file, err := sqlite.Open(filepath.Join(w.folder, "memory.db"))
	testkit.Must(w.t, err)
	var s store.Store = mortal{file, p}
	if w.secret {
		s = encrypted.New(s, "memory.db", encrypted.Keys{Key: w.key})
	}
	p.app, err = runtimetest.Open(context.Background(), w.path, runtime.Options{Parts: parts(), Store: s, Getenv: environment, HTTP: &http.Client{Transport: p}, Approve: w.approve})
	if err != nil {
		w.fail("the document is refused: %v", err)
	}
	w.current = p
	w.tally.starts++
}

// stop ends the process: an App that was killed has no store any more.
func (w *world) stop() {
	if w.current != nil {
		_ = w.current.app.Close(context.Background()) // a killed process cannot write
	}
	w.current = nil
}

// restart replaces the process.
func (w *world) restart() {
	w.stop()
	w.start()
}

// elsewhere lets another process that is running continue.
func (w *world) elsewhere() {
	if w.current, w.other = w.other, w.current; w.current == nil {
		w.start()
	}
}

// approve answers as the user of a run, or lets the run wait.
func (w *world) approve(ctx context.Context, call tool.Request) (bool, string, error) {
	if w.waiting != nil {
		return w.waiting.Approve(ctx, call)
	}
	return !bytes.Contains(call.Args, []byte(`"8"`)), "it is not needed", nil
}

// outcome is how an attempt of a turn ended.
type outcome struct {
	err      error
	events   map[steps.EventKind][]string
	count    map[steps.EventKind]int // of events; for the ends of turns, how often messages left the window
	requests []conformance.Verdict
}

// add adds a later attempt of the same turn.
func (o *outcome) add(next outcome) {
	for kind, texts := range next.events {
		o.events[kind] = append(o.events[kind], texts...)
		o.count[kind] += next.count[kind]
	}
	o.requests = append(o.requests, next.requests...)
}

// attempt runs the flow once.
func (w *world) attempt(question string, f fault) (o outcome) {
	o.events, o.count = map[steps.EventKind][]string{}, map[steps.EventKind]int{}
	ctx, kill := context.WithCancelCause(context.Background())
	defer kill(nil)
	w.current.begin(f, kill)
	if w.waiting != nil {
		var stop context.CancelCauseFunc
		ctx, stop = w.waiting.Context(ctx)
		defer stop(nil)
	}
	var mu sync.Mutex
	kinds := []steps.EventKind{steps.EventDropped, steps.EventRepaired, steps.EventShortened, steps.EventTurn, steps.EventFallback, steps.EventToolResult}
	if w.stream {
		kinds = append(kinds, steps.EventText)
	}
	listen := runtime.WithEvents(func(e steps.Event) {
		mu.Lock()
		defer mu.Unlock()
		o.events[e.Kind] = append(o.events[e.Kind], e.Text)
		if e.Kind == steps.EventTurn {
			o.count[e.Kind] += e.Flushes
			return
		}
		o.count[e.Kind]++
	}, kinds...)
	input := slices.Values([]runtime.Input{{Session: w.session, Values: map[string]any{"question": question}}})
	for row, err := range w.current.app.Run(ctx, "main", input, listen) {
		switch {
		case err != nil:
			o.err = err
		case row.Err != nil:
			o.err = row.Err
		}
	}
	o.requests = w.server.Verdicts()
	w.current.begin(fault{kind: "none"}, kill)
	return o
}

// suspension opens the file of the current run.
func (w *world) suspension(question string) *clienttool.Suspension {
	run, err := (&clienttool.RunInput{Document: w.path, Flow: "main", Input: question, Session: w.session}).Describe(w.current.app.Spec())
	testkit.Must(w.t, err)
	s, err := clienttool.OpenSuspension(filepath.Join(w.folder, fmt.Sprint("run", w.runs, ".json")), run, nil)
	testkit.Must(w.t, err)
	return s
}

// memory returns the memory of the current process.
func (w *world) memory() *memory.Memory { return w.current.app.Memory("talk") }

// remove deletes the files.
func (w *world) remove() {
	w.stop()
	w.current = w.other
	w.stop()
	testkit.Must(w.t, os.RemoveAll(w.folder))
}

// parts are those of the core, and Bedrock, which needs no other module.
func parts() runtime.Parts {
	p := runtime.CoreParts()
	p.Models["aws-bedrock"], p.AWS = bedrock.Part(), awsauthtest.Builder
	return p
}
