package main

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

// failures writes the rows that failed. A nil *failures does nothing.
type failures struct {
	ctx     context.Context // of the run, but not cancelled with it: what failed is told of an interrupted run, too
	path    string
	format  records.Format
	columns []string        // of the input, nil where each row has its own
	out     *records.Writer // nil while the columns are not known
	oldest  int64           // rows before this one have come out
	kept    []failedRow     // failed rows that wait for the columns of all
	gathers bool            // a step works on groups: rows may fail after later ones have come out

	mu      sync.Mutex               // the input may be read on another goroutine than results come out
	pending map[int64]records.Record // rows that are on their way
}

// failure is why a row failed.
type failure struct {
	Step    string // the path to the step, empty for a row that could not be read
	Code    string // the kind of failure
	Message string // the whole error
}

// failedRow is one row that failed.
type failedRow struct {
	record records.Record
	why    *failure
}

// reasonColumns are what a failed row has behind its input.
func reasonColumns() []string { return []string{"error", "error_step", "error_code"} }

// newFailures readies --errors; nil where it was not asked for.
func (r *runCommand) newFailures(ctx context.Context, in *input, flow *spec.Flow) (*failures, error) {
	if r.errors == "" {
		return nil, nil
	}
	f := &failures{ctx: context.WithoutCancel(ctx), path: r.errors, columns: in.columns, pending: map[int64]records.Record{}}
	f.format, _ = records.FormatOf(r.errors) // was checked
	in.record = f.remember
	var err error
	if f.columns != nil {
		f.out, err = records.Create(f.ctx, f.path, f.outColumns())
		return f, err
	}
	for _, ref := range flow.Inputs {
		f.columns = append(f.columns, ref.To.ID)
	}
	// Only to learn now rather than after the run that the file can be written.
	probe, err := records.Create(f.ctx, f.path, f.outColumns())
	if err == nil {
		probe.Abort()
	}
	return f, err
}

// remember keeps a row until it is known what became of it.
func (f *failures) remember(rec records.Record) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pending[rec.Number] = rec
}

// outColumns are the input's columns and those of the reason. An input that has
// one of the latter, such as a file of failed rows, gets the new reason in it.
func (f *failures) outColumns() []records.Column {
	kind := records.Text
	if f.format == records.JSON || f.format == records.JSONL {
		kind = records.JSONText // keeps numbers and objects what they are
	}
	var all []records.Column
	for _, c := range f.columns {
		if !slices.Contains(reasonColumns(), c) {
			all = append(all, records.Column{Name: c, Kind: kind})
		}
	}
	for _, c := range reasonColumns() {
		all = append(all, records.Column{Name: c})
	}
	return all
}

// failureOf is why a result is a failed row; nil where it is none.
func failureOf(res *runtime.Result) *failure {
	if res.Err == nil {
		return nil
	}
	path, reason := res.Err.Path()
	why := &failure{Step: strings.Join(path, " > "), Code: runtime.ErrorCode(res.Err), Message: res.Err.Error()}
	var unfit *outputTypeError
	if errors.As(reason, &unfit) {
		why.Code = "output"
	}
	return why
}

// add takes note of a result: a failed row is written once, rows before it are
// not needed any more.
func (f *failures) add(number int64, why *failure) error {
	if f == nil {
		return nil
	}
	rec, waits := f.take(number, why != nil)
	if why == nil || !waits {
		return nil
	}
	fail := failedRow{rec, why}
	if f.out == nil {
		f.kept = append(f.kept, fail)
		return nil
	}
	return f.write(fail)
}

// take forgets the rows before one, for results keep the order of the rows, and
// finds the row itself where it is wanted.
func (f *failures) take(number int64, wanted bool) (rec records.Record, waits bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for ; !f.gathers && f.oldest < number; f.oldest++ {
		delete(f.pending, f.oldest)
	}
	if wanted {
		rec, waits = f.pending[number]
		delete(f.pending, number)
	}
	return rec, waits
}

// write adds a row as it was read, with the reason behind.
func (f *failures) write(fail failedRow) error {
	var values []any
	for _, c := range f.outColumns() {
		switch c.Name {
		case "error":
			values = append(values, fail.why.Message)
		case "error_step":
			values = append(values, fail.why.Step)
		case "error_code":
			values = append(values, fail.why.Code)
		default:
			v, _ := fail.record.Get(c.Name)
			values = append(values, v)
		}
	}
	return f.out.Write(values...)
}

// close completes the file, also after a run that failed: the rows in it are
// to be run again.
func (f *failures) close() error {
	if f == nil {
		return nil
	}
	if f.out == nil {
		if err := f.writeKept(); err != nil {
			return err
		}
	}
	if err := f.out.Close(); err != nil {
		return fmt.Errorf("failed rows: %w", err)
	}
	return nil
}

// writeKept writes the failed rows of an input whose rows have columns of their
// own, now that all columns are known.
func (f *failures) writeKept() error {
	for _, k := range f.kept {
		for _, c := range k.record.Columns {
			if !slices.Contains(f.columns, c) {
				f.columns = append(f.columns, c)
			}
		}
	}
	var err error
	if f.out, err = records.Create(f.ctx, f.path, f.outColumns()); err != nil {
		return err
	}
	for _, k := range f.kept {
		if err := f.write(k); err != nil {
			f.out.Abort()
			return err
		}
	}
	return nil
}
