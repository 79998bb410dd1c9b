package waves

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/model"
)

// create creates a batch, unless an earlier attempt has created it. After an error that passes it returns nil.
func (r *Run) create(ctx context.Context, b *batch) error {
	api, err := r.api(b.model)
	if err != nil {
		return err
	}
	if b.tries > 0 {
		id, err := r.find(ctx, api, r.described(b))
		if errors.Is(err, wire.ErrUnlisted) {
			return r.lose(b, err)
		}
		if err != nil {
			return r.passing(ctx, b, err)
		}
		if id != "" {
			return r.created(b, id)
		}
	}
	b.tries++
	if err := r.update(b); err != nil { // before it is created
		return err
	}
	creates := ctx
	if b.single { // the id of one that was interrupted would be lost
		creates = context.WithoutCancel(ctx)
	}
	id, err := api.Create(creates, r.described(b))
	if failure, ok := errors.AsType[*model.Error](err); wire.IsUnsent(err) || ok && failure.Status/100 == 4 && failure.Status != http.StatusRequestTimeout {
		b.tries-- // it was not created
		if err := r.update(b); err != nil {
			return err
		}
	}
	if why := cmp.Or(b.rejected(err), r.noRoom(b, api, err)); why != nil {
		return r.refused(b, api, why)
	}
	if err != nil {
		return r.passing(ctx, b, err)
	}
	return r.created(b, id)
}

// rejected returns why a provider did not create a batch, if that may be due to its calls; nil otherwise.
func (b *batch) rejected(err error) *wire.BatchFailed {
	failure, ok := errors.AsType[*model.Error](err)
	if !ok {
		return nil
	}
	switch isTooLarge := failure.Status == http.StatusRequestEntityTooLarge; {
	case b.count > 1 && isTooLarge:
		return &wire.BatchFailed{Full: true, Message: failure.Message}
	case isTooLarge:
		return &wire.BatchFailed{Message: failure.Message, Lines: map[int]string{1: failure.Message}}
	case failure.Status == http.StatusBadRequest || failure.Status == http.StatusUnprocessableEntity:
		return &wire.BatchFailed{Message: failure.Message}
	}
	return nil
}

// maxBusy is how often a batch is created for which the provider has no room, before it is divided.
const maxBusy = 5

// noRoom returns why a provider did not create a batch if the batch alone has more calls than may wait there; nil if it
// can be created later.
func (r *Run) noRoom(b *batch, api *modelBatches, err error) *wire.BatchFailed {
	failure, ok := errors.AsType[*model.Error](err)
	isBusy := ok && failure.Status == http.StatusTooManyRequests
	if isBusy {
		others, failed := r.live()
		isBusy = failed == nil && !slices.ContainsFunc(others, func(o *batch) bool { return o.model == b.model && o.remote != "" })
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !isBusy {
		api.busy = 0
		return nil
	}
	if api.busy++; api.busy < maxBusy || b.count == 1 {
		return nil
	}
	api.busy, api.limits.Calls = 0, max(b.count/2, 1)
	return &wire.BatchFailed{Full: true, Message: failure.Message}
}

// created stores the provider's id of a batch.
func (r *Run) created(b *batch, id string) error {
	b.remote = id
	if err := r.update(b); err != nil {
		return err
	}
	r.mu.Lock()
	r.counts.Calls += b.count
	r.mu.Unlock()
	r.reportBatch(b, "in the background", "wave %d: %s to model %s in batch %s", b.wave, textfmt.Count(int64(b.count), "call"), b.model, id)
	return nil
}

// find looks for a batch that may have been created, also after the time in which a provider may not list it
// yet. The id is empty if there is none.
func (r *Run) find(ctx context.Context, api *modelBatches, b *wire.Batch) (id string, err error) {
	for again := false; ; again = true {
		if id, err = api.Find(ctx, b, r.isRemote); err != nil || id != "" || again {
			return id, err
		}
		r.report("a batch of %s may have been created: looking for it again in %s", textfmt.Count(int64(b.Count), "call"), textfmt.Duration(r.Settle))
		select {
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case <-time.After(r.Settle):
		}
	}
}

// described returns a batch for its API.
func (r *Run) described(b *batch) *wire.Batch {
	return &wire.Batch{Name: b.name, Method: b.method, Head: headOf(b.head), Since: b.since, Count: b.count, Pause: r.Poll(20), Calls: func() callSeq { return r.calls(b) }}
}

// passing returns nil for an error of a provider that passes: the next look tries again.
func (r *Run) passing(ctx context.Context, b *batch, err error) error {
	failure, ok := errors.AsType[*model.Error](err)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case !ok || !failure.Temporary:
		return fmt.Errorf("wave %d: %w", b.wave, err)
	}
	text := err.Error()
	r.mu.Lock()
	isNew := text != r.trouble // once in succession
	r.trouble = text
	r.mu.Unlock()
	if isNew {
		r.report("wave %d: %s; trying again", b.wave, text)
	}
	if failure.RetryAfter <= 0 || r.shared != nil { // which looks at the batches of other models meanwhile
		return nil
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(min(failure.RetryAfter, 5*time.Minute)):
	}
	return nil
}
