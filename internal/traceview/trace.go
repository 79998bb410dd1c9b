// Package traceview writes the traces of runs of commands: as a tree for a terminal, as
// JSON lines, and as one HTML page. All have the same spans, of a telemetry.RowCollector.
package traceview

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/internal/telemetry"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec"
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

// WithLog returns a context in which a line is written when a step begins or ends to process
// a row, and when a model or a tool is called. It has no texts of rows.
func WithLog(ctx context.Context, write func(line string)) context.Context {
	return steps.WithObserver(ctx, &logger{write})
}

// logger is the observer of WithLog.
type logger struct{ write func(string) }

// logged is the table of the operations that are logged.
var logged = map[steps.OperationKind]string{
	steps.OperationRow: "step", steps.OperationBatch: "step", steps.OperationCacheHit: "step",
	steps.OperationModel: "model", steps.OperationEmbedding: "model", steps.OperationTool: "tool",
}

// Observes reports whether operations of a kind are logged.
func (l *logger) Observes(kind steps.OperationKind) bool { return logged[kind] != "" }

type logKey struct{}

// Start logs that an operation begins.
func (l *logger) Start(ctx context.Context, op *steps.Operation) steps.Span {
	if !l.Observes(op.Kind) {
		return nil
	}
	outer, _ := ctx.Value(logKey{}).(*loggedSpan)
	s := &loggedSpan{logger: l, begun: op.Begun, place: logged[op.Kind] + " " + op.ID}
	if s.begun.IsZero() {
		s.begun = time.Now()
	}
	if op.Step != nil {
		s.place += " (" + spec.TypeName(op.Step.Step) + ")"
	}
	if op.Row > 0 && outer == nil {
		s.place = fmt.Sprintf("row %d, %s", op.Row, s.place)
	}
	if outer != nil {
		s.place = outer.place + " > " + s.place
	}
	if op.Kind == steps.OperationCacheHit {
		s.cached = true
	} else {
		l.write(s.place + " begins")
	}
	return s
}

// loggedSpan is an operation that is logged.
type loggedSpan struct {
	logger *logger
	place  string
	begun  time.Time
	cached bool
}

// Context returns ctx with the operation as the enclosing one.
func (s *loggedSpan) Context(ctx context.Context) context.Context {
	return context.WithValue(ctx, logKey{}, s)
}

// End logs that the operation has ended.
func (s *loggedSpan) End(r *steps.OperationResult) {
	ended := r.Ended
	if ended.IsZero() {
		ended = time.Now()
	}
	parts := []string{s.place + " ended", textfmt.ShortDuration(ended.Sub(s.begun))}
	if s.cached {
		parts = []string{s.place + " has its results from the cache"}
	}
	if m := r.Response; m != nil {
		parts = append(parts, fmt.Sprintf("%s tokens in, %s out", textfmt.Thousands(m.Usage.Input), textfmt.Thousands(m.Usage.Output)))
	}
	if r.Err != nil {
		parts = append(parts, "failed: "+r.Err.Error())
	}
	s.logger.write(strings.Join(parts, ", "))
}

const (
	maxTreeText  = 2000 // bytes of one text
	maxTreeLines = 30   // lines of one text
	labelWidth   = 9
)

// tree writes rows for people.
type tree struct {
	out   io.Writer
	unit  string
	color bool
}

func newTree(o Options) output {
	return &tree{out: o.Streams.Err, unit: o.Unit, color: o.Streams.ErrTerminal && o.Streams.Color}
}

// row writes a row at once, so that other output does not come between its lines.
func (t *tree) row(r *telemetry.RowSpans) error {
	roots := entries(r.Spans)
	title, whole := heading(t.unit, r, roots)
	if whole { // its rows were written, and the summary follows
		return nil
	}
	sum := totalsOf(r.Spans, roots)
	var b strings.Builder
	b.WriteString(t.styled(bold, terminal.Clean(title)))
	notes := sum.notes()
	if sum.failed {
		notes = append(notes, "failed")
	}
	t.notes(&b, notes)
	b.WriteByte('\n')
	t.children(&b, &entry{children: roots, span: &telemetry.Span{}}, "")
	_, err := io.WriteString(t.out, b.String())
	return err
}

func (t *tree) close() error { return nil }

// children writes the entries within one whose line begins with indent.
func (t *tree) children(b *strings.Builder, outer *entry, indent string) {
	for i, e := range outer.children {
		branch, below := "├─ ", "│  "
		if i == len(outer.children)-1 {
			branch, below = "└─ ", "   "
		}
		title := terminal.Clean(e.title)
		if e.failed() {
			title = t.styled(red, "✗ "+title)
		}
		b.WriteString(indent + branch + title)
		t.notes(b, e.notes)
		b.WriteByte('\n')
		text := indent + below
		if len(e.children) > 0 {
			text += "│ "
		} else {
			text += "  "
		}
		t.blocks(b, e, text)
		if e.failed() && e.span.Error != outer.span.Error {
			t.block(b, block{label: "error", text: e.span.Error}, text)
		}
		t.children(b, e, indent+below)
	}
}

func (t *tree) notes(b *strings.Builder, notes []string) {
	if len(notes) > 0 {
		b.WriteString(t.styled(dim, " · "+terminal.Clean(strings.Join(notes, " · "))))
	}
}

// blocks writes the texts of an entry.
func (t *tree) blocks(b *strings.Builder, e *entry, indent string) {
	for _, part := range e.blocks {
		if !part.detail {
			t.block(b, part, indent)
		}
	}
}

// block writes a text next to its label.
func (t *tree) block(b *strings.Builder, part block, indent string) {
	label := terminal.Clean(part.label)
	label += strings.Repeat(" ", max(0, labelWidth-utf8.RuneCountInString(label)))
	for i, l := range shortened(part.text) {
		if i > 0 {
			label = strings.Repeat(" ", utf8.RuneCountInString(label))
		}
		b.WriteString(strings.TrimRight(indent+t.styled(dim, label)+"  "+l, " ") + "\n")
	}
}

// shortened returns the first lines of a text, and a line with the length of the rest.
func shortened(text string) []string {
	text = strings.TrimRight(terminal.Printable(text), "\n")
	whole := text
	if len(text) > maxTreeText {
		text = strings.ToValidUTF8(text[:maxTreeText], "")
	}
	all := strings.Split(text, "\n")
	if len(all) > maxTreeLines {
		all = all[:maxTreeLines]
	}
	shown := len(strings.Join(all, "\n"))
	if shown < len(whole) {
		all = append(all, fmt.Sprintf("… %s more; --trace FILE.html has all", textfmt.Count(utf8.RuneCountInString(whole[shown:]), "character")))
	}
	return all
}

// The styles of terminals.
const (
	bold = "1"
	dim  = "2"
	red  = "31"
)

func (t *tree) styled(style, text string) string {
	if !t.color || text == "" {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}
