package stepcache

import (
	"context"
	"errors"

	"github.com/qtype-dev/qtype/internal/checkpoint"
	"github.com/qtype-dev/qtype/steps"
)

// maxCachedBytes is the largest size of an entry. Larger results are not cached:
// their rows would all have to be buffered.
const maxCachedBytes = 32 << 20

// cacheFill computes one result. The rows that the step emits are buffered until
// the result is stored and waiting rows have it: a row that is emitted earlier
// could have to wait, in a later step, for one of those.
type cacheFill struct {
	*cachedStep
	id        inflightKey
	inflight  *inflight
	emit      steps.Emit
	rows      []*steps.Row // buffered
	entry     *checkpoint.ResultsWriter
	published bool
	failed    bool // a buffered row has failed
	dropped   bool // on_error of a step in a flow has removed a failure
	tooLarge  bool // rows are emitted as they come
	stopped   bool // emit has returned an error
}

// publish lets waiting rows continue, once.
func (f *cacheFill) publish() {
	if !f.published {
		f.published = true
		f.Cache.complete(f.id, f.inflight)
	}
}

// buffer receives the rows that the step emits.
func (f *cacheFill) buffer(row *steps.Row) error {
	if f.tooLarge {
		return f.forward(row)
	}
	f.writer().Add(row)
	f.rows, f.failed = append(f.rows, row), f.failed || row.Err != nil
	limit := int64(maxCachedBytes)
	if f.Policy.MaxBytes > 0 && !f.Policy.Compress {
		limit = min(limit, f.Policy.MaxBytes)
	}
	if int64(f.entry.Len()) <= limit {
		return nil
	}
	f.tooLarge, f.entry = true, nil
	f.publish()
	return f.release()
}

func (f *cacheFill) writer() *checkpoint.ResultsWriter {
	if f.entry == nil {
		f.entry = checkpoint.NewResultsWriter(f.Outputs.Names, f.Outputs.Slots, f.Code)
	}
	return f.entry
}

// release emits the buffered rows.
func (f *cacheFill) release() error {
	rows := f.rows
	f.rows = nil
	for _, row := range rows {
		if err := f.forward(row); err != nil {
			return err
		}
	}
	return nil
}

func (f *cacheFill) forward(row *steps.Row) error {
	err := f.emit(row)
	f.stopped = f.stopped || err != nil
	return err
}

// finish stores the result if it is to be cached, and publishes it.
func (f *cacheFill) finish(ctx context.Context, err error) {
	defer f.publish()
	switch {
	case f.tooLarge, err != nil && (ctx.Err() != nil || errors.Is(err, context.Canceled)): // other rows cannot use it
		return
	case err != nil && !f.Failures:
		f.inflight.err = err
		return
	}
	f.inflight.entry = f.writer().Finish(err)
	if f.dropped || f.failed && !f.Failures {
		return // waiting rows may use it, but it is not stored
	}
	if !f.Cache.isUsable() { // the lookup has waited for the server
		return
	}
	if _, err := f.Cache.store.Put(ctx, f.id.scope, f.id.key, f.inflight.entry, f.Policy); err != nil && ctx.Err() == nil {
		f.Cache.warnOnce(err)
	}
}
