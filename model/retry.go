package model

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/internal/timer"
)

// CallPolicy is the time limit, the retries and the rate limit of calls.
type CallPolicy struct {
	Timeout      time.Duration // limit of one attempt, including the whole answer; 0 means no limit
	MaxAttempts  int           // maximum number of attempts; 0 and 1 mean no retry
	InitialDelay time.Duration // delay before the second attempt, with jitter of 50 %
	MaxDelay     time.Duration // maximum delay between two attempts
	Limit        *Limiter      // delays each attempt before its time limit starts; nil for none
	// MaxWait is how long a call waits in total for the rate limit of the provider. These
	// waits delay all calls of Limit and are no attempts. 0: they are attempts.
	MaxWait time.Duration
	Breaker *Breaker // stops the calls of a server that fails; nil for none
}

// throttleWait is how long a call waits after its first rejection by the provider's rate limit,
// if that names no time. Later waits are at least twice as long each, up to a minute, also if
// the provider names a shorter time again and again.
const throttleWait = time.Second

// throttle counts the waits of one call for the rate limit of the provider.
type throttle struct {
	waited time.Duration
	next   time.Duration // the shortest next wait
}

// throttled reports whether a rejected call is to be repeated after the pause of the
// Limiter, which it begins.
func (p *CallPolicy) throttled(ctx context.Context, e *Error, t *throttle) bool {
	if e.Status != http.StatusTooManyRequests || !e.Temporary || p.MaxWait <= 0 || p.MaxAttempts <= 1 || p.Limit == nil {
		return false
	}
	wait := max(e.RetryAfter, t.next)
	if wait <= 0 {
		wait = throttleWait
	}
	t.next = min(2*max(t.next, throttleWait), minute)
	if t.waited += wait; t.waited > p.MaxWait {
		return false
	}
	p.Limit.Pause(ctx, wait)
	return true
}

// serverFailed reports whether an attempt shows that the server does not work; known is
// false if it shows nothing.
func serverFailed(err error) (failed, known bool) {
	var failure *Error
	switch {
	case err == nil:
		return false, true
	case !errors.As(err, &failure):
		return false, false
	}
	return failure.Temporary && (failure.Status == 0 || failure.Status >= http.StatusInternalServerError), true
}

// WithRetry applies a time limit to m and retries calls that failed temporarily
// (Error.Temporary), with exponential backoff and never before the time that the
// provider requests. After the first delta there is no retry, because the reader has
// seen a part of the answer. If the provider requests a longer wait than MaxDelay, the
// call fails at once.
func WithRetry(m Chat, p CallPolicy) Chat { return &retryModel{Chat: m, CallPolicy: p} }

type retryModel struct {
	Chat
	CallPolicy
}

// Generate makes attempts until one succeeds, none is left or ctx ends.
func (p *retryModel) Generate(ctx context.Context, req Request) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		tries := httpx.Policy{MaxAttempts: p.MaxAttempts, InitialDelay: p.InitialDelay, MaxDelay: p.MaxDelay}.Start()
		var waits throttle
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
			if again && (p.throttled(ctx, failure, &waits) || failure.Temporary && tries.Next(ctx, failure.RetryAfter)) {
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

// try makes one attempt and forwards its events. again reports whether no event was
// forwarded; a nil error means that the answer is complete or that the reader has
// stopped.
func (p *retryModel) try(ctx context.Context, req Request, yield func(Event, error) bool) (again bool, err error) {
	call, err := p.Limit.Wait(ctx, p.Info(), req)
	if err != nil {
		return false, err
	}
	defer func() { call.Failed(ctx, err) }()
	if err := p.Breaker.allow(p.Info()); err != nil {
		return true, err
	}
	known := false
	defer func() {
		failed, is := serverFailed(err)
		p.Breaker.done(failed, is && (known || err != nil))
	}()
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
			known = true
			call.Done(ev.Response.Usage)
			if wait := ev.Response.NextAfter; wait > 0 && p.Limit != nil {
				p.Limit.Pause(ctx, min(wait, minute))
			}
		}
		if !yield(ev, nil) || ev.Response != nil {
			return false, nil
		}
	}
	return again, p.explain(ctx, within, &Error{Model: p.Info().ID, Message: "the answer ended before it was complete", Temporary: true})
}

// explain distinguishes the end of the caller's context from that of the attempt.
func (p *retryModel) explain(ctx, within context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case within.Err() == nil:
		return err
	}
	return &Error{Model: p.Info().ID, Message: "no complete answer within " + shortDuration(p.Timeout), Temporary: true}
}

// shortDuration formats 2m0s as 2m.
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

// retryAfterText formats Retry-After for an error message.
func (e *Error) retryAfterText() string {
	if e.RetryAfter <= 0 {
		return ""
	}
	return fmt.Sprintf(", retry after %s", shortDuration(e.RetryAfter.Round(time.Second)))
}

// Error is a failure of the provider or the network.
type Error struct {
	Model      string        // the model's id in the document
	Endpoint   string        // the server's address, without credentials
	Status     int           // the HTTP status; 0 if there was no response
	Code       string        // the provider's error code; empty for none
	Message    string        // one line, of the provider or of qtype
	Attempts   int           // how often the request was sent
	RetryAfter time.Duration // how long the provider requests to wait before the next call
	TooLong    bool          // whether the request exceeds the context window
	Requested  int           // TooLong: tokens of the request's messages, 0 if the provider did not report them
	Limit      int           // TooLong: tokens of the context window, 0 if the provider did not report them
	Opaque     bool          // whether the server rejected the request (HTTP 400) without a reason; some do so if it is too long
	Temporary  bool          // whether a later call may succeed
	Dropped    []string      // what was left out of the request, as in Response
	Err        error         // the cause: a network error
}

// Error returns one line: the model, the failure, the server, the attempts.
func (e *Error) Error() string {
	s := e.Message
	if e.Status != 0 {
		s = fmt.Sprintf("HTTP %d: %s", e.Status, e.Message)
	}
	if e.Model != "" {
		s = fmt.Sprintf("model %s: %s", e.Model, s)
	}
	if e.Endpoint != "" && !strings.Contains(e.Message, e.Endpoint) {
		s += " (" + e.Endpoint + ")"
	}
	if e.Attempts > 1 {
		s += fmt.Sprintf(", tried %d times", e.Attempts)
	}
	return s + e.retryAfterText()
}

// Unwrap returns the network error, nil for none.
func (e *Error) Unwrap() error { return e.Err }

// Patient makes calls of m wait for a server that is away, if the run permits it: timer.WithOutages. It goes around
// the fallbacks of m.
func Patient(m Chat) Chat {
	if m == nil || m.Info().Mock {
		return m
	}
	return &patientChat{m}
}

type patientChat struct{ Chat }

// Generate repeats the call while the server is away. After the first event it does not.
func (p *patientChat) Generate(ctx context.Context, req Request) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		begun := false
		err := timer.Outlast(ctx, serverOf(p.Info()), func(err error) bool { return !begun && isAway(err) }, func() error {
			for ev, err := range p.Chat.Generate(ctx, req) {
				if err != nil {
					return err
				}
				begun = true
				if !yield(ev, nil) {
					return nil
				}
			}
			return nil
		})
		if err != nil {
			yield(Event{}, err)
		}
	}
}

// PatientEmbedder is Patient for embedding models.
func PatientEmbedder(m Embedder) Embedder {
	if m == nil || m.Info().Mock {
		return m
	}
	return &patientEmbedder{m}
}

type patientEmbedder struct{ Embedder }

// Embed repeats the call while the server is away.
func (p *patientEmbedder) Embed(ctx context.Context, texts []string) (vectors [][]float32, used Usage, err error) {
	err = timer.Outlast(ctx, serverOf(p.Info()), isAway, func() error {
		got, usage, err := p.Embedder.Embed(ctx, texts)
		used.Add(usage)
		vectors = got
		return err
	})
	return vectors, used, err
}

func serverOf(m Info) string { return "model " + m.ID }

// isAway reports whether an error shows that the server of a model, or of one of its fallbacks, is away: there is no
// connection, or a proxy has none. An answer that takes too long, or an error of the server itself, may be due to the
// request.
func isAway(err error) bool {
	if all, ok := errors.AsType[*FallbackError](err); ok {
		return slices.ContainsFunc(all.Errors, isAway)
	}
	failure, ok := errors.AsType[*Error](err)
	switch {
	case !ok || !failure.Temporary:
		return false
	case failure.Status == 0:
		return failure.Code == CircuitOpen || failure.Err != nil && !isSlow(failure.Err) && !isUnknownHost(failure.Err)
	}
	const overloaded, webServerDown, unreachable = 529, 521, 523 // of Anthropic and Cloudflare
	return slices.Contains([]int{http.StatusBadGateway, http.StatusServiceUnavailable, overloaded, webServerDown, unreachable}, failure.Status)
}

// isUnknownHost reports whether the name of a server does not exist: it is a wrong one, which waiting does not mend.
func isUnknownHost(err error) bool {
	unknown, ok := errors.AsType[*net.DNSError](err)
	return ok && unknown.IsNotFound
}

// isSlow reports whether a connection was made, and the answer took too long.
func isSlow(err error) bool {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return false
	}
	var slow interface{ Timeout() bool }
	return errors.As(err, &slow) && slow.Timeout()
}
