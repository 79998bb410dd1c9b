package runs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/qtype-dev/qtype/internal/appstate"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec/value"
)

// ErrDigest reports that a run with the id was started by a different request.
var ErrDigest = errors.New("a run with this id was started by a different request")

// create stores a new run. If a run with the id exists, it returns that run.
func (m *Manager) create(ctx context.Context, r *Run, s *Start) (*Run, error) {
	rec, err := openRecord(ctx, m.opts.State(), r.ID)
	if err == nil && m.isExpired(rec) { // but not yet deleted
		if err = m.removeExpired(ctx, rec.app, r.ID); err == nil {
			err = rec.reload(ctx)
		}
	}
	if err != nil {
		return nil, err
	}
	if rec.head.Version != 0 {
		return m.existing(ctx, rec, s)
	}
	stored := newStoredRequest(s)
	stored.ID, stored.Created, stored.Fingerprint, stored.Delegated = r.ID, r.Created, fingerprint(r.Flow), m.opts.Engine != nil
	if s.Batch {
		stored.Batches = m.opts.Batches.ID()
	}
	request, err := json.Marshal(stored)
	if err != nil {
		return nil, fmt.Errorf("the run cannot be stored: %w", err)
	}
	rec.head.Stored = r.Created // so that Clean need not read recent runs
	now, err := m.clock.Now(ctx, rec.app.Store)
	if err != nil {
		return nil, err
	}
	// First the list of unfinished runs: a run that is in it and nowhere else is ignored.
	if err := rec.setUnfinished(ctx, true, now); err != nil {
		return nil, err
	}
	taken := errors.New("taken")
	err = rec.set(ctx, map[string][]byte{requestValue: request, leaseValue: m.newLease(now)}, func(now map[string][]byte) error {
		if now[requestValue] != nil {
			return taken
		}
		return nil
	})
	if errors.Is(err, taken) {
		return m.existing(ctx, rec, s)
	}
	rec.owner, r.record = m.owner, rec
	return nil, err
}

// existing returns the run of a record if it was started by the same request.
func (m *Manager) existing(ctx context.Context, rec *record, s *Start) (*Run, error) {
	var req storedRequest
	if !rec.get(requestValue, &req) || req.Owner != s.Owner || req.Digest != s.Digest {
		return nil, ErrDigest
	}
	m.mu.Lock()
	local := m.runs[req.ID]
	m.mu.Unlock()
	if local != nil && local.record != nil {
		return local, nil
	}
	return m.load(ctx, s.App, req.ID)
}

func encodeRows(rows []map[string]any) json.RawMessage {
	list := make([]any, len(rows))
	for i, row := range rows {
		fields := make([]value.Field, 0, len(row))
		for _, name := range slices.Sorted(maps.Keys(row)) {
			fields = append(fields, value.Field{Name: name, Value: value.FromGo(row[name])})
		}
		list[i] = value.NewRecord("", fields...)
	}
	return value.JSON(list)
}

func decodeRows(raw json.RawMessage) ([]map[string]any, error) {
	v, err := value.Parse(string(raw))
	list, ok := v.([]any)
	if err != nil || !ok {
		return nil, errors.New("the stored rows of the run are damaged")
	}
	rows := make([]map[string]any, len(list))
	for i, item := range list {
		r, ok := item.(*value.Record)
		if !ok {
			return nil, errors.New("the stored rows of the run are damaged")
		}
		rows[i] = maps.Collect(r.All())
	}
	return rows, nil
}

// newLease returns the lease of a run from now on, the time of the store.
func (m *Manager) newLease(now time.Time) []byte {
	raw, _ := json.Marshal(lease{Owner: m.owner, Until: now.Add(leaseTime)}) // cannot fail
	return raw
}

// settleTime is how long storing the end of a run may take.
const settleTime = 10 * time.Second

// settle stores the end of a run, unless another process continues it: then it returns errTaken.
func (m *Manager) settle(r *Run, cause error) error {
	ctx, cancel := context.WithTimeout(context.Background(), settleTime)
	defer cancel()
	s := r.State()
	s.Updated, s.Batch = time.Now().UTC(), r.endBatches(ctx)
	s.end(cause, func(err error) string { return r.public(err) })
	err := r.record.saveState(ctx, r.Flow, s, r.record.checkOwner)
	if errors.Is(err, errTaken) || errors.Is(err, errDeleted) {
		return err
	}
	if err == nil {
		err = r.record.setUnfinished(ctx, false, time.Time{})
	}
	if err != nil {
		m.opts.Log.Error("the end of a run could not be stored", "run", r.ID, "error", err)
	}
	return err
}

// release gives a suspended run to another process.
func (m *Manager) release(r *Run) {
	ctx, cancel := context.WithTimeout(context.Background(), settleTime)
	defer cancel()
	if err := r.record.set(ctx, map[string][]byte{leaseValue: nil}, r.record.checkOwner); err != nil && !errors.Is(err, errTaken) && !errors.Is(err, errDeleted) {
		m.opts.Log.Error("the lease of a run could not be released", "run", r.ID, "error", err)
	}
}

// load returns a snapshot of a stored run, nil if there is none.
func (m *Manager) load(ctx context.Context, app *runtime.App, id string) (*Run, error) {
	rec, err := openRecord(ctx, m.opts.State(), id)
	if err != nil || rec.head.Version == 0 {
		return nil, err
	}
	var req storedRequest
	if !rec.get(requestValue, &req) || m.isExpired(rec) {
		return nil, nil
	}
	flow, err := app.Flow(req.Flow)
	if err != nil {
		return nil, nil //nolint:nilerr // the document no longer has the flow
	}
	var s storedState
	rec.get(stateValue, &s)
	r := &Run{ID: id, Flow: flow, Session: req.Session, Owner: req.Owner, Created: req.Created, detached: true, remote: true, app: app,
		requests: newRequests(), finished: make(chan struct{}), record: rec}
	for _, p := range rec.unanswered() {
		r.requests.open[p.ID] = &openRequest{Request: p}
		r.requests.order = append(r.requests.order, p.ID)
	}
	r.state = State{Status: cmp.Or(s.Status, Running), Updated: s.Updated, Rows: s.Rows, Error: s.Error, Batch: s.Batch}
	if req.Batches != "" && s.Batch == nil { // it has not ended
		r.state.Batch = &Batch{}
	}
	if s.Budget != nil {
		r.err = s.Budget
	}
	r.replayEvents(&s)
	return r, nil
}

// isExpired reports whether a run has ended and can no longer be found.
func (m *Manager) isExpired(rec *record) bool {
	var req storedRequest
	return rec.get(requestValue, &req) && m.expires(rec, req.Created)
}

// expires reports whether a run has ended that long ago.
func (m *Manager) expires(rec *record, created time.Time) bool {
	var s storedState
	rec.get(stateValue, &s)
	if s.Updated.After(created) {
		created = s.Updated
	}
	return s.Status.Ended() && time.Since(created) > m.opts.Expire
}

// replayEvents makes the events of a stored run: those of its rows.
func (r *Run) replayEvents(s *storedState) {
	r.events.add(Event{Type: RunStarted, Time: r.Created})
	for _, stored := range s.Results {
		res := stored.restore(r.Flow)
		r.state.Results = append(r.state.Results, res)
		r.events.add(Event{Type: RowFinished, Time: s.Updated, Row: res.Row, Step: res.Step, Error: res.Error, Result: res})
	}
	if s.Status.Ended() {
		r.events.add(Event{Type: RunFinished, Time: s.Updated, Text: string(s.Status), Error: s.Error})
		close(r.finished)
	}
}

// cancelRemote requests that the process that has the run cancels it.
func (m *Manager) cancelRemote(ctx context.Context, r *Run) error {
	err := r.record.set(ctx, map[string][]byte{cancelValue: []byte("true")}, func(now map[string][]byte) error {
		if now[requestValue] == nil {
			return errDeleted
		}
		return nil
	})
	if errors.Is(err, errDeleted) {
		return nil
	}
	return err
}

// remotePeriod is the time between two looks at a run of another process.
const remotePeriod = 250 * time.Millisecond

// Abandon cancels a run that waits for its client, and waits until it has ended: its client
// goes on without an answer.
func (m *Manager) Abandon(ctx context.Context, app *runtime.App, r *Run) error {
	if err := m.Cancel(ctx, r); err != nil {
		return err
	}
	for !m.IsLocal(r) && !r.State().Status.Ended() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(remotePeriod):
		}
		next, err := m.Find(ctx, app, r.Owner, r.ID)
		if err != nil || next == nil {
			return err
		}
		r = next
	}
	return r.Wait(ctx)
}

// Await waits until a run has ended, or waits for its client. A run of another process is
// read again until then; the returned run is the newest snapshot.
func (m *Manager) Await(ctx context.Context, app *runtime.App, r *Run) (run *Run, waiting bool, err error) {
	for !m.IsLocal(r) && r.State().Status == Running {
		select {
		case <-ctx.Done():
			return r, false, context.Cause(ctx)
		case <-time.After(remotePeriod):
		}
		next, err := m.Find(ctx, app, r.Owner, r.ID)
		if err != nil || next == nil {
			return r, false, err
		}
		r = next
	}
	if r.State().Status == Waiting {
		return r, true, nil
	}
	waiting, err = r.Settle(ctx)
	return r, waiting, err
}

// Erase deletes the records of runs by their owner and stored session, and returns their ids.
// A run that another process continues is deleted too: it ends with an error.
func Erase(ctx context.Context, state store.Application, match func(owner, session string) bool) (deleted []string, err error) {
	for h, err := range state.Records(appstate.Runs).List(ctx, store.RecordQuery{}) {
		if err != nil {
			return deleted, err
		}
		rec, err := openRecord(ctx, state, h.ID)
		if err != nil {
			return deleted, err
		}
		var req storedRequest
		if !rec.get(requestValue, &req) || !match(req.Owner, req.Session) {
			continue
		}
		for _, kind := range []string{appstate.Unfinished, appstate.Runs} {
			if err := state.Records(kind).Delete(ctx, h.ID); err != nil {
				return deleted, err
			}
		}
		deleted = append(deleted, h.ID)
	}
	return deleted, nil
}
