package model

import (
	"context"
	"errors"
	"iter"
	"strings"
)

// WithFallbacks asks others, in their order, where m cannot answer: where its
// call ends with an *Error, its own retries used up. Once a delta was yielded
// nobody else is asked: the reader has seen a part of an answer. The context's
// end ends all. Info is m's, with the smallest context window of all, so that
// what is sent fits whoever is asked.
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

// fallbackChain is a model and those that are asked in its place.
type fallbackChain struct {
	all  []Chat // the model itself first
	info Info
}

// Info tells what the first model is.
func (f *fallbackChain) Info() Info { return f.info }

// FallbackError says that neither a model nor any of its fallbacks could answer.
type FallbackError struct {
	Errors []error // why, in the order in which they were asked
}

// Error tells all reasons.
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

// Unwrap is all of the reasons.
func (e *FallbackError) Unwrap() []error { return e.Errors }

// Generate asks one model after the other until one answers.
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

// ask hands on what one model says. It answers whether anything was handed on,
// and why the model failed; a nil error means that all is said.
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
