package waves

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/model"
)

// stateLost is the state of a batch that its provider does not have any more, or whose results are gone.
const stateLost = "lost"

// lostAge is the age of a batch from which one answer says that it is lost: a younger one may not be listed everywhere yet.
const lostAge = 10 * time.Minute

// LostError ends a run whose other calls are made: the calls of lost batches may have been paid, and are only made again
// by a Run with Rebuy.
type LostError struct{ Batches, Calls int }

// Error says what is lost.
func (e *LostError) Error() string {
	batches := "batches"
	if e.Batches == 1 {
		batches = "batch"
	}
	return fmt.Sprintf("%s of %d lost %s have no answer", textfmt.Count(int64(e.Calls), "call"), e.Batches, batches)
}

// isGone reports whether an error says that there is no such batch or file.
func isGone(err error) bool {
	failure, ok := errors.AsType[*model.Error](err)
	return ok && (failure.Status == http.StatusNotFound || failure.Status == http.StatusGone)
}

// gone notes that the provider does not have a batch or its results; err is its answer. Each process looks for
// lost batches again: a wrong key may be why they were not found.
func (r *Run) gone(ctx context.Context, b *batch, api *modelBatches, err error) error {
	if r.countOne(api.gone, b) < maxReads && time.Since(b.since) < lostAge {
		return nil // the next look tries again
	}
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	return r.lose(b, err)
}

// countOne counts something of a batch, and returns how often it has happened.
func (r *Run) countOne(times map[int64]int, b *batch) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	times[b.id]++
	return times[b.id]
}

// lose notes that a batch is lost, and why.
func (r *Run) lose(b *batch, err error) error {
	calls, failed := r.unanswered(b)
	if failed != nil {
		return failed
	}
	b.state = stateLost
	r.reportBatch(b, "lost: "+err.Error(), "wave %d: batch %s is lost: %s; %s without an answer", b.wave, b.remote, err, textfmt.Count(int64(calls), "call"))
	if r.Rebuy {
		return r.rebuy(b)
	}
	r.mu.Lock()
	r.lost[b.id] = calls
	r.mu.Unlock()
	r.ended.Add(1)
	return r.update(b)
}

// rebuy ends a lost batch. Its calls without an answer are sent again.
func (r *Run) rebuy(b *batch) error {
	err := r.change(func(tx *transaction) error {
		_, err := tx.ExecContext(context.Background(), "UPDATE calls SET tries = 1 WHERE batch = ? AND status = 0", b.id) // as the user wants
		return err
	})
	if err != nil {
		return err
	}
	again, err := r.end(b, "")
	r.mu.Lock()
	r.counts.Repeated += again
	r.mu.Unlock()
	return err
}

// unanswered returns how many calls of a batch have no answer.
func (r *Run) unanswered(b *batch) (calls int, err error) {
	c, err := r.conn()
	if err != nil {
		return 0, err
	}
	err = c.Read.QueryRowContext(context.Background(), "SELECT count(*) FROM calls WHERE batch = ? AND status = 0", b.id).Scan(&calls)
	return calls, r.storeError(err)
}

// isLost reports whether a batch was lost in this process.
func (r *Run) isLost(batch int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, lost := r.lost[batch]
	return lost
}

// lostError returns what was lost in this process; nil for nothing.
func (r *Run) lostError() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := &LostError{Batches: len(r.lost)}
	for _, calls := range r.lost {
		e.Calls += calls
	}
	if e.Batches == 0 {
		return nil
	}
	return e
}

// Lost returns a LostError if all rows that the pass has suspended wait for calls of lost batches, or for such rows.
func (p *Pass) Lost() error {
	if p.waits.Load() > 0 || p.lost.Load() == 0 {
		return nil
	}
	return p.run.lostError()
}
