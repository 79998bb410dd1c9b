package batch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/internal/records"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
)

// failureFile writes the rows that failed, as they were read, with their errors. A
// nil *failureFile does nothing.
type failureFile struct {
	ctx      context.Context // not canceled with the run: the failed rows of an interrupted run are written too
	path     string
	format   records.Format
	columns  []string        // of the input; nil if rows may have different ones
	out      *records.Writer // nil until the columns are known
	oldest   int64           // all results of earlier rows were added
	buffered []failedRow     // rows that wait until the columns are known
	batches  bool            // the flow has batch steps: rows may fail after later ones

	mu      sync.Mutex               // the input may be read by another goroutine
	pending map[int64]records.Record // rows without a result so far
}

// failure describes why a row failed.
type failure struct {
	step    string // the path to the step; empty for a row that could not be read
	code    string // the kind of failure
	message string // the whole error
}

// failedRow is a row that failed.
type failedRow struct {
	record records.Record
	why    *failure
}

// failureColumns returns the columns after the columns of the input.
func failureColumns() []string { return []string{"error", "error_step", "error_code"} }

// newFailureFile creates the file of failed rows; nil if none was configured.
func newFailureFile(ctx context.Context, cfg *Config, in *input, flow *spec.Flow, batches bool) (*failureFile, error) {
	if cfg.ErrorFile == "" {
		return nil, nil
	}
	f := &failureFile{ctx: context.WithoutCancel(ctx), path: cfg.ErrorFile, columns: in.columns, pending: map[int64]records.Record{}, batches: batches}
	f.format, _ = records.FormatOf(cfg.ErrorFile) // the caller has checked it
	in.record = f.remember
	var err error
	if f.columns != nil {
		f.out, err = records.Create(f.ctx, f.path, f.outColumns())
		return f, err
	}
	for _, ref := range flow.Inputs {
		f.columns = append(f.columns, ref.To.ID)
	}
	// Report now rather than after the run that the file cannot be written.
	probe, err := records.Create(f.ctx, f.path, f.outColumns())
	if err == nil {
		probe.Abort()
	}
	return f, err
}

// remember keeps a row until it has a result.
func (f *failureFile) remember(rec records.Record) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pending[rec.Number] = rec
}

// outColumns returns the columns of the file. An input that has columns for errors,
// such as a file of failed rows, gets the new errors in them.
func (f *failureFile) outColumns() []records.Column {
	kind := records.Text
	if f.format == records.JSON || f.format == records.JSONL {
		kind = records.JSONText // numbers stay numbers
	}
	var all []records.Column
	for _, c := range f.columns {
		if !slices.Contains(failureColumns(), c) {
			all = append(all, records.Column{Name: c, Kind: kind})
		}
	}
	for _, c := range failureColumns() {
		all = append(all, records.Column{Name: c})
	}
	return all
}

// failureOf returns why a result's row failed; nil if it did not.
func failureOf(res *runtime.Result) *failure {
	if res.Err == nil {
		return nil
	}
	path, reason := res.Err.Path()
	why := &failure{step: strings.Join(path, " > "), code: runtime.ErrorCode(res.Err), message: res.Err.Error()}
	var unfit *outputTypeError
	if errors.As(reason, &unfit) {
		why.code = "output"
	}
	return why
}

// add records a result. A failed row is written once.
func (f *failureFile) add(res *runtime.Result) error {
	if f == nil {
		return nil
	}
	why := failureOf(res)
	rec, isPending := f.take(res.Number, why != nil)
	if why == nil || !isPending {
		return nil
	}
	row := failedRow{rec, why}
	if f.out == nil {
		f.buffered = append(f.buffered, row)
		return nil
	}
	return f.write(row)
}

// take drops the rows before the given one, because results are in the order of
// rows, and returns the row itself if it is wanted.
func (f *failureFile) take(number int64, wanted bool) (rec records.Record, isPending bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for ; !f.batches && f.oldest < number; f.oldest++ {
		delete(f.pending, f.oldest)
	}
	if wanted {
		rec, isPending = f.pending[number]
		delete(f.pending, number)
	}
	return rec, isPending
}

func (f *failureFile) write(row failedRow) error {
	var values []any
	for _, c := range f.outColumns() {
		switch c.Name {
		case "error":
			values = append(values, row.why.message)
		case "error_step":
			values = append(values, row.why.step)
		case "error_code":
			values = append(values, row.why.code)
		default:
			v, _ := row.record.Get(c.Name)
			values = append(values, v)
		}
	}
	return f.out.Write(values...)
}

// close completes the file, also after a run that failed.
func (f *failureFile) close() error {
	if f == nil {
		return nil
	}
	if f.out == nil {
		if err := f.writeBuffered(); err != nil {
			return err
		}
	}
	if err := f.out.Close(); err != nil {
		return fmt.Errorf("failed rows: %w", err)
	}
	return nil
}

// writeBuffered writes the buffered rows: the columns of all of them are known now.
func (f *failureFile) writeBuffered() error {
	for _, row := range f.buffered {
		for _, c := range row.record.Columns {
			if !slices.Contains(f.columns, c) {
				f.columns = append(f.columns, c)
			}
		}
	}
	var err error
	if f.out, err = records.Create(f.ctx, f.path, f.outColumns()); err != nil {
		return err
	}
	for _, row := range f.buffered {
		if err := f.write(row); err != nil {
			f.out.Abort()
			return err
		}
	}
	return nil
}
