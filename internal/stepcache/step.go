package stepcache

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/qtype-dev/qtype/internal/checkpoint"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
)

// StepConfig describes the cache of a step.
type StepConfig struct {
	Cache       *Cache                      // where results are stored
	Scope       Scope                       // the step and version whose results it has
	Policy      Policy                      // the limits of the entries
	Fingerprint []byte                      // of the step; nil if only the inputs identify a result
	Failures    bool                        // results of failed rows are stored, too
	Inputs      Ports                       // the variables that identify a result
	Sharer      func(session string) string // returns who shares the results of a session; nil if all do
	Outputs     Ports                       // the variables that are stored
	Code        func(*steps.Error) string   // returns the kind of a row's failure

	Hits, Misses *atomic.Int64 // count rows whose results were cached, and were not
}

// Ports are variables that a step reads or writes.
type Ports struct {
	Names []string // their ids
	Slots []int    // their slots in rows
}

// cachedStep takes results from the cache, and stores results that the step computes.
// Equal rows that arrive during a computation wait for it.
type cachedStep struct {
	StepConfig
	step steps.Step
}

// NewStep returns a step with a cache.
func NewStep(step steps.Step, cfg StepConfig) steps.Step { return &cachedStep{cfg, step} }

// Process emits the cached results of the row, waits for those of an equal row, or
// runs the step.
func (c *cachedStep) Process(ctx context.Context, row *steps.Row, emit steps.Emit) error {
	id, ok := c.id(row)
	if !ok || !c.Cache.isUsable() {
		c.miss(ctx, row)
		return c.step.Process(ctx, row, emit)
	}
	f, leads := c.Cache.startOrWait(id)
	if leads {
		return c.compute(ctx, row, &cacheFill{cachedStep: c, id: id, inflight: f, emit: emit})
	}
	select {
	case <-f.done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if f.entry != nil {
		if res, err := c.read(f.entry); err == nil {
			c.hit(ctx, row)
			return res.replay(row, emit)
		}
	}
	c.miss(ctx, row)
	if f.err != nil {
		return f.err
	}
	return c.step.Process(ctx, row, emit)
}

// compute looks the result up, and runs the step if the cache does not have it.
func (c *cachedStep) compute(ctx context.Context, row *steps.Row, fill *cacheFill) error {
	defer fill.publish() // also if the step panics
	if entry, res := c.lookup(ctx, fill.id); res != nil {
		fill.inflight.entry = entry
		fill.publish()
		c.hit(ctx, row)
		return res.replay(row, fill.emit)
	}
	c.miss(ctx, row)
	inner, dropped := withDropped(ctx)
	err := c.step.Process(inner, row, fill.buffer)
	fill.dropped = dropped.noted.Load()
	if fill.stopped {
		return err
	}
	fill.finish(ctx, err)
	if stopped := fill.release(); stopped != nil {
		return stopped
	}
	return err
}

// lookup finds an entry, and removes it if it is damaged.
func (c *cachedStep) lookup(ctx context.Context, id inflightKey) ([]byte, *cachedResults) {
	entry, found, err := c.Cache.store.Get(ctx, id.scope, id.key, c.Policy)
	damaged, ok := errors.AsType[*Error](err)
	isDamaged := ok && damaged.Damaged
	if err != nil && !isDamaged && ctx.Err() == nil {
		c.Cache.warnOnce(err)
	}
	if !isDamaged {
		if err != nil || !found {
			return nil, nil
		}
		res, err := c.read(entry)
		if err == nil {
			return entry, res
		}
	}
	if err := c.Cache.store.Drop(ctx, id.scope, id.key); err != nil && ctx.Err() == nil {
		c.Cache.warnOnce(err)
	}
	return nil, nil
}

// id returns the key of a row's result; false if an input was never set.
func (c *cachedStep) id(row *steps.Row) (inflightKey, bool) {
	text := append(make([]byte, 0, 512), c.Fingerprint...)
	if c.Sharer != nil {
		text = checkpoint.AppendValue(append(text, "scope:"...), c.Sharer(row.Session))
	}
	for i, slot := range c.Inputs.Slots {
		v := row.Values[slot]
		if v == value.Unset {
			return inflightKey{}, false
		}
		text = checkpoint.AppendValue(checkpoint.AppendValue(text, c.Inputs.Names[i]), v)
	}
	return inflightKey{scope: c.Scope, key: sha256.Sum256(text)}, true
}

// cachedResults are results from the cache.
type cachedResults struct {
	*checkpoint.Results
	from, to []int // the outputs in the results and in the row
}

// read decodes an entry, which must have all outputs of the step.
func (c *cachedStep) read(entry []byte) (*cachedResults, error) {
	res, err := checkpoint.ReadResults(entry)
	if err != nil {
		return nil, err
	}
	cached := &cachedResults{Results: res, to: c.Outputs.Slots}
	for _, name := range c.Outputs.Names {
		i := slices.Index(res.Names, name)
		if i < 0 {
			return nil, fmt.Errorf("the entry has no output %s", name)
		}
		cached.from = append(cached.from, i)
	}
	return cached, nil
}

// replay emits the results instead of the step: the row, or copies of it, with
// the outputs set.
func (res *cachedResults) replay(row *steps.Row, emit steps.Emit) error {
	for i, cached := range res.Rows {
		r := row
		if i < len(res.Rows)-1 || res.Err != nil { // the row itself is still needed
			r = row.Clone()
		}
		if r.Err = cached.Err; r.Err == nil {
			for j, slot := range res.to {
				r.Values[slot] = cached.Values[res.from[j]]
			}
		}
		if err := emit(r); err != nil {
			return err
		}
	}
	return res.Err
}

func (c *cachedStep) hit(ctx context.Context, row *steps.Row) {
	c.Hits.Add(1)
	c.report(ctx, row, steps.EventCacheHit)
}

func (c *cachedStep) miss(ctx context.Context, row *steps.Row) {
	c.Misses.Add(1)
	c.report(ctx, row, steps.EventCacheMiss)
}

func (c *cachedStep) report(ctx context.Context, row *steps.Row, kind steps.EventKind) {
	steps.Report(ctx, steps.Event{Kind: kind, Step: c.Scope.Step, Session: row.Session, Row: row.Number})
}

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
