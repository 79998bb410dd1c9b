package runs

import (
	"context"
	"time"

	"github.com/qtype-dev/qtype/steps"
)

// Batch is what a run whose calls are made in batches waits for, and what it has cost.
type Batch struct {
	Wave     int       `json:"wave"`              // of the run, from 1; 0 before the first
	Gathered int       `json:"gathered"`          // calls that are not sent yet
	Calls    int       `json:"calls"`             // calls in batches that have not ended
	Batches  int       `json:"batches"`           // these batches, which may have calls of other runs
	Expected time.Time `json:"expected,omitzero"` // when they end, by the time that earlier ones took
	Cost     float64   `json:"cost"`              // so far, of all calls of models
	Saved    float64   `json:"saved"`             // by the batches
}

// spent is what the calls of a run have cost.
type spent struct{ cost, saved float64 }

const (
	maxRowsAtOnce      = 10_000 // whose calls wait, so many goroutines
	budgetedRowsAtOnce = 50     // in a flow whose budget counts what is known only when a call has ended
)

// rowsAtOnce returns how many rows of a run wait for batches at once.
func rowsAtOnce(s *Start) int {
	if b := s.Flow.Budget; b != nil && (b.Tokens > 0 || b.Money > 0) {
		return min(len(s.Rows), budgetedRowsAtOnce)
	}
	return min(len(s.Rows), maxRowsAtOnce)
}

// count counts what a call has cost.
func (r *Run) count(ev steps.Event) {
	if ev.Kind != steps.EventUsage || r.batches == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spent.cost += ev.Cost
	r.spent.saved += ev.Saved
}

// InBatches returns what the batches of a run are doing; nil if its calls are made at once.
func (r *Run) InBatches(ctx context.Context) (*Batch, error) {
	r.mu.Lock()
	b, cost := r.state.Batch, r.spent
	r.mu.Unlock()
	if b != nil || r.batches == nil {
		return b, nil
	}
	w, err := r.batches.Waiting(ctx, r.ID)
	return &Batch{Wave: w.Wave, Gathered: w.Gathered, Calls: w.Calls, Batches: w.Batches, Expected: w.Expected, Cost: cost.cost, Saved: cost.saved}, err
}

// endBatches notes what the batches of a run that ends have done.
func (r *Run) endBatches(ctx context.Context) *Batch {
	b, _ := r.InBatches(ctx) // without the number of waves if it is not known
	if b == nil {
		return nil
	}
	b = &Batch{Wave: b.Wave, Cost: b.Cost, Saved: b.Saved}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state.Batch = b
	return b
}

// hasBatches reports whether this process has the file with the batches of a stored run.
func (m *Manager) hasBatches(req *storedRequest) bool {
	return req.Batches == "" || m.opts.Batches != nil && m.opts.Batches.ID() == req.Batches
}

// isOpen reports whether a run is stored and has not ended.
func (m *Manager) isOpen(ctx context.Context, id string) (bool, error) {
	rec, err := openRecord(ctx, m.opts.State(), id)
	if err != nil {
		return false, err
	}
	var req storedRequest
	var s storedState
	isStored := rec.get(requestValue, &req)
	rec.get(stateValue, &s)
	return isStored && !s.Status.Ended(), nil
}
