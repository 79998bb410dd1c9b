package runtime

import (
	"context"
	"errors"

	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
)

// maxEntryBytes is the most bytes of one entry. A step that makes more of one
// row is not kept: its rows would have to be held all at once.
const maxEntryBytes = 32 << 20

// cacheFill is the work on one result. What the step emits is held until the
// result is kept and others who wait for it have it: a row that goes on before
// might have to wait, further down, for one of those.
type cacheFill struct {
	*cachedStep
	id      inflightKey
	flight  *inflight
	emit    steps.Emit
	held    []*steps.Row
	entry   []byte
	landed  bool
	failed  bool // a held row has failed
	open    bool // too much to hold: rows go on as they come
	stopped bool // emit wants no more rows
}

// publish tells those who wait, once.
func (a *cacheFill) publish() {
	if !a.landed {
		a.landed = true
		a.cache.complete(a.id, a.flight)
	}
}

// buffer takes what the step emits.
func (a *cacheFill) buffer(row *steps.Row) error {
	if a.open {
		return a.forward(row)
	}
	if a.entry == nil {
		a.entry = append(a.entry, `{"rows":[`...)
	} else {
		a.entry = append(a.entry, ',')
	}
	a.entry = appendRow(a.entry, row, a.outputs)
	a.held, a.failed = append(a.held, row), a.failed || row.Err != nil
	limit := int64(maxEntryBytes)
	if a.policy.MaxBytes > 0 && !a.policy.Compress {
		limit = min(limit, a.policy.MaxBytes)
	}
	if int64(len(a.entry)) <= limit {
		return nil
	}
	a.open, a.entry = true, nil
	a.publish()
	return a.release()
}

// release lets the held rows go on.
func (a *cacheFill) release() error {
	held := a.held
	a.held = nil
	for _, row := range held {
		if err := a.forward(row); err != nil {
			return err
		}
	}
	return nil
}

func (a *cacheFill) forward(row *steps.Row) error {
	err := a.emit(row)
	a.stopped = a.stopped || err != nil
	return err
}

// finish keeps the result where it is one to keep, and tells those who wait.
func (a *cacheFill) finish(ctx context.Context, err error) {
	defer a.publish()
	switch {
	case a.open, err != nil && (ctx.Err() != nil || errors.Is(err, context.Canceled)): // nothing came of it that others could use
		return
	case err != nil && !a.errors:
		a.flight.err = err
		return
	}
	if a.entry == nil {
		a.entry = append(a.entry, `{"rows":[`...)
	}
	a.entry = append(a.entry, ']')
	if err != nil {
		a.entry = value.AppendJSON(append(a.entry, `,"error":`...), err.Error())
	}
	a.entry = append(a.entry, '}')
	a.flight.entry = a.entry
	if a.failed && !a.errors {
		return // good for those who wait, but not kept
	}
	if _, err := a.cache.store.Put(ctx, a.id.scope, a.id.key, a.flight.entry, a.policy); err != nil && ctx.Err() == nil {
		a.cache.warnOnce(err)
	}
}
