package model

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/httpx"
)

// CallPolicy says how long a try may take and how often a call is tried.
type CallPolicy struct {
	Timeout      time.Duration // ends one try, its whole answer included; 0 means no limit
	MaxAttempts  int           // how often a call is tried in all; 0 and 1 mean once
	InitialDelay time.Duration // the wait before the second try, give or take a half
	MaxDelay     time.Duration // the longest wait between two tries
	Limit        *Limiter      // holds each try back before its time begins; nil for none
}

// WithRetry gives m a time limit and repeats calls that failed for a
// passing reason (Error.Temporary), later each time and never before the
// provider wants it. Once a delta was yielded nothing is repeated: the reader
// has seen a part of the answer already. Where the provider asks to wait
// longer than MaxDelay the call fails at once.
func WithRetry(m Chat, p CallPolicy) Chat { return &retryModel{Chat: m, CallPolicy: p} }

type retryModel struct {
	Chat
	CallPolicy
}

// Generate tries until an answer comes, the tries are used up or ctx ends.
func (p *retryModel) Generate(ctx context.Context, req Request) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		tries := httpx.Policy{MaxAttempts: p.MaxAttempts, InitialDelay: p.InitialDelay, MaxDelay: p.MaxDelay}.Start()
		for {
			again, err := p.try(ctx, req, yield)
			if err == nil {
				return
			}
			var failure *Error
			if !errors.As(err, &failure) {
				yield(Event{}, err)
				return
			}
			if again && failure.Temporary && tries.Next(ctx, failure.RetryAfter) {
				continue
			}
			if ctx.Err() != nil {
				yield(Event{}, ctx.Err())
				return
			}
			counted := *failure
			counted.Attempts = tries.Count()
			yield(Event{}, &counted)
			return
		}
	}
}

// try makes one try and hands its events on. It answers why the try failed and
// whether nothing was handed on yet; a nil error means that all is said.
func (p *retryModel) try(ctx context.Context, req Request, yield func(Event, error) bool) (again bool, err error) {
	call, err := p.Limit.Wait(ctx, p.Info(), req)
	if err != nil {
		return false, err
	}
	defer func() { call.Failed(err) }()
	within, cancel := ctx, context.CancelFunc(func() {})
	if p.Timeout > 0 {
		within, cancel = context.WithTimeout(ctx, p.Timeout)
	}
	defer cancel()
	again = true
	for ev, err := range p.Chat.Generate(within, req) {
		if err != nil {
			return again, p.explain(ctx, within, err)
		}
		again = false
		if ev.Response != nil {
			call.Done(ev.Response.Usage)
		}
		if !yield(ev, nil) || ev.Response != nil {
			return false, nil
		}
	}
	return again, p.explain(ctx, within, &Error{Model: p.Info().ID, Message: "the answer ended before it was complete", Temporary: true})
}

// explain tells the caller's cancellation from a try that took too long.
func (p *retryModel) explain(ctx, within context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case within.Err() == nil:
		return err
	}
	return &Error{Model: p.Info().ID, Message: "no complete answer within " + shortDuration(p.Timeout), Temporary: true}
}

// shortDuration is 2m rather than 2m0s.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// retryAfterText is what the provider asked for, in words.
func (e *Error) retryAfterText() string {
	if e.RetryAfter <= 0 {
		return ""
	}
	return fmt.Sprintf(", the server asks to wait %s", shortDuration(e.RetryAfter.Round(time.Second)))
}
