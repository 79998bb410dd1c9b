// Package waves makes the calls of models of a run by the batch APIs of their providers, in waves. A run
// is repeated: in each pass a call whose answer is known returns it at once. Another one is noted, and
// its row is suspended. At the end of a pass the noted calls are a wave: they are sent as batches, and
// their answers are stored before the next pass.
package waves

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/qtype-dev/qtype/internal/rowcounts"
	"github.com/qtype-dev/qtype/memory"
)

// ErrSuspended is why a row has no result yet: a call that it makes waits for a batch, or an earlier row of its
// session does.
var ErrSuspended = fmt.Errorf("the row waits for a batch: %w", memory.ErrSuspended)

// Pass is one pass over the rows. It is safe for concurrent use.
type Pass struct {
	run    *Run
	last   bool            // rows that are not finished make calls that no pass before has made, at once
	atOnce bool            // calls without an answer are made at once, and stored
	few    map[string]bool // likewise, of models with these ids

	tasks *Tasks        // calls wait for their answers; nil to suspend their rows
	task  string        // the task
	wave  chan struct{} // the newest one for which the task has waited

	shared *Shared // calls wait for their answers, with those of other runs; nil for none
	owner  string  // the run
	rows   int     // see RowsAtOnce

	waits, lost atomic.Int64 // calls that have suspended their rows: those that can be answered, and those of lost batches

	counts rowcounts.Counts[[16]byte] // equal calls so far

	mu      sync.Mutex
	blocked map[string]bool // sessions with a suspended row
}

// NewPass returns a new pass. In the last one a call without an answer is made at once: it differs from the
// one that an earlier pass has made in its place.
func (r *Run) NewPass(last bool) *Pass {
	return &Pass{run: r, last: last, blocked: map[string]bool{}}
}

// NewFew returns a pass in which calls of some models without an answer are made at once; see Few.
func (r *Run) NewFew(models map[string]bool) *Pass {
	p := r.NewPass(false)
	p.few = models
	return p
}

// NewFinish returns a pass in which each call without an answer is made at once. One that fails for a time suspends
// its row, so that another pass repeats it.
func (r *Run) NewFinish() *Pass {
	p := r.NewPass(false)
	p.atOnce = true
	return p
}

// Row is a row, or a batch of rows, in a step. Its calls are made in batches.
type Row struct {
	pass      *Pass
	id        string
	ordinal   int64 // of the input row
	cancel    context.CancelCauseFunc
	suspended atomic.Bool
	call      atomic.Value // the id of the newest call, a string
	turn      string       // see Turn; empty for none
	made      []string     // the ids of the calls of the turn
	again     []string     // those of the turn in an earlier pass, if it has failed

	mu     sync.Mutex
	active chan struct{} // see Limit; nil for none
	paused int           // calls that wait
}

type rowKey struct{}

// NoRow is the ordinal of what is not one row, for Enter.
const NoRow = -1

// Enter returns the context of a row in a step, which ends when the row is suspended. The ordinal and the id of the row
// are the same in each pass. End must be called.
func (p *Pass) Enter(ctx context.Context, step string, ordinal int64, id string) (context.Context, *Row) {
	row := &Row{pass: p, ordinal: ordinal, id: fmt.Sprintf("%s%q %s", p.task, step, id)}
	ctx, row.cancel = context.WithCancelCause(ctx)
	return context.WithValue(ctx, rowKey{}, row), row
}

// RowsAtOnce returns how many rows wait for batches at a time, at most; 0 if they do not wait in place.
func (p *Pass) RowsAtOnce() int {
	if p == nil {
		return 0
	}
	return p.rows
}

// Limit waits until the row may work: active has as many tokens as rows may that do not wait for a batch.
func (w *Row) Limit(ctx context.Context, active chan struct{}) error {
	select {
	case active <- struct{}{}:
		w.active = active
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// pause lets other rows work while a call of the row waits.
func (w *Row) pause() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.paused++; w.paused == 1 && w.active != nil {
		<-w.active
	}
}

// resume ends pause.
func (w *Row) resume() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.paused--; w.paused == 0 && w.active != nil {
		w.active <- struct{}{}
	}
}

// Leave lets other rows work while emit takes a result of the row through later steps, whose calls may wait.
func (w *Row) Leave(emit func() error) error {
	w.pause()
	defer w.resume()
	return emit()
}

// End ends the step for the row.
func (w *Row) End() {
	if w.active != nil {
		<-w.active
	}
	w.cancel(nil)
}

// Suspended reports whether the row is suspended. If the file is not usable all rows are: none has failed for that.
func (w *Row) Suspended() bool {
	return w.suspended.Load() || !w.pass.last && w.pass.run.Failed() != nil
}

// Call returns the id of the newest call of the row; empty before the first one.
func (w *Row) Call() string {
	id, _ := w.call.Load().(string)
	return id
}

// suspendLost suspends the row for a call of a lost batch.
func (w *Row) suspendLost() error {
	w.pass.lost.Add(1)
	w.pass.waits.Add(-1)
	return w.suspend()
}

// suspend suspends the row and returns why.
func (w *Row) suspend() error {
	w.pass.waits.Add(1)
	w.suspended.Store(true)
	w.cancel(ErrSuspended)
	return ErrSuspended
}

// rowOf returns the row that makes a call; nil for a call of no row.
func rowOf(ctx context.Context) *Row {
	row, _ := ctx.Value(rowKey{}).(*Row)
	return row
}

// Block blocks the later rows of a session.
func (p *Pass) Block(session string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.blocked[session] = true
}

// Blocked reports whether an earlier row of a session is suspended.
func (p *Pass) Blocked(session string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.blocked[session]
}

// Turn makes the step for the row a turn of a session. If the turn has failed in an earlier pass, it makes the calls
// that it has made then: the conversation may have later turns now, of rows that one row was divided into.
func (w *Row) Turn(session string) {
	if w.pass.shared != nil { // there is one pass
		return
	}
	w.turn = "failed turn " + w.number(session)
	w.again = strings.Fields(string(w.pass.run.Recorded(w.turn)))
}

// Fail notes that the turn has failed. After an error all rows are suspended, as their run ends.
func (w *Row) Fail(ctx context.Context) {
	if w.turn != "" && len(w.made) > 0 && len(w.again) == 0 && ctx.Err() == nil {
		_ = w.pass.run.Record(ctx, w.turn, []byte(strings.Join(w.made, " "))) // Failed has the error
	}
}

// callID returns the id of a call of a row, which is the same in each pass. Equal calls of a row have
// different ones.
func (w *Row) callID(parts ...string) string {
	id := w.number(parts...)
	if w.turn != "" {
		if n := len(w.made); n < len(w.again) {
			id = w.again[n]
		}
		w.made = append(w.made, id)
	}
	w.call.Store(id)
	return id
}

// number returns a digest of what the row does, with its number among equal ones.
func (w *Row) number(parts ...string) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s %q", w.id, parts)
	var digest [16]byte
	copy(digest[:], h.Sum(nil))
	return fmt.Sprintf("%s-%d", hex.EncodeToString(digest[:]), w.pass.counts.Next(w.ordinal, digest))
}
