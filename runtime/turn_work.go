package runtime

import (
	"context"
	"sync"
	"time"
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

// begin runs work in the background, unless the application is being closed. open returns the context of all work.
func (b *turnWork) begin(open func() context.Context, work func(context.Context)) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	if b.ctx == nil {
		b.ctx, b.cancel = context.WithCancel(open())
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
