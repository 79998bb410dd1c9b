package temporal

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"slices"

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
