package steps

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/model"
)

// How long the model of a context block is not called after a failed call, whose attempts have
// failed, too. After each further failure it is twice as long.
const (
	firstPause = 30 * time.Second
	lastPause  = 5 * time.Minute
)

// contextPause keeps a model that is down from delaying each turn: a turn continues without its
// context block, but only after all attempts of the call. The zero value is ready to use, and safe
// for concurrent use.
type contextPause struct {
	mu     sync.Mutex
	length time.Duration // of the pause; 0 if the last call did not fail
	until  time.Time     // the next call
	last   error         // why there is a pause
}

// do runs a call, except in a pause. At its end one call is made, and the others wait for the
// next pause to end.
func (p *contextPause) do(ctx context.Context, call func() error) error {
	if err := p.begin(); err != nil {
		return err
	}
	err := call()
	p.end(err, ctx.Err() != nil)
	return err
}

// ask calls a chat model, except in a pause.
func (p *contextPause) ask(ctx context.Context, m model.Chat, request model.Request) (resp *model.Response, err error) {
	err = p.do(ctx, func() (err error) {
		resp, err = model.Call(ctx, m, request, nil)
		return err
	})
	return resp, err
}

// begin returns an error in a pause.
func (p *contextPause) begin() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.length == 0 {
		return nil
	}
	now := time.Now()
	if now.Before(p.until) {
		return fmt.Errorf("not called for %s after a failure: %w", p.length, p.last)
	}
	p.until = now.Add(p.length)
	return nil
}

// end takes note of the result of a call. Only failures that a later call may not have cause a
// pause; a call that was canceled is not a failure of the model.
func (p *contextPause) end(err error, canceled bool) {
	var failure *model.Error
	down := errors.As(err, &failure) && failure.Temporary
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case canceled:
		p.until = time.Time{} // the next call is made, if this one was that after a pause
	case down:
		p.length, p.last = min(max(2*p.length, firstPause), lastPause), err
		p.until = time.Now().Add(p.length)
	default:
		p.length, p.last = 0, nil
	}
}
