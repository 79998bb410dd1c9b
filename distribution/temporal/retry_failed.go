package temporal

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	"github.com/qtype-dev/qtype/runtime"
)

// succeededRows are the results of the rows of a chunk that do not run again.
type succeededRows struct {
	codec   *runtime.RowCodec
	results []*runtime.Result
	stats   stats
	dropped bool // a failed row may have been dropped, which does not run again
}

// succeeded removes the rows of a finished chunk that have not failed, and returns their results. It returns nil if
// all rows run.
func (w *chunkRunner) succeeded(ctx context.Context, t task, rows *chunk) (*succeededRows, error) {
	out, err := w.earlierOutput(ctx, t)
	if out == nil || err != nil {
		return nil, err
	}
	codec, err := w.codec(t)
	if err != nil {
		return nil, err
	}
	s := &succeededRows{codec: codec, stats: out.Stats}
	failed := map[int64]bool{}
	for _, data := range out.Results {
		res, err := codec.DecodeResult(data)
		if err != nil {
			return nil, err
		}
		s.results = append(s.results, res)
		failed[res.Number] = failed[res.Number] || res.Err != nil
	}
	s.results = slices.DeleteFunc(s.results, func(r *runtime.Result) bool { return failed[r.Number] })
	s.dropped = out.Stats.HasFailed && slices.ContainsFunc(rows.Rows, func(row []byte) bool {
		_, ok := failed[codec.NumberOf(row)]
		return !ok
	})
	rows.Rows = slices.DeleteFunc(rows.Rows, func(row []byte) bool { return !failed[codec.NumberOf(row)] })
	return s, nil
}

// earlierOutput returns the newest output of the chunk before failed rows run again; nil if there is none.
func (w *chunkRunner) earlierOutput(ctx context.Context, t task) (*output, error) {
	out := &output{}
	if t.Earlier != nil {
		return out, decode(t.Earlier, out)
	}
	for n := t.Retry - 1; n >= 0; n-- {
		err := w.blobs.read(ctx, outputName(folderOf(t.Run, n), t.Partition, t.Number), out)
		if !errors.Is(err, fs.ErrNotExist) {
			return out, err
		}
	}
	return nil, nil
}

// addTo adds the results to the results of earlier rows, in the order of the rows.
func (s *succeededRows) addTo(out *output) error {
	if s == nil {
		return nil
	}
	s.codec.Reset()
	all := s.results
	for _, data := range out.Results {
		res, err := s.codec.DecodeResult(data)
		if err != nil {
			return err
		}
		all = append(all, res)
	}
	slices.SortStableFunc(all, func(a, b *runtime.Result) int { return int(a.Number - b.Number) })
	s.codec.Reset()
	out.Results = nil
	for _, res := range all {
		out.Results = append(out.Results, s.codec.AppendResult(nil, res))
	}
	var sums eventSums
	sums.addAll(out.Stats.Events)
	sums.addAll(s.stats.Events)
	out.Stats.Events = sums.all
	out.Stats.Rows += int64(len(s.results))
	out.Stats.HasFailed = out.Stats.HasFailed || s.dropped
	return nil
}
