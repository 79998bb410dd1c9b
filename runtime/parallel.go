package runtime

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/qtype-dev/qtype/internal/checkpoint"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/steps"
)

const (
	// lookahead is the number of rows per worker that a stage may have: it limits
	// how far it is ahead of the row whose output is next.
	lookahead = 4
	// minSessionWindow is the minimum number of rows of a stage that processes each
	// session in order, so that rows sorted by session still occupy all workers.
	minSessionWindow = 256
	// outputBuffer is the number of results of one row that may wait.
	outputBuffer = 16
)

// task is one input row in a parallel stage.
type task struct {
	row     *steps.Row
	session string          // of the conversation of the row, which is not valid after it was emitted
	ordinal int64           // likewise
	seq     int64           // its position in the input of the stage
	out     chan *steps.Row // its results; closed at the end
	next    *task           // the next row of the session, which must wait for this one
	err     error           // ends the run; set before out is closed
	over    atomic.Bool     // out is closed
}

// parallelSink processes several rows concurrently and passes on their results in the
// order of the rows. If sessions is set, rows of one conversation never overlap. The next
// sink is called by the goroutine that pushes, so it needs no locks.
type parallelSink struct {
	nodes    []*node
	next     sink
	sessions bool
	scope    memory.Scope
	window   int     // the maximum number of rows in the stage
	queue    []*task // in input order: the output of the first is next
	pushed   int64   // rows so far
	cancel   context.CancelFunc
	done     sync.WaitGroup
	// newRecorder returns what a worker records results with, before they leave the
	// stage; nil if the run has no checkpoints. It is set before the first push.
	newRecorder func() *checkpoint.Recorder
	wakes       chan<- struct{} // receives when a row is done; may be nil. It is set before the first push

	mu     sync.Mutex
	wake   *sync.Cond
	ready  []*task          // may start, in input order
	tail   map[string]*task // the newest unfinished row of each session
	closed bool
}

func newParallelSink(ctx context.Context, s stage, next sink) *parallelSink {
	p := &parallelSink{nodes: s.nodes, next: next, sessions: s.sessions, scope: s.scope, window: lookahead * s.workers, tail: map[string]*task{}}
	if s.sessions {
		p.window = max(p.window, minSessionWindow)
	}
	p.wake = sync.NewCond(&p.mu)
	ctx, p.cancel = context.WithCancel(ctx)
	for range s.workers {
		p.done.Go(func() { p.work(ctx) })
	}
	return p
}

func (p *parallelSink) push(ctx context.Context, row *steps.Row) error {
	if len(p.queue) >= p.window {
		if err := p.drainHead(ctx); err != nil {
			return err
		}
	}
	p.pushed++
	t := &task{row: row, session: p.scope.Session(row.Session), ordinal: row.Ordinal, seq: p.pushed, out: make(chan *steps.Row, outputBuffer)}
	p.queue = append(p.queue, t)
	p.enqueue(t)
	return p.drainReady(ctx)
}

// drainReady passes on the results of the oldest rows that are done.
func (p *parallelSink) drainReady(ctx context.Context) error {
	for len(p.queue) > 0 && p.queue[0].over.Load() {
		if err := p.drainHead(ctx); err != nil {
			return err
		}
	}
	return nil
}

// enqueue makes a task ready, or appends it to those of its session.
func (p *parallelSink) enqueue(t *task) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sessions {
		before := p.tail[t.session]
		p.tail[t.session] = t
		if before != nil {
			before.next = t
			return
		}
	}
	p.ready = append(p.ready, t)
	p.wake.Signal()
}

// releaseSession makes the next row of the session ready, before all ready rows that
// came later. The earliest ready row is always taken first, so a worker that waits
// for room in its output does not wait forever.
func (p *parallelSink) releaseSession(t *task) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.sessions {
		return
	}
	if t.next == nil {
		delete(p.tail, t.session)
		return
	}
	i := 0
	for i < len(p.ready) && p.ready[i].seq < t.next.seq {
		i++
	}
	p.ready = append(p.ready, nil)
	copy(p.ready[i+1:], p.ready[i:])
	p.ready[i] = t.next
	p.wake.Signal()
}

// dequeue waits for a ready task; it returns nil if there will be none.
func (p *parallelSink) dequeue() *task {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.ready) == 0 && !p.closed {
		p.wake.Wait()
	}
	if p.closed {
		return nil
	}
	t := p.ready[0]
	p.ready = p.ready[1:]
	return t
}

func (p *parallelSink) work(ctx context.Context) {
	var t *task
	var recorder, rec *checkpoint.Recorder // rec is nil for a row that is not recorded
	pipe := newPipe(ctx, p.nodes, func(r *steps.Row) error {
		if rec != nil {
			if err := rec.Add(r); err != nil {
				return err
			}
		}
		select {
		case t.out <- r:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	for t = p.dequeue(); t != nil; t = p.dequeue() {
		if rec = nil; p.newRecorder != nil && !t.row.Replayed {
			if recorder == nil {
				recorder = p.newRecorder()
			}
			rec = recorder
			rec.Begin(t.ordinal)
		}
		t.err = pipe.process(t.row)
		if t.err == nil && rec != nil {
			t.err = rec.End()
		}
		t.row = nil
		p.releaseSession(t)
		close(t.out)
		t.over.Store(true)
		if p.wakes != nil {
			select {
			case p.wakes <- struct{}{}:
			default: // one is waiting already
			}
		}
	}
}

// drainHead waits for the oldest row and passes on its results.
func (p *parallelSink) drainHead(ctx context.Context) error {
	t := p.queue[0]
	p.queue[0] = nil
	p.queue = p.queue[1:]
	for r := range t.out {
		if err := p.next.push(ctx, r); err != nil {
			return err
		}
	}
	return t.err
}

func (p *parallelSink) finish(ctx context.Context) error {
	for len(p.queue) > 0 {
		if err := p.drainHead(ctx); err != nil {
			return err
		}
	}
	err := closeAll(ctx, p.nodes, func(r *steps.Row) error { return p.next.push(ctx, r) })
	if err != nil {
		return err
	}
	return p.next.finish(ctx)
}

func (p *parallelSink) stop() {
	p.cancel()
	p.mu.Lock()
	p.closed = true
	p.wake.Broadcast()
	p.mu.Unlock()
	p.done.Wait()
	p.next.stop()
}

func (p *parallelSink) downstream() sink { return p.next }

// chain returns the sinks of some stages, which end in out.
func chain(ctx context.Context, stages []stage, out sink) sink {
	next := out
	for i := len(stages) - 1; i >= 0; i-- {
		s := stages[i]
		switch {
		case s.nodes[0].batch != nil:
			next = newBatchSink(ctx, s.nodes[0], next)
		case s.workers > 1:
			next = newParallelSink(ctx, s, next)
		default:
			next = newSerialSink(ctx, s.nodes, next)
		}
	}
	return next
}
