package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/qtype-dev/qtype/internal/records"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
)

// sink takes the results of a run.
type sink interface {
	// row takes one result; its error ends the run.
	row(res *runtime.Result) error
	// close completes what was written.
	close() error
	// abort gives it up.
	abort()
	// showOn tells how to write to a terminal that shows progress too.
	showOn(d *display)
}

// newSink chooses where results go and in which form.
func (r *runCommand) newSink(ctx context.Context, flow *spec.Flow, in *input) (sink, error) {
	format := records.Format(r.format.value)
	switch {
	case r.output != "":
		format, _ = records.FormatOf(r.output) // was checked
		w, err := records.Create(ctx, r.output, resultColumns(format, r.shape(flow, in)))
		if err != nil {
			return nil, err
		}
		return &recordSink{out: w, format: format, shape: r.shape(flow, in)}, nil
	case format == "" && r.outTerminal, format == "table":
		if in.file == nil && len(in.memory) == 1 && format == "" {
			return &detailView{to: r.streams}, nil
		}
		return newTable(r.streams, r.shape(flow, in)), nil
	case format == "":
		format = records.JSONL
	}
	shape := r.shape(flow, in)
	w, err := records.NewWriter(r.out, format, resultColumns(format, shape))
	if err != nil {
		return nil, err
	}
	return &recordSink{out: w, format: format, shape: shape, flush: format != records.JSON}, nil
}

// outputColumns is what a result row consists of.
type outputColumns struct {
	row, session, error bool // what a result has beside the flow's outputs
	outputs             []*spec.Variable
}

// shape is the columns of a run's results: the row's number, its session where
// rows name theirs, the flow's outputs, and the error. An output that has one
// of those names takes its place.
func (r *runCommand) shape(flow *spec.Flow, in *input) outputColumns {
	s := outputColumns{row: true, error: true, session: in.session != "" || r.session != "" || r.sessionColumn != ""}
	for _, ref := range flow.Outputs {
		s.outputs = append(s.outputs, ref.To)
		s.row = s.row && ref.To.ID != "row"
		s.session = s.session && ref.To.ID != "session"
		s.error = s.error && ref.To.ID != "error"
	}
	return s
}

// resultColumns are the columns of a shape in a format.
func resultColumns(f records.Format, s outputColumns) []records.Column {
	var all []records.Column
	if s.row {
		all = append(all, records.Column{Name: "row", Kind: records.Int})
	}
	if s.session {
		all = append(all, records.Column{Name: "session"})
	}
	for _, v := range s.outputs {
		all = append(all, records.Column{Name: v.ID, Kind: kindOf(f, v.Type)})
	}
	if s.error {
		all = append(all, records.Column{Name: "error"})
	}
	return all
}

// nested tells whether a format holds JSON values as they are.
func nested(f records.Format) bool { return f != records.CSV && f != records.TSV }

// kindOf is how a format holds a type. A ChatMessage in a flat file is its text.
func kindOf(f records.Format, t spec.Type) records.Kind {
	switch {
	case t.Is("int"):
		return records.Int
	case t.Is("float"):
		return records.Float
	case t.Is("boolean"):
		return records.Bool
	case t.IsMedia() && (f == records.Parquet || !nested(f)):
		return records.Bytes
	case t.IsList(), t.IsRecord(), t.IsMedia():
		if t.Is("ChatMessage") && !nested(f) {
			return records.Text
		}
		return records.JSONText
	}
	return records.Text
}

// recordSink writes results as records.
type recordSink struct {
	out    *records.Writer
	format records.Format
	shape  outputColumns
	flush  bool  // each row is written at once
	cells  []any // of the row that is written
}

// row writes one result; values that were not set become null. The error of a
// result that does not fit the columns is an *outputTypeError, and the result then
// stands there as a failed row.
func (s *recordSink) row(res *runtime.Result) error {
	s.cells = s.shape.appendRow(s.cells[:0], res)
	err := s.out.Write(s.cells...)
	var unfit *records.ValueError
	if errors.As(err, &unfit) {
		fault := &outputTypeError{unfit}
		if err = s.out.Write(s.shape.redact(s.cells, fault)...); err == nil {
			err = fault
		}
	}
	if err == nil && s.flush {
		return s.out.Flush()
	}
	return err
}

// outputTypeError says that an output's value is not of its declared type.
type outputTypeError struct{ of *records.ValueError }

// Error names the output.
func (e *outputTypeError) Error() string {
	return fmt.Sprintf("output %s: %s", e.of.Column, e.of.Reason)
}

// appendRow appends a result's values, one for each column.
func (s outputColumns) appendRow(row []any, res *runtime.Result) []any {
	if s.row {
		row = append(row, number(res))
	}
	if s.session {
		row = append(row, res.Session)
	}
	row = res.AppendOutputs(row)
	if s.error {
		row = append(row, errorOf(res))
	}
	return row
}

// redact are a result's cells without its outputs and with an error.
func (s outputColumns) redact(values []any, why error) []any {
	blank := slices.Clone(values)
	clear(blank[len(blank)-len(s.outputs)-one(s.error):])
	if s.error {
		blank[len(blank)-1] = why.Error()
	}
	return blank
}

// one is 1 for true.
func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// close gives a file its name, which it does not have before.
func (s *recordSink) close() error { return s.out.Close() }

// abort leaves nothing behind of a file; what went to standard output is out.
func (s *recordSink) abort() { s.out.Abort() }

// showOn does nothing: no bars are drawn where records are printed.
func (s *recordSink) showOn(*display) {}

// number is the row that a result came from; null where it came from many.
func number(res *runtime.Result) any {
	if res.Number == 0 {
		return nil
	}
	return res.Number
}

// errorOf is why a row failed; null where it did not.
func errorOf(res *runtime.Result) any {
	if res.Err == nil {
		return nil
	}
	return res.Err.Error()
}
