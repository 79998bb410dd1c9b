package batch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"

	"github.com/qtype-dev/qtype/internal/records"
	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
)

// sink takes the results of a run.
type sink interface {
	// write takes one result. Its error ends the run, unless it is an *outputTypeError.
	write(res *runtime.Result) error
	// close completes the output.
	close() error
	// abort discards the output.
	abort()
	// setDisplay sets the progress bars above which to write.
	setDisplay(d *display)
}

// newSink creates the sink for the output and the format of a run.
func newSink(ctx context.Context, cfg *Config, flow *spec.Flow, in *input) (sink, error) {
	format := records.Format(cfg.Format)
	columns := newOutputColumns(flow, in)
	switch {
	case cfg.Output != "":
		format = outputFormat(cfg.Output)
		w, err := records.CreateFormat(ctx, cfg.Output, format, columns.in(format))
		if err != nil {
			return nil, err
		}
		return &recordSink{out: w, columns: columns}, nil
	case format == "text", format == "" && cfg.Streams.OutTerminal && in.file == nil && len(in.values) == 1:
		return &textView{out: cfg.Streams.Out, single: len(flow.Outputs) == 1, safe: cfg.Streams.OutTerminal}, nil
	case format == "" && cfg.Streams.OutTerminal, format == "table":
		return newTable(cfg.Streams, columns), nil
	case format == "":
		format = records.JSONL
	}
	out := cfg.Streams.Out
	if cfg.Streams.OutTerminal {
		out = terminal.EscapeAll(out) // the texts of models and files must not change the terminal
	}
	w, err := records.NewWriter(ctx, out, format, columns.in(format))
	if err != nil {
		return nil, err
	}
	s := &recordSink{out: w, columns: columns, flush: format != records.JSON}
	if isRegularFile(redact.Unwrap(cfg.Streams.Out)) {
		s.pause = filePause
	}
	return s, nil
}

// filePause is how long rows for standard output may wait for others if that is a file:
// flushing each of many small rows costs more than making it.
const filePause = 100 * time.Millisecond

// isRegularFile reports whether out is a file, and no terminal, pipe or device.
func isRegularFile(out io.Writer) bool {
	f, ok := out.(interface{ Stat() (fs.FileInfo, error) })
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode().IsRegular()
}

// outputFormat returns the format of an output file, whose name the caller has checked. One
// without a suffix is a Parquet file.
func outputFormat(path string) records.Format {
	format, known := records.FormatOf(path)
	if !known {
		return records.Parquet
	}
	return format
}

// outputColumns are the columns of results.
type outputColumns struct {
	row, user, session, error bool // the columns besides the flow's outputs
	hasUsers                  bool // sessions belong to users
	outputs                   []*spec.Variable
}

// newOutputColumns returns the columns of a run's results: the row's number, its
// user and session if rows have them, the flow's outputs, and the error. An output with the
// name of one of these replaces it.
func newOutputColumns(flow *spec.Flow, in *input) outputColumns {
	s := outputColumns{row: true, error: true, user: in.hasUsers(), hasUsers: in.hasUsers(), session: in.hasSessions()}
	for _, ref := range flow.Outputs {
		s.outputs = append(s.outputs, ref.To)
		s.row = s.row && ref.To.ID != "row"
		s.session = s.session && ref.To.ID != "session"
		s.user = s.user && ref.To.ID != "user"
		s.error = s.error && ref.To.ID != "error"
	}
	return s
}

// in returns the columns in a format.
func (s outputColumns) in(f records.Format) []records.Column {
	var all []records.Column
	if s.row {
		all = append(all, records.Column{Name: "row", Kind: records.Int})
	}
	if s.user {
		all = append(all, records.Column{Name: "user"})
	}
	if s.session {
		all = append(all, records.Column{Name: "session"})
	}
	for _, v := range s.outputs {
		all = append(all, columnOf(f, v))
	}
	if s.error {
		all = append(all, records.Column{Name: "error"})
	}
	return all
}

// columnOf returns the column of an output. In a flat format, a ChatMessage is its text.
func columnOf(f records.Format, v *spec.Variable) records.Column {
	c := records.ColumnOf(v)
	if flat := f == records.CSV || f == records.TSV; flat && v.Type.Is("ChatMessage") {
		c.Kind = records.Text
	}
	return c
}

// appendRow appends a result's values, one for each column.
func (s outputColumns) appendRow(row []any, res *runtime.Result) []any {
	if s.row {
		row = append(row, number(res))
	}
	user, session := s.sessionOf(res)
	if s.user {
		row = append(row, user)
	}
	if s.session {
		row = append(row, session)
	}
	row = res.AppendOutputs(row)
	if s.error {
		row = append(row, errorOf(res))
	}
	return row
}

// sessionOf returns the session of a result and its user, as the rows name them.
func (s outputColumns) sessionOf(res *runtime.Result) (user, session string) {
	if !s.hasUsers {
		return "", res.Session
	}
	return memory.SplitSession(res.Session)
}

// redact returns a row with an error in place of its outputs.
func (s outputColumns) redact(row []any, err error) []any {
	blank := slices.Clone(row)
	outputs := blank
	if s.error {
		outputs = blank[:len(blank)-1]
		blank[len(blank)-1] = err.Error()
	}
	clear(outputs[len(outputs)-len(s.outputs):])
	return blank
}

// number returns the number of a result's row; null if it came from several.
func number(res *runtime.Result) any {
	if res.Number == 0 {
		return nil
	}
	return res.Number
}

// errorOf returns why a row failed; null if it did not.
func errorOf(res *runtime.Result) any {
	if res.Err == nil {
		return nil
	}
	return res.Err.Error()
}

// outputTypeError reports an output whose value is not of its declared type.
type outputTypeError struct{ value *records.ValueError }

// Error names the output.
func (e *outputTypeError) Error() string {
	return fmt.Sprintf("output %s: %s", e.value.Column, e.value.Reason)
}

// recordSink writes results as records.
type recordSink struct {
	out     *records.Writer
	columns outputColumns
	flush   bool          // rows are flushed, so that a pipe shows each at once
	pause   time.Duration // the time between two flushes; 0 to flush each row
	flushed time.Time     // when the last flush was
	cells   []any         // of the row that is written
}

// write writes one result. If it does not fit the columns, its row is written as a
// failed one, and the error is an *outputTypeError.
func (s *recordSink) write(res *runtime.Result) error {
	s.cells = s.columns.appendRow(s.cells[:0], res)
	err := s.out.Write(s.cells...)
	if unfit, ok := errors.AsType[*records.ValueError](err); ok {
		failed := &outputTypeError{unfit}
		if err = s.out.Write(s.columns.redact(s.cells, failed)...); err == nil {
			err = failed
		}
	}
	if err == nil && s.flush {
		return s.flushRow()
	}
	return err
}

// flushRow flushes the rows, unless the last flush was less than the pause ago.
func (s *recordSink) flushRow() error {
	if s.pause > 0 {
		now := time.Now()
		if now.Sub(s.flushed) < s.pause {
			return nil
		}
		s.flushed = now
	}
	return s.out.Flush()
}

func (s *recordSink) close() error { return s.out.Close() }

// abort discards a file. What was written to standard output stays there.
func (s *recordSink) abort() {
	if s.flush {
		_ = s.out.Flush() // the error that ends the run is reported
	}
	s.out.Abort()
}

// setDisplay does nothing: no bars are drawn next to records.
func (s *recordSink) setDisplay(*display) {}
