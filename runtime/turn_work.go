package runtime

import (
	"context"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/steps"
)

// turnWorkTime is how long Close waits for what turns have left to be done.
const turnWorkTime = 5 * time.Second

// turnWork runs what memories do after turns. The zero value is ready to use.
type turnWork struct {
	mu     sync.Mutex
	work   sync.WaitGroup
	closed bool
	ctx    context.Context // of all work; nil before the first
	cancel context.CancelFunc
}

// afterTurn is memory.Config.Background.
func (a *App) afterTurn(work func(context.Context)) bool {
	b := &a.turnWork
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	if b.ctx == nil {
		ctx := steps.AfterTurn(a.background())
		if a.opts.Observer != nil {
			ctx = steps.WithObserver(ctx, a.opts.Observer)
		}
		b.ctx, b.cancel = context.WithCancel(ctx)
	}
	b.work.Go(func() { work(b.ctx) })
	return true
}

// close waits for the work, for a while and until ctx ends. The next turns do the rest.
func (b *turnWork) close(ctx context.Context) {
	b.mu.Lock()
	b.closed = true
	cancel := b.cancel
	b.mu.Unlock()
	if cancel == nil {
		return
	}
	ctx, stop := context.WithTimeout(ctx, turnWorkTime)
	defer context.AfterFunc(ctx, cancel)()
	b.work.Wait()
	cancel()
	stop()
}
