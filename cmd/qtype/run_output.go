package main

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/qtype-dev/qtype/records"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/value"
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
func (r *running) newSink(flow *spec.Flow, in *input) (sink, error) {
	format := records.Format(r.format.value)
	switch {
	case r.output != "":
		format, _ = records.FormatOf(r.output) // was checked
		w, err := records.Create(r.output, resultColumns(format, r.shape(flow, in)))
		if err != nil {
			return nil, err
		}
		return &recordSink{out: w, format: format, shape: r.shape(flow, in)}, nil
	case format == "" && r.outTerminal, format == "table":
		if in.file == nil && len(in.memory) == 1 && format == "" {
			return &cards{to: r.streams}, nil
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

// shape is what a result row consists of.
type shape struct {
	row, session, error bool // what a result has beside the flow's outputs
	outputs             []*spec.Variable
}

// shape is the columns of a run's results: the row's number, its session where
// rows name theirs, the flow's outputs, and the error. An output that has one
// of those names takes its place.
func (r *running) shape(flow *spec.Flow, in *input) shape {
	s := shape{row: true, error: true, session: in.session != "" || r.session != "" || r.sessionColumn != ""}
	for _, ref := range flow.Outputs {
		s.outputs = append(s.outputs, ref.To)
		s.row = s.row && ref.To.ID != "row"
		s.session = s.session && ref.To.ID != "session"
		s.error = s.error && ref.To.ID != "error"
	}
	return s
}

// resultColumns are the columns of a shape in a format.
func resultColumns(f records.Format, s shape) []records.Column {
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
		return records.JSONs
	}
	return records.Text
}

// recordSink writes results as records.
type recordSink struct {
	out    *records.Writer
	format records.Format
	shape  shape
	flush  bool // somebody may read along
}

// row writes one result; values that were not set become null.
func (s *recordSink) row(res *runtime.Result) error {
	var values []any
	if s.shape.row {
		values = append(values, number(res))
	}
	if s.shape.session {
		values = append(values, res.Session)
	}
	for v, x := range res.Outputs() {
		values = append(values, cellOf(kindOf(s.format, v.Type), x))
	}
	if s.shape.error {
		values = append(values, errorOf(res))
	}
	if err := s.out.Write(values...); err != nil {
		return err
	}
	if s.flush {
		return s.out.Flush()
	}
	return nil
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

// cellOf is a value as its column takes it.
func cellOf(k records.Kind, x any) any {
	switch k {
	case records.JSONs:
		if x != nil {
			return json.RawMessage(value.JSON(x))
		}
	case records.Text:
		if x != nil {
			return value.Text(x)
		}
	}
	return x
}

// failures writes the rows that failed. A nil *failures does nothing.
type failures struct {
	path    string
	format  records.Format
	columns []string                 // of the input, nil where each row has its own
	out     *records.Writer          // nil while the columns are not known
	pending map[int64]records.Record // rows that are on their way
	oldest  int64                    // rows before this one have come out
	kept    []failure                // failed rows that wait for the columns of all
}

// failure is one row that failed.
type failure struct {
	record records.Record
	reason string
}

// newFailures readies --errors; nil where it was not asked for.
func (r *running) newFailures(in *input, flow *spec.Flow) (*failures, error) {
	if r.errors == "" {
		return nil, nil
	}
	f := &failures{path: r.errors, columns: in.columns, pending: map[int64]records.Record{}}
	f.format, _ = records.FormatOf(r.errors) // was checked
	in.record = func(rec records.Record) { f.pending[rec.Number] = rec }
	var err error
	if f.columns != nil {
		f.out, err = records.Create(f.path, f.outColumns())
		return f, err
	}
	for _, ref := range flow.Inputs {
		f.columns = append(f.columns, ref.To.ID)
	}
	// Only to learn now rather than after the run that the file can be written.
	probe, err := records.Create(f.path, f.outColumns())
	if err == nil {
		probe.Abort()
	}
	return f, err
}

// outColumns are the input's columns and the error. An input that has a column
// "error", such as a file of failed rows, gets the new error in it.
func (f *failures) outColumns() []records.Column {
	kind := records.Text
	if f.format == records.JSON || f.format == records.JSONL {
		kind = records.JSONs // keeps numbers and objects what they are
	}
	var all []records.Column
	for _, c := range f.columns {
		if c != "error" {
			all = append(all, records.Column{Name: c, Kind: kind})
		}
	}
	return append(all, records.Column{Name: "error"})
}

// add takes note of a result: a failed row is written once, rows before it are
// not needed any more.
func (f *failures) add(res *runtime.Result) error {
	if f == nil {
		return nil
	}
	for ; f.oldest < res.Number; f.oldest++ { // results keep the order of the rows
		delete(f.pending, f.oldest)
	}
	rec, waits := f.pending[res.Number]
	if res.Err == nil || !waits {
		return nil
	}
	delete(f.pending, res.Number)
	fail := failure{rec, res.Err.Error()}
	if f.out == nil {
		f.kept = append(f.kept, fail)
		return nil
	}
	return f.write(fail)
}

// write adds a row as it was read, with the reason behind.
func (f *failures) write(fail failure) error {
	var values []any
	for _, c := range f.outColumns() {
		v, _ := fail.record.Get(c.Name)
		if c.Name == "error" {
			v = fail.reason
		}
		values = append(values, v)
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
		for _, k := range f.kept {
			for _, c := range k.record.Columns {
				if !slices.Contains(f.columns, c) {
					f.columns = append(f.columns, c)
				}
			}
		}
		var err error
		if f.out, err = records.Create(f.path, f.outColumns()); err != nil {
			return err
		}
		for _, k := range f.kept {
			if err := f.write(k); err != nil {
				f.out.Abort()
				return err
			}
		}
	}
	if err := f.out.Close(); err != nil {
		return fmt.Errorf("failed rows: %w", err)
	}
	return nil
}
