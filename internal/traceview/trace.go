// Package traceview writes the traces of runs of commands: as a tree for a terminal, as
// JSON lines, and as one HTML page. All have the same spans, of a telemetry.RowCollector.
package traceview

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/internal/telemetry"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/steps"
)

// Options say where a trace is written.
type Options struct {
	Path    string            // of a file that ends in .jsonl or .html; empty for a tree on Streams.Err
	Unit    string            // what a run of the command is: "row", or "turn" of a conversation
	Title   string            // of the page
	Streams *terminal.Streams // of the tree

	Redactor *redact.Redactor // replaces secrets; nil for none
}

// Trace writes the traces of the runs of a command. A nil *Trace writes nothing.
type Trace struct {
	collector *telemetry.RowCollector
	out       output
	file      *os.File // nil for a tree
	redactor  *redact.Redactor
	err       error // the first error of a write
}

// output writes rows in one form.
type output interface {
	row(r *telemetry.RowSpans) error
	close() error
}

// formats is the table of the forms of files by their extensions.
var formats = map[string]func(*bufio.Writer, Options) (output, error){
	".jsonl": func(w *bufio.Writer, _ Options) (output, error) { return &lines{w}, nil },
	".html":  newPage,
}

// CheckPath returns an error if a trace cannot have a path.
func CheckPath(path string) error {
	if path != "" && formats[extension(path)] == nil {
		return fmt.Errorf("%s: a trace is a file that ends in .jsonl or .html; without a file it is printed", path)
	}
	return nil
}

// IsPath reports whether a word of the command line is the file of a trace.
func IsPath(word string) bool {
	return !strings.HasPrefix(word, "-") && formats[extension(word)] != nil
}

func extension(path string) string {
	if i := strings.LastIndexByte(path, '.'); i >= 0 {
		return path[i:]
	}
	return ""
}

// New starts a trace. An error means that the file cannot be written.
func New(o Options) (*Trace, error) {
	t := &Trace{redactor: o.Redactor}
	t.collector = telemetry.NewRowCollector(t.write)
	if o.Path == "" {
		t.out = newTree(o)
		return t, nil
	}
	if err := CheckPath(o.Path); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(o.Path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600) // prompts may be confidential
	if err != nil {
		return nil, fmt.Errorf("%s: cannot be written: %w", o.Path, terminal.Cause(err))
	}
	if t.out, err = formats[extension(o.Path)](bufio.NewWriter(file), o); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	t.file = file
	return t, nil
}

// Context returns a context whose runs are traced.
func (t *Trace) Context(ctx context.Context) context.Context {
	if t == nil {
		return ctx
	}
	return steps.WithObserver(ctx, t.collector)
}

// OnTerminal reports whether the trace goes to the error stream, where nothing else should be drawn.
func (t *Trace) OnTerminal() bool { return t != nil && t.file == nil }

// RowDone notes that a result of a run was received; see telemetry.RowCollector.
func (t *Trace) RowDone(number int64) {
	if t != nil {
		t.collector.RowDone(number)
	}
}

// Close completes the trace. It returns the first error of a write.
func (t *Trace) Close() error {
	if t == nil {
		return nil
	}
	t.collector.Close()
	t.keep(t.out.close())
	if t.file != nil {
		t.keep(t.file.Close())
	}
	if t.err != nil {
		return fmt.Errorf("the trace cannot be written: %w", terminal.Cause(t.err))
	}
	return nil
}

func (t *Trace) keep(err error) {
	if t.err == nil {
		t.err = err
	}
}

// write writes the spans of a row; the run goes on if that fails.
func (t *Trace) write(r *telemetry.RowSpans) {
	redactSpans(r, t.redactor)
	if t.err == nil {
		t.keep(t.out.row(r))
	}
}

// redactSpans replaces secrets in the texts of spans.
func redactSpans(r *telemetry.RowSpans, redactor *redact.Redactor) {
	if redactor.Empty() {
		return
	}
	for i := range r.Spans {
		s := &r.Spans[i]
		s.Name, s.Error = redactor.String(s.Name), redactor.String(s.Error)
		s.Input, s.Output = redactor.Bytes(s.Input), redactor.Bytes(s.Output)
		s.Attributes, _ = redactor.Value(s.Attributes).(map[string]any)
	}
}

// lines writes one JSON object for each span.
type lines struct{ out *bufio.Writer }

// line is a span in a file of JSON lines.
type line struct {
	Run int   `json:"run"`           // the number of the run, from 1
	Row int64 `json:"row,omitempty"` // the number of the row; none for the run itself, batches, and rows made of several
	telemetry.Span
}

func (l *lines) row(r *telemetry.RowSpans) error {
	enc := json.NewEncoder(l.out)
	enc.SetEscapeHTML(false)
	for _, s := range r.Spans {
		if err := enc.Encode(line{r.Run, r.Row, s}); err != nil {
			return err
		}
	}
	return l.out.Flush()
}

func (l *lines) close() error { return l.out.Flush() }

// heading returns the title of a row and whether it is the run itself.
func heading(unit string, r *telemetry.RowSpans, roots []*entry) (title string, whole bool) {
	if len(roots) > 0 && roots[0].span.Parent == "" {
		return "flow " + r.Flow, true
	}
	number := r.Row
	if unit == "turn" {
		number = int64(r.Run)
	}
	title = fmt.Sprintf("%s %d", unit, number)
	if number == 0 && len(roots) > 0 {
		title = "rows made of several"
		if roots[0].span.Attributes["rows"] != nil {
			title = "batch"
		}
	}
	return title + " · flow " + r.Flow, false
}
