package waves

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/qtype-dev/qtype/internal/textfmt"
)

// maxSingles is how many batches of one call are created, read or canceled at once.
const maxSingles = 16

// each calls do for batches, in their order, and for several of one call at once. It begins with no further ones after an error.
func (r *Run) each(batches []*batch, do func(*batch) error) error {
	var wait sync.WaitGroup
	var failed atomic.Bool
	errs := make([]error, len(batches))
	slots := make(chan struct{}, maxSingles)
	for i, b := range batches {
		if failed.Load() {
			break
		}
		call := func() {
			if errs[i] = do(b); errs[i] != nil {
				failed.Store(true)
			}
		}
		if !b.single {
			call()
			continue
		}
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			call()
		})
	}
	wait.Wait()
	r.reportSingles()
	i := slices.IndexFunc(errs, func(err error) bool { return err != nil })
	if i < 0 {
		return nil
	}
	return errs[i]
}

// trial is whether the provider accepts batches of a model, of which several are created at once then.
type trial struct {
	accepted bool
	stalled  bool  // nothing more is created in this look
	refused  error // the reason why a batch was refused, which may be its own
}

// createAll creates batches. Those of one call wait for the first one of their model that is accepted. While calls fail for a
// time, which may have been made nevertheless, one is tried in each look.
func (r *Run) createAll(batches []*batch, create func(*batch) error) error {
	trials := map[string]*trial{}
	var rest []*batch
	for _, b := range batches {
		t := trials[b.model]
		if t == nil {
			accepted, err := r.accepts(b)
			if err != nil {
				return err
			}
			t = &trial{accepted: accepted}
			trials[b.model] = t
		}
		switch {
		case t.accepted:
			rest = append(rest, b)
		case !t.stalled:
			if err := r.try(b, t, create); err != nil {
				r.reportSingles()
				return err
			}
		}
	}
	err := r.each(rest, func(b *batch) error {
		if b.single && r.isStalled(b.model) {
			return nil
		}
		err := create(b)
		if b.single && err == nil && b.isUnsure() {
			r.stall(b.model, true)
		}
		return err
	})
	for _, t := range trials {
		if err == nil && !t.accepted && t.refused != nil && !t.stalled { // there was no other call
			err = t.refused
		}
	}
	return err
}

// try creates the first batch of one call.
func (r *Run) try(b *batch, t *trial, create func(*batch) error) error {
	err := create(b)
	if _, ok := errors.AsType[*refusedError](err); ok && t.refused == nil {
		t.refused = err
		return nil
	}
	t.accepted, t.stalled = b.remote != "", b.isUnsure()
	r.stall(b.model, t.stalled)
	return err
}

// isUnsure reports whether a batch that was to be created is to be tried again.
func (b *batch) isUnsure() bool { return b.remote == "" && b.state == "" }

func (r *Run) isStalled(model string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stalled[model]
}

// stall notes whether the newest creation of a batch of one call has failed for a time.
func (r *Run) stall(model string, stalled bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stalled[model] = stalled
}

// accepts reports whether several batches of the model of one may be created without a trial.
func (r *Run) accepts(b *batch) (accepts bool, err error) {
	if !b.single || r.isStalled(b.model) {
		return !b.single, nil
	}
	c, err := r.conn()
	if err != nil {
		return false, err
	}
	accepts, _, err = history(c.Read, b.model, b.single)
	return accepts, r.storeError(err)
}

// singleEvent is what has happened to calls that are batches of their own.
type singleEvent struct {
	wave        int64
	model, what string
}

// reportBatch reports what has happened to a batch: with a line, or for one of a single call together with others, as what.
func (r *Run) reportBatch(b *batch, what string, format string, args ...any) {
	if !b.single {
		r.report(format, args...)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if what != "" {
		r.singles[singleEvent{b.wave, b.model, what}]++
	}
}

// reportSingles reports what has happened to batches of single calls.
func (r *Run) reportSingles() {
	r.mu.Lock()
	singles := r.singles
	r.singles = map[singleEvent]int{}
	r.mu.Unlock()
	order := func(a, b singleEvent) int {
		return cmp.Or(cmp.Compare(a.wave, b.wave), cmp.Compare(a.model, b.model), cmp.Compare(a.what, b.what))
	}
	for _, e := range slices.SortedFunc(maps.Keys(singles), order) {
		r.report("wave %d: %s to model %s %s", e.wave, textfmt.Count(int64(singles[e]), "call"), e.model, e.what)
	}
}
