package traceview

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
)

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
