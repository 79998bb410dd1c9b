package model

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// WithFallbacks calls the other models in order where m fails with an *Error after its
// retries. After the first delta there is no fallback, because the reader has seen a part
// of the answer, nor after the end of the context. Info is m's, with the smallest context
// window of all models, so that a request fits all of them.
func WithFallbacks(m Chat, others ...Chat) Chat {
	if len(others) == 0 {
		return m
	}
	f := &fallbackChain{all: append([]Chat{m}, others...), info: m.Info()}
	for _, o := range others {
		if w := o.Info().ContextWindow; w > 0 && (f.info.ContextWindow == 0 || w < f.info.ContextWindow) {
			f.info.ContextWindow = w
		}
	}
	return f
}

// fallbackChain is a model and its fallbacks.
type fallbackChain struct {
	all  []Chat // the model itself first
	info Info
}

// Info describes the first model.
func (f *fallbackChain) Info() Info { return f.info }

// FallbackError reports that a model and all of its fallbacks failed.
type FallbackError struct {
	Errors []error // the errors, in the order of the models
}

// Error joins the errors of all models.
func (e *FallbackError) Error() string {
	var b strings.Builder
	for i, err := range e.Errors {
		if i > 0 {
			b.WriteString("; its fallback ")
		}
		b.WriteString(strings.TrimPrefix(err.Error(), "model "))
	}
	return "model " + b.String()
}

// Unwrap returns the errors.
func (e *FallbackError) Unwrap() []error { return e.Errors }

// Failure is why a model did not answer, so that its fallback was called.
type Failure struct {
	Model   string // the id of the model in the document
	Status  int    // the HTTP status; 0 if there was no response
	Code    string // the error code: that of the provider, or circuit_open; empty for none
	Message string // the whole error, on one line

	dropped string // what was left out of the request, a line each
}

// newFailure describes an error of a model.
func newFailure(m Chat, err error) Failure {
	f := Failure{Model: m.Info().ID, Message: err.Error()}
	if failure, ok := errors.AsType[*Error](err); ok {
		f.Status, f.Code, f.dropped = failure.Status, failure.Code, strings.Join(failure.Dropped, "\n")
	}
	return f
}

// Reason returns the failure in a few words, which are the same for failures of one kind:
// the code, or the status, or that there was no response.
func (f Failure) Reason() string {
	switch {
	case f.Code == CircuitOpen:
		return CircuitOpen
	case f.Status != 0 && f.Code != "":
		return fmt.Sprintf("HTTP %d %s", f.Status, f.Code)
	case f.Status != 0:
		return fmt.Sprintf("HTTP %d", f.Status)
	case f.Code != "":
		return f.Code
	}
	return "no response"
}

type failuresKey struct{}

// FailuresBefore returns why the models before this one were not used, in a call of a
// fallback; nil in other calls.
func FailuresBefore(ctx context.Context) []Failure {
	failed, _ := ctx.Value(failuresKey{}).([]Failure)
	return failed
}

// Generate calls one model after the other until one succeeds.
func (f *fallbackChain) Generate(ctx context.Context, req Request) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		var reasons []error
		var failed []Failure
		for _, m := range f.all {
			within := ctx
			if len(failed) > 0 {
				within = context.WithValue(ctx, failuresKey{}, slices.Clip(failed))
			}
			begun, err := f.ask(within, m, req, yield)
			var failure *Error
			switch {
			case err == nil:
				return
			case begun, ctx.Err() != nil, !errors.As(err, &failure):
				yield(Event{}, err)
				return
			}
			reasons, failed = append(reasons, err), append(failed, newFailure(m, err))
		}
		yield(Event{}, &FallbackError{Errors: reasons})
	}
}

// ask forwards the events of one model. begun reports whether there was one; a nil
// error means that the answer is complete or that the reader has stopped.
func (f *fallbackChain) ask(ctx context.Context, m Chat, req Request, yield func(Event, error) bool) (begun bool, err error) {
	for ev, err := range m.Generate(ctx, req) {
		if err != nil {
			return begun, err
		}
		if ev.Response != nil && m != f.all[0] {
			answered := *ev.Response
			answered.Model, answered.Failed = m.Info().ID, FailuresBefore(ctx)
			for _, f := range slices.Backward(answered.Failed) {
				if f.dropped != "" {
					answered.Dropped = slices.Concat(strings.Split(f.dropped, "\n"), answered.Dropped)
				}
			}
			ev.Response = &answered
		}
		begun = true
		if !yield(ev, nil) || ev.Response != nil {
			return true, nil
		}
	}
	return begun, &Error{Model: m.Info().ID, Message: "the answer ended before it was complete"}
}
