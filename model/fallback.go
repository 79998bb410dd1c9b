package model

import (
	"context"
	"errors"
	"iter"
	"strings"
)

// WithFallbacks calls the other models in order where m fails with an *Error after its
// retries. After the first delta there is no fallback, because the reader has seen a
// part of the answer, nor after the end of the context. Info is that of m, with the
// smallest context window of all models, so that a request fits every one of them.
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

// Generate calls one model after the other until one succeeds.
func (f *fallbackChain) Generate(ctx context.Context, req Request) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		var reasons []error
		for _, m := range f.all {
			begun, err := f.ask(ctx, m, req, yield)
			var failure *Error
			switch {
			case err == nil:
				return
			case begun, ctx.Err() != nil, !errors.As(err, &failure):
				yield(Event{}, err)
				return
			}
			reasons = append(reasons, err)
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
			answered.Model = m.Info().ID
			ev.Response = &answered
		}
		begun = true
		if !yield(ev, nil) || ev.Response != nil {
			return true, nil
		}
	}
	return begun, &Error{Model: m.Info().ID, Message: "the answer ended before it was complete"}
}
