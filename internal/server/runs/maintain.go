package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/appstate"
	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
)

// Periods of the maintenance of stored runs.
const (
	pollPeriod  = time.Second     // reading answers that other processes have received
	renewPeriod = 4 * time.Second // renewing leases
)

// errUnanswered is the cause of a run that ends because its client does not answer.
var errUnanswered = &redact.PublicError{Err: errors.New("the run has waited too long for an answer")}

// maintain renews the leases of the runs of this process and reads what other
// processes have stored for them.
func (m *Manager) maintain(ctx context.Context) {
	poll := time.NewTicker(pollPeriod)
	defer poll.Stop()
	renewed := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-poll.C:
			renew := now.Sub(renewed) >= renewPeriod
			if renew {
				renewed = now
			}
			m.poll(ctx, renew)
			m.mu.Lock()
			m.prune(now)
			m.mu.Unlock()
		}
	}
}

// durable returns the runs of this process that are stored and have not ended.
func (m *Manager) durable() []*Run {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []*Run
	for _, r := range m.runs {
		select {
		case <-r.finished:
		default:
			if r.survives() {
				list = append(list, r)
			}
		}
	}
	return list
}

// poll reads answers and cancellations of other processes. It reads several runs at a time, so
// that thousands that wait keep their leases.
func (m *Manager) poll(ctx context.Context, renew bool) {
	var group sync.WaitGroup
	slots := make(chan struct{}, maxPolled)
	for _, r := range m.durable() {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			m.pollRun(ctx, r, renew)
		})
	}
	group.Wait()
}

// maxPolled is how many stored runs are read at a time.
const maxPolled = 32

// pollRun is poll for one run.
func (m *Manager) pollRun(ctx context.Context, r *Run, renew bool) {
	var err error
	if renew {
		err = m.renew(ctx, r)
	} else if r.State().Status == Waiting {
		err = r.record.refresh(ctx)
	}
	switch lost := r.record.lost(); {
	case errors.Is(lost, errDeleted) || errors.Is(err, errDeleted):
		r.end(errDeleted)
		return
	case lost != nil || errors.Is(err, errTaken):
		m.opts.Log.Warn("another server continues a run", "run", r.ID)
		r.end(memory.ErrSuspended)
		return
	}
	if err != nil {
		m.opts.Log.Warn("a stored run could not be read", "run", r.ID, "error", err)
		return
	}
	if r.record.value(cancelValue) != nil {
		r.Cancel()
	}
	if s := r.State(); s.Status == Waiting && time.Since(s.Updated) > m.opts.AnswerWait {
		r.end(errUnanswered)
	}
	for _, a := range r.record.answers() {
		_ = r.answered(a) // most of them were passed before
	}
}

// errTaken reports that another process has the lease of a run. It is a memory.ErrSuspended: a
// turn that fails with it leaves nothing.
var errTaken = fmt.Errorf("another process has taken the run: %w", memory.ErrSuspended)

// checkOwner returns errTaken if the values of a run have the lease of another process, which took
// the run because this one had not renewed its lease in time, and errDeleted if the run was deleted:
// nothing of it may be stored again.
func (r *record) checkOwner(values map[string][]byte) error {
	if values[requestValue] == nil {
		return errDeleted
	}
	var l lease
	if raw := values[leaseValue]; raw != nil && parse(raw, &l) && l.Owner != r.owner {
		return errTaken
	}
	return nil
}

// lost returns the error of checkOwner for the record as it was read last.
func (r *record) lost() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.checkOwner(r.values)
}

// renew renews the lease of a run, unless the run has ended: a suspended one has none.
func (m *Manager) renew(ctx context.Context, r *Run) error {
	ended := errors.New("ended")
	now, err := m.clock.Now(ctx, r.record.app.Store)
	if err != nil {
		return err
	}
	err = r.record.set(ctx, map[string][]byte{leaseValue: m.newLease(now)}, func(now map[string][]byte) error {
		select {
		case <-r.finished:
			return ended
		default:
			return r.record.checkOwner(now)
		}
	})
	if errors.Is(err, ended) {
		return nil
	}
	return err
}

// refresh reads the values again.
func (r *record) refresh(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reload(ctx)
}

func (r *record) value(name string) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.values[name]
}

// Resume continues the stored runs that no process runs: those of a process that has
// ended. It returns their number. Servers call it at the start, and from time to time.
func (m *Manager) Resume(ctx context.Context, app *runtime.App) (int, error) {
	if m.opts.State == nil {
		return 0, nil
	}
	n := 0
	for h, err := range m.opts.State().Records(appstate.Unfinished).List(ctx, store.RecordQuery{}) {
		if err != nil {
			return n, err
		}
		resumed, err := m.resume(ctx, app, h.ID, h.Stored)
		if err != nil {
			m.opts.Log.Error("a run could not be resumed", "run", h.ID, "error", err)
			continue
		}
		if resumed {
			n++
		}
	}
	return n, nil
}

// resume continues one run, unless a process runs it. listed is when it was added to the
// unfinished ones, by the clock of the store; zero if that is not known.
func (m *Manager) resume(ctx context.Context, app *runtime.App, id string, listed time.Time) (bool, error) {
	m.mu.Lock()
	_, local := m.runs[id]
	m.mu.Unlock()
	if local {
		return false, nil
	}
	rec, err := openRecord(ctx, m.opts.State(), id)
	if err != nil {
		return false, err
	}
	var req storedRequest
	if !rec.get(requestValue, &req) {
		now, err := m.clock.Now(ctx, rec.app.Store)
		if err != nil || listed.IsZero() || now.Sub(listed) < leaseTime {
			return false, err // it is being created
		}
		return false, rec.setUnfinished(ctx, false, time.Time{})
	}
	flow, known := m.knows(app, &req)
	if !known && !m.givesUp(rec) {
		return false, nil // it waits for a server that has its document
	}
	if taken, err := m.take(ctx, rec); err != nil || !taken {
		return false, err
	}
	if !known {
		return false, m.abandon(ctx, rec, &req, errUnknownFlow)
	}
	return m.restart(ctx, app, flow, rec, &req)
}

// errUnknownFlow ends a run for which no server with its document came.
var errUnknownFlow = &redact.PublicError{Err: errors.New("no server has the flow, the engine and the file of batches with which the run began")}

// knows returns the flow of a stored run, and whether its declarations and the engine are those with which the run began.
func (m *Manager) knows(app *runtime.App, req *storedRequest) (flow *spec.Flow, known bool) {
	flow, err := app.Flow(req.Flow)
	if err == nil && sameFingerprint(fingerprint(flow), req.Fingerprint) && req.Delegated == (m.opts.Engine != nil) && m.hasBatches(req) {
		return flow, true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.unknown[req.ID] {
		m.unknown[req.ID] = true
		m.opts.Log.Warn("a stored run waits for a server with the document, the engine and the file of batches with which it began", "run", req.ID, "flow", req.Flow)
	}
	return flow, false
}

// givesUp reports whether a run that no server knows ends: its client has cancelled it, or it has
// waited as long as runs wait for an answer.
func (m *Manager) givesUp(rec *record) bool {
	var s storedState
	rec.get(stateValue, &s)
	since := s.Updated
	if since.IsZero() {
		since = rec.head.Stored
	}
	return rec.value(cancelValue) != nil || time.Since(since) > m.opts.AnswerWait
}

// take acquires the lease of a run; it reports false if another process has it, or if
// the run has ended.
func (m *Manager) take(ctx context.Context, rec *record) (bool, error) {
	no := errors.New("not free")
	now, err := m.clock.Now(ctx, rec.app.Store)
	if err != nil {
		return false, err
	}
	err = rec.set(ctx, map[string][]byte{leaseValue: m.newLease(now)}, func(map[string][]byte) error {
		var l lease
		if raw := rec.values[leaseValue]; raw != nil && parse(raw, &l) && l.Owner != m.owner && now.Before(l.Until) {
			return no
		}
		return nil
	})
	if errors.Is(err, no) {
		return false, nil
	}
	return err == nil, err
}

// restart runs a stored run again, with its recorded calls and answers. It reports false
// if the run cannot continue.
func (m *Manager) restart(ctx context.Context, app *runtime.App, flow *spec.Flow, rec *record, req *storedRequest) (bool, error) {
	rows, err := decodeRows(req.Rows)
	if err != nil {
		return false, m.abandon(ctx, rec, req, err)
	}
	s := req.start(app, flow, rows)
	s.Durable = true
	r := m.newRun(&s)
	rec.owner = m.owner
	r.Created, r.record = req.Created, rec
	for _, a := range rec.answers() {
		r.requests.answers[a.ID] = a
	}
	for _, known := range rec.unanswered() {
		r.requests.known[known.ID] = known
	}
	if existing, err := m.register(r); err != nil || existing != nil {
		return false, err
	}
	m.launch(ctx, r, &s)
	return true, nil
}

// abandon ends a stored run that cannot continue.
func (m *Manager) abandon(ctx context.Context, rec *record, req *storedRequest, reason error) error {
	m.opts.Log.Warn("a stored run cannot continue", "run", req.ID, "flow", req.Flow, "error", reason)
	end := storedState{Status: Failed, Updated: time.Now().UTC(), Error: reason.Error()}
	if rec.value(cancelValue) != nil {
		end.Status, end.Error = Cancelled, ""
	}
	raw, err := json.Marshal(end)
	if err != nil {
		return err
	}
	if err := rec.set(ctx, map[string][]byte{stateValue: raw}, nil); err != nil {
		return err
	}
	return rec.setUnfinished(ctx, false, time.Time{})
}

// cleanPeriod is the time between two searches for stored runs that have expired.
const cleanPeriod = time.Hour

// keepClean deletes expired runs, once at the start and then in periods, until ctx ends.
func (m *Manager) keepClean(ctx context.Context) {
	tick := time.NewTicker(cleanPeriod)
	defer tick.Stop()
	for {
		if err := m.Clean(ctx); err != nil && ctx.Err() == nil {
			m.opts.Log.Warn("expired runs could not be deleted", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Clean deletes the stored runs that have expired; a Manager with a store calls it every
// hour. It reads only runs older than Options.Expire, and keeps runs that have not ended.
func (m *Manager) Clean(ctx context.Context) error {
	if m.opts.State == nil {
		return nil
	}
	state := m.opts.State()
	for h, err := range state.Records(appstate.Runs).List(ctx, store.RecordQuery{}) {
		if err == nil && time.Since(h.Stored) > m.opts.Expire {
			err = m.removeExpired(ctx, state, h.ID)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// removeExpired deletes a run that has ended and expired.
func (m *Manager) removeExpired(ctx context.Context, state store.Application, id string) error {
	rec, err := openRecord(ctx, state, id)
	if err != nil || rec.head.Version == 0 {
		return err
	}
	var req storedRequest
	if rec.get(requestValue, &req) && !m.expires(rec, req.Created) {
		return nil
	}
	_, err = state.Records(appstate.Runs).Remove(ctx, rec.head) // unless another process uses or deletes it
	return err
}

// Sizes of what has no other size, in bytes.
const (
	runSize   = 2 << 10
	eventSize = 256
	valueSize = 32
)

// sizeOf returns about how many bytes a run with these events takes.
func sizeOf(log *eventLog) int {
	n := runSize
	events := log.first(log.n)
	for i := range events {
		ev := &events[i]
		n += eventSize + len(ev.Text) + len(ev.Error)
		if ev.Request != nil {
			n += len(ev.Request.Arguments) + len(ev.Request.Schema)
		}
		if ev.Source != nil {
			n += valueSize + len(ev.Source.Text) + len(ev.Source.Title) + len(ev.Source.Heading)
		}
		if ev.Result != nil {
			n += valueSizes(ev.Result.Outputs)
		}
	}
	return n
}

func valueSizes(list []any) int {
	n := 0
	for _, v := range list {
		n += valueSizeOf(v)
	}
	return n
}

func valueSizeOf(v any) int {
	switch v := v.(type) {
	case string:
		return valueSize + len(v)
	case []byte:
		return valueSize + len(v)
	case []any:
		return valueSize + valueSizes(v)
	case *value.Record:
		n := valueSize
		for _, field := range v.All() {
			n += valueSizeOf(field)
		}
		return n
	case chat.Message:
		n := valueSize
		for i := range v.Blocks {
			n += valueSize + v.Blocks[i].Size()
		}
		return n
	}
	return valueSize
}
