package temporal

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"time"

	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/steps"
)

// The most results of a resultPart.
const (
	maxPartRows  = 1_000
	maxPartBytes = 1 << 20
)

// runTail is the activity that runs the steps of a flow from the first batch step on, on the results of all chunks.
// They are read and written in parts, so that they need not fit into memory.
func (w *chunkRunner) runTail(ctx context.Context, t task) (done, error) {
	codec, err := w.codec(t)
	if err != nil {
		return done{}, err
	}
	// Another attempt, which may still run, has another folder.
	results := &partWriter{blobs: w.blobs, codec: codec, folder: fmt.Sprintf("%s/out/%d/%s", t.folder(), t.Partition, rand.Text())}
	var head eventSums
	counted, err := w.process(ctx, t, false, w.headResults(ctx, t, &head), func(res *runtime.Result) error { return results.add(ctx, res) })
	if waits, ok := errors.AsType[*waitingError](err); ok {
		return done{Waiting: waits.requests}, nil
	}
	if err == nil {
		err = results.flush(ctx)
	}
	if err != nil {
		return done{}, err
	}
	head.addAll(counted.Events)
	counted.Events = head.all
	out := &output{Stats: counted, Folder: results.folder, Parts: results.parts}
	if t.Tail.isStopped(counted) {
		name := results.folder + "/stopped"
		return done{Rows: counted.Rows, Failed: counted.Failed, Steps: counted.Steps, Stopped: name}, w.blobs.write(ctx, name, out)
	}
	return w.finish(ctx, t, out, false)
}

// isStopped reports whether too many rows have failed; false for nil.
func (t *tail) isStopped(counted stats) bool {
	return t != nil && t.MaxFailures > 0 && counted.Failed >= t.MaxFailures
}

// headResults returns the results of the chunks in the order of their rows, as inputs of the other steps. It adds the
// events of the chunks to sums.
func (w *chunkRunner) headResults(ctx context.Context, t task, sums *eventSums) inputs {
	return func(c *chunkRun) iter.Seq[runtime.Input] {
		return func(yield func(runtime.Input) bool) {
			codec, err := w.app.NewRowCodec(t.Flow)
			if err == nil {
				d := &downloader{codec: codec.Head(), blobs: w.blobs, run: t.folder(), state: state{Next: t.Tail.Chunks, Inline: make([]map[int][]byte, len(t.Tail.Chunks))}, count: sums.add}
				err = d.results(ctx, t.Tail.Chunks, func(res *runtime.Result) bool { return yield(runtime.HeadInput(res)) })
			}
			if err != nil {
				c.fail(err)
			}
		}
	}
}

// partWriter stores results as blobs.
type partWriter struct {
	blobs  *blobs
	codec  *runtime.RowCodec
	folder string
	parts  int // the blobs so far

	pending resultPart
	size    int // in bytes
}

// add adds a result.
func (p *partWriter) add(ctx context.Context, res *runtime.Result) error {
	if len(p.pending.Results) == 0 {
		p.codec.Reset() // each blob can be read alone
	}
	data := p.codec.AppendResult(nil, res)
	p.pending.Results, p.size = append(p.pending.Results, data), p.size+len(data)
	if len(p.pending.Results) < maxPartRows && p.size < maxPartBytes {
		return nil
	}
	return p.flush(ctx)
}

// flush stores the results that are not stored.
func (p *partWriter) flush(ctx context.Context) error {
	if len(p.pending.Results) == 0 {
		return nil
	}
	err := p.blobs.write(ctx, resultPartName(p.folder, p.parts), p.pending)
	p.parts++
	p.pending, p.size = resultPart{}, 0
	return err
}

// storedParts are the finished rows of the last steps of a flow with batch steps, which are stored in parts: they may be
// many, and each is stored once.
type storedParts struct {
	next   int       // the number of the next part
	begun  time.Time // when the attempt began
	events eventSums // that are not stored

	batches []string // the ids of the batch steps, which work again in each attempt
}

// pause returns the shortest time between two parts. It grows with the run, so that a repeated attempt has few parts to
// read; calls of rows that were not stored are in a separate log.
func (p *storedParts) pause() time.Duration { return max(storePause, time.Since(p.begun)/200) }

// storePart stores the rows that have finished since the last part. The caller holds the lock.
func (c *chunkRun) storePart() {
	p := progress{Stats: c.currentStats()}
	p.Stats.Events = c.parts.events.all
	for _, key := range c.order {
		p.Rows = append(p.Rows, *c.finished[key])
		delete(c.finished, key) // the attempt does not load its own rows
	}
	c.order, c.parts.events, c.isDirty, c.stored = nil, eventSums{}, false, time.Now()
	c.err = c.blobs.write(context.WithoutCancel(c.ctx), partName(c.task.folder(), c.task.Partition, c.parts.next), p)
	c.parts.next++
}

// restoreParts reads what earlier attempts have stored, or what they had made before failed rows run again.
func (c *chunkRun) restoreParts(ctx context.Context) error {
	c.parts.begun = time.Now()
	for n := range c.task.Retry + 1 { // an attempt stores only what it has made itself
		if err := c.restorePartsOf(ctx, folderOf(c.task.Run, n), n < c.task.Retry); err != nil {
			return err
		}
	}
	return nil
}

// restorePartsOf reads the parts in a folder, without failed rows if these run again.
func (c *chunkRun) restorePartsOf(ctx context.Context, folder string, isEarlier bool) error {
	hasEmpty := false
	for part := 0; ; part++ {
		var p progress
		err := c.blobs.read(ctx, partName(folder, c.task.Partition, part), &p)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if isEarlier {
			p.Rows = slices.DeleteFunc(p.Rows, func(r finishedRow) bool { return r.Failed })
		} else {
			c.parts.next = part + 1
		}
		for _, row := range p.Rows {
			c.finished[row.Key] = &row
		}
		c.before.Steps = withoutSteps(p.Stats.Steps, c.parts.batches)
		hasEmpty = hasEmpty || slices.ContainsFunc(p.Rows, func(r finishedRow) bool { return len(r.Results) == 0 })
		if p.Stats.HasFailed && (!isEarlier || hasEmpty) { // rows that a step dropped do not run again
			c.before.HasFailed = true
		}
		c.events.addAll(p.Stats.Events)
		c.before.Events = c.events.all
	}
}

// partialReason returns why the rows may miss a part of the input.
func (c *chunkRun) partialReason() string {
	switch {
	case c.task.Tail.Partial:
		return steps.PartialInput
	case c.task.Tail.HasFailed, c.before.HasFailed:
		return steps.RowsFailed
	}
	return ""
}

// withoutSteps returns counts without those of some steps.
func withoutSteps(all []stepStats, ids []string) []stepStats {
	var left []stepStats
	for _, s := range all {
		if slices.Contains(ids, s.Step) {
			s = stepStats{Step: s.Step}
		}
		left = append(left, s)
	}
	return left
}
