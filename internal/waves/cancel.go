package waves

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/model"
)

// Finish cancels the batches that have not ended, and stores the answers that they have. Each other call can then be made
// at once, and is paid once; see NewFinish.
func (r *Run) Finish(ctx context.Context) error {
	if _, err := r.Waiting(); err != nil { // stores what was noted
		return err
	}
	for n := 0; ; n++ {
		batches, err := r.live()
		if err != nil || len(batches) == 0 {
			return err
		}
		if n > 0 {
			if err := r.Pause(ctx, n); err != nil {
				return err
			}
		}
		if err := r.each(batches, func(b *batch) error { return r.finish(ctx, b) }); err != nil {
			return err
		}
	}
}

// finish cancels a batch, or collects it if it has ended.
func (r *Run) finish(ctx context.Context, b *batch) error {
	if !b.canceled && (b.remote != "" || b.tries > 0) {
		done, err := r.cancel(ctx, b)
		if errors.Is(err, wire.ErrUnlisted) {
			return r.lose(b, wire.ErrUnlisted)
		}
		if err != nil {
			return r.passing(ctx, b, err)
		}
		if done && r.shared == nil { // which reports why
			r.reportBatch(b, "to be canceled, and made at once", "wave %d: batch %s is to be canceled: its calls are made at once", b.wave, b.remote)
		}
	}
	if b.remote == "" { // it was not created
		_, err := r.end(b, "")
		return err
	}
	err := r.read(ctx, b)
	if _, ok := errors.AsType[*refusedError](err); ok {
		return nil
	}
	return err
}

// Cancel cancels the batches that have not ended, and returns how many these are. It reports those that may go on.
func (r *Run) Cancel(ctx context.Context) (canceled int, err error) {
	batches, err := r.live()
	if err != nil {
		return 0, err
	}
	var n atomic.Int64
	errs := make([]error, len(batches))
	open := slices.DeleteFunc(batches, func(b *batch) bool { return b.remote == "" && b.tries == 0 })
	err = r.each(open, func(b *batch) error {
		done, err := r.cancel(ctx, b)
		if done {
			n.Add(1)
		}
		if errors.Is(err, wire.ErrUnlisted) {
			r.reportBatch(b, "may be made: "+wire.ErrUnlisted.Error(), "")
			return nil
		}
		errs[slices.Index(open, b)] = err
		return nil
	})
	return int(n.Load()), errors.Join(err, errors.Join(errs...))
}

// cancel cancels a batch, also one whose creation was not confirmed. It reports whether there was something to cancel.
func (r *Run) cancel(ctx context.Context, b *batch) (canceled bool, err error) {
	id := b.remote
	api, unknown := r.api(b.model)
	if unknown != nil {
		r.report("note: batch %s of the earlier run may go on: %v", id, unknown)
		return false, nil
	}
	if id == "" {
		d := r.described(b)
		d.Pause = 0
		id, err = r.find(ctx, api, d)
		if open, ok := errors.AsType[*wire.UncertainError](err); ok {
			r.report("note: batch %s may be of the earlier run, and goes on: %v", open.ID, err)
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("a batch whose creation was not confirmed: %w", err)
		}
		if id == "" {
			return false, nil
		}
	}
	switch err := api.Cancel(ctx, id); {
	case err == nil:
		b.remote, b.canceled = id, true
		return true, r.update(b)
	case !isOver(ctx, api, id):
		return false, fmt.Errorf("batch %s: %w", id, err)
	}
	return false, nil
}

// isOver reports whether a batch has ended, or does not exist any more: there is nothing to cancel.
func isOver(ctx context.Context, api *modelBatches, id string) bool {
	state, err := api.State(ctx, id)
	if failure, ok := errors.AsType[*model.Error](err); ok {
		return failure.Status == http.StatusNotFound
	}
	return err == nil && state.Ended
}

// Live returns how many batches are at the provider and have not ended, and how many more may be, because their
// creation was not confirmed.
func (r *Run) Live() (created, unconfirmed int, err error) {
	if !r.Exists() {
		return 0, 0, nil
	}
	batches, err := r.live()
	for _, b := range batches {
		switch {
		case b.remote != "":
			created++
		case b.tries > 0:
			unconfirmed++
		}
	}
	return created, unconfirmed, err
}
