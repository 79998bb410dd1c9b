package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/appstate"
	"github.com/qtype-dev/qtype/internal/checkpoint"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
	"github.com/qtype-dev/qtype/tool"
)

// Names of the values of a record of a run, and prefixes of names.
const (
	requestValue = "request"
	stateValue   = "state"
	leaseValue   = "lease"
	cancelValue  = "cancel"
	callPrefix   = "call:"
	answerPrefix = "answer:"
)

// leaseTime is how long a process owns a run without renewing its lease.
const leaseTime = 15 * time.Second

// storedRequest is what a run was started with.
type storedRequest struct {
	ID        string          `json:"id"`
	Flow      string          `json:"flow"`
	Owner     string          `json:"owner,omitempty"`
	Session   string          `json:"session"`
	Created   time.Time       `json:"created"`
	Rows      json.RawMessage `json:"rows"` // a list of records
	Events    bool            `json:"events,omitempty"`
	History   []chat.Message  `json:"history,omitempty"`
	Stateless bool            `json:"stateless,omitempty"`
	Tools     []CallerTool    `json:"tools,omitempty"`

	Instructions *steps.Instructions `json:"instructions,omitempty"`

	Detached    bool              `json:"detached,omitempty"`
	Digest      string            `json:"digest,omitempty"`    // of the request, chosen by the client of the Manager
	Fingerprint map[string]string `json:"fingerprint"`         // of the declarations of the flow
	Batches     string            `json:"batches,omitempty"`   // the file of its batches: only a server with that continues the run
	Delegated   bool              `json:"delegated,omitempty"` // an Engine has the rows: only servers with one continue the run
}

// newStoredRequest returns what is stored of a request.
func newStoredRequest(s *Start) *storedRequest {
	return &storedRequest{ID: s.ID, Flow: s.Flow.ID, Owner: s.Owner, Session: s.Session, Rows: encodeRows(s.Rows), Events: s.Events, History: s.History,
		Stateless: s.Stateless, Tools: s.Tools, Instructions: s.Instructions, Detached: s.Detached, Digest: s.Digest}
}

// start returns the request.
func (req *storedRequest) start(app *runtime.App, flow *spec.Flow, rows []map[string]any) Start {
	return Start{App: app, Flow: flow, Owner: req.Owner, Session: req.Session, Rows: rows, Events: req.Events, History: req.History,
		Stateless: req.Stateless, Tools: req.Tools, Instructions: req.Instructions, Detached: req.Detached, Digest: req.Digest, ID: req.ID, Batch: req.Batches != ""}
}

// storedState is the state of a run.
type storedState struct {
	Status  Status          `json:"status"`
	Updated time.Time       `json:"updated"`
	Rows    Rows            `json:"rows"`
	Error   string          `json:"error,omitempty"`
	Results []*storedResult `json:"results,omitempty"`
	Pending []*Request      `json:"pending,omitempty"`
	Batch   *Batch          `json:"batch,omitempty"`

	Budget *runtime.BudgetError `json:"budget,omitempty"` // that the run exceeded
}

// storedResult is a row with its outputs.
type storedResult struct {
	*Result
	Values      []json.RawMessage        `json:"values,omitempty"`
	Busy        *memory.BusyError        `json:"busy,omitempty"`        // why the row failed
	Interrupted *memory.InterruptedError `json:"interrupted,omitempty"` // why the row failed
}

// lease is the process that runs a run.
type lease struct {
	Owner string    `json:"owner"`
	Until time.Time `json:"until"` // by the clock of the store
}

// record is the stored form of a run. It is a steps.CallLog.
type record struct {
	app   store.Application
	id    string
	owner string // the process, if it runs the run

	mu     sync.Mutex
	head   store.RecordHead
	values map[string][]byte
}

// openRecord reads the record of a run; its version is 0 if there is none.
func openRecord(ctx context.Context, app store.Application, id string) (*record, error) {
	r := &record{app: app, id: id}
	return r, r.reload(ctx)
}

// reload reads the values that the store has.
func (r *record) reload(ctx context.Context) error {
	stored, err := r.app.Records(appstate.Runs).Get(ctx, r.id)
	if err != nil {
		return err
	}
	r.head, r.values = stored.RecordHead, maps.Clone(stored.Values)
	if r.values == nil {
		r.values = map[string][]byte{}
	}
	return nil
}

// set stores values, also if other processes have stored others meanwhile. keep, which may
// be nil, is called with the current values and returns an error to give up.
func (r *record) set(ctx context.Context, values map[string][]byte, keep func(map[string][]byte) error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		if keep != nil {
			if err := keep(r.values); err != nil {
				return err
			}
		}
		next := store.NextVersion(r.head.Version)
		err := r.app.Records(appstate.Runs).Write(ctx, r.id, store.RecordChange{Version: r.head.Version, Next: next, Stored: r.head.Stored, Values: values})
		switch {
		case err == nil:
			r.head.Version = next
			for name, v := range values {
				if v == nil {
					delete(r.values, name)
				} else {
					r.values[name] = v
				}
			}
			return nil
		case !errors.Is(err, store.ErrConflict):
			return err
		}
		if err := r.reload(ctx); err != nil {
			return err
		}
	}
}

// setUnfinished adds the run to those that have not ended, or removes it. now is the time of the store.
func (r *record) setUnfinished(ctx context.Context, unfinished bool, now time.Time) error {
	list := r.app.Records(appstate.Unfinished)
	if !unfinished {
		return list.Delete(ctx, r.id)
	}
	err := list.Write(ctx, r.id, store.RecordChange{Next: store.NextVersion(0), Stored: now.UTC()})
	if errors.Is(err, store.ErrConflict) {
		return nil // it is there
	}
	return err
}

// get parses a value; it reports whether there is one.
func (r *record) get(name string, to any) bool {
	r.mu.Lock()
	raw := r.values[name]
	r.mu.Unlock()
	return raw != nil && json.Unmarshal(raw, to) == nil
}

// Recorded returns the result of a call.
func (r *record) Recorded(key string) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.values[callPrefix+key]
}

// Record stores the result of a call, unless another process continues the run.
func (r *record) Record(ctx context.Context, key string, result []byte) error {
	return r.set(ctx, map[string][]byte{callPrefix + key: result}, r.checkOwner)
}

func (r *record) saveAnswer(ctx context.Context, a *Answer) error {
	raw, err := json.Marshal(a)
	if err != nil {
		return err
	}
	name := answerPrefix + a.ID
	return r.set(ctx, map[string][]byte{name: raw}, func(now map[string][]byte) error {
		switch {
		case now[requestValue] == nil: // the run was deleted
			return ErrNoRequest
		case now[name] != nil && string(now[name]) != string(raw):
			return ErrAnswered
		}
		return nil
	})
}

// answers returns the stored answers.
func (r *record) answers() []*Answer {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []*Answer
	for name, raw := range r.values {
		if !strings.HasPrefix(name, answerPrefix) {
			continue
		}
		a := &Answer{}
		if json.Unmarshal(raw, a) == nil {
			list = append(list, a)
		}
	}
	return list
}

// unanswered returns the stored requests without an answer, the oldest first.
func (r *record) unanswered() []*Request {
	answered := map[string]bool{}
	for _, a := range r.answers() {
		answered[a.ID] = true
	}
	var s storedState
	r.get(stateValue, &s)
	var list []*Request
	for _, p := range s.Pending {
		if !answered[p.ID] {
			list = append(list, p)
		}
	}
	return list
}

// saveState stores the state of a run; see set for keep.
func (r *record) saveState(ctx context.Context, flow *spec.Flow, s State, keep func(map[string][]byte) error) error {
	stored := storedState{Status: s.Status, Updated: s.Updated, Rows: s.Rows, Error: s.Error, Pending: s.Pending, Batch: s.Batch, Budget: s.budget}
	for _, res := range s.Results {
		stored.Results = append(stored.Results, storeResult(res))
	}
	raw, err := json.Marshal(stored)
	if err != nil {
		return fmt.Errorf("flow %s: the state of the run cannot be stored: %w", flow.ID, err)
	}
	return r.set(ctx, map[string][]byte{stateValue: raw}, keep)
}

func storeResult(r *Result) *storedResult {
	s := &storedResult{Result: r}
	_ = errors.As(r.exception, &s.Busy) // clients get another response for these two
	_ = errors.As(r.exception, &s.Interrupted)
	for _, v := range r.Outputs {
		s.Values = append(s.Values, value.JSON(v))
	}
	return s
}

// restore returns the result with its outputs in the declared types.
func (s *storedResult) restore(flow *spec.Flow) *Result {
	r := s.Result
	switch {
	case s.Busy != nil:
		r.exception = s.Busy
	case s.Interrupted != nil:
		r.exception = s.Interrupted
	}
	if s.Values == nil || len(s.Values) != len(flow.Outputs) {
		return r
	}
	for i, ref := range flow.Outputs {
		r.Outputs = append(r.Outputs, restoreValue(ref.To, s.Values[i]))
	}
	return r
}

func restoreValue(v *spec.Variable, raw []byte) any {
	x, err := value.Parse(string(raw))
	if err != nil || x == nil {
		return nil
	}
	if coerced, err := value.Coerce(v.Type, x); err == nil {
		return coerced
	}
	return x
}

// fingerprint identifies the declarations that a run depends on.
func fingerprint(flow *spec.Flow) map[string]string {
	return checkpoint.Fingerprint(flow, checkpoint.FingerprintOptions{Ignore: []string{"description", "ui", "fallbacks"}})
}

func sameFingerprint(a, b map[string]string) bool { return maps.Equal(a, b) }

func parse(raw []byte, to any) bool { return json.Unmarshal(raw, to) == nil }

// Engine runs the rows of runs in place of the App of this process. It is safe for concurrent use.
type Engine interface {
	// Run runs the rows of a job and returns the error that ended it; failed rows are no error.
	// If ctx ends because of memory.ErrSuspended, the run goes on without this process, and Run
	// with an equal job follows it; otherwise the run ends with ctx. release is called when the
	// end of the run is stored.
	Run(ctx context.Context, job *Job) (release func(), err error)
}

// Job is a run of an Engine.
type Job struct {
	Start                         // the request; its ID is set
	Created time.Time             // when the client started it: with the ID it identifies the run
	Event   func(steps.Event)     // takes the events that EventKinds returns, if Start.Events is set
	Result  func(*runtime.Result) // takes the results, in the order of the rows
	Ask     Ask                   // sends requests to the client
}

// delegate lets an engine run the rows.
func (r *Run) delegate(ctx context.Context, e Engine, s *Start, ask Ask) (release func(), err error) {
	defer func() {
		if p := recover(); p != nil {
			release, err = func() {}, errInternal
		}
	}()
	job := &Job{Start: *s, Created: r.Created, Event: r.hear, Result: r.addResult, Ask: ask}
	job.ID = r.ID
	r.mu.Lock()
	r.state.Rows.Read = int64(len(s.Rows))
	r.mu.Unlock()
	if release, err = e.Run(ctx, job); err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return release, err
}

// Context returns the context in which the steps of a run have what its client gives them.
func (s *Start) Context(ctx context.Context, ask Ask) context.Context {
	if s.Owner != "" { // also of a run that another process has accepted
		ctx = memory.WithActor(ctx, s.Owner)
	}
	if len(s.Tools) > 0 {
		ctx = tool.WithCallerTools(ctx, callerTools(s.Tools, ask))
	}
	if s.Instructions != nil {
		ctx = steps.WithInstructions(ctx, s.Instructions)
	}
	if s.Stateless || s.History != nil {
		ctx = steps.WithHistory(ctx, s.History)
	}
	return ctx
}

// EncodeStart returns a request without its rows as bytes.
func EncodeStart(s *Start) ([]byte, error) {
	stored := newStoredRequest(s)
	stored.Rows = nil
	return json.Marshal(stored)
}

// DecodeStart returns the request that EncodeStart has encoded, for the same document.
func DecodeStart(app *runtime.App, data []byte) (*Start, error) {
	var req storedRequest
	if err := json.Unmarshal(data, &req); err != nil {
		return nil, fmt.Errorf("the request is damaged: %w", err)
	}
	flow, err := app.Flow(req.Flow)
	if err != nil {
		return nil, err
	}
	s := req.start(app, flow, nil)
	return &s, nil
}
