package waves

import (
	"cmp"
	"context"
	"net/http"
	"sync"
)

// Tasks are pieces of work, such as the rows of an evaluation, whose calls wait in place for the answers of their wave. A wave is
// sent when all workers wait. It is safe for concurrent use.
type Tasks struct {
	run   *Run
	slots chan struct{} // a token for each task that does not wait for a call

	mu     sync.Mutex
	active int             // workers that are not waiting for a wave
	parked int             // tasks that are
	wave   chan struct{}   // is closed when the calls that wait can go on
	idle   chan struct{}   // has a token if no worker is active
	few    map[string]bool // models whose calls are made at once; see Run.Few
}

// NewTasks returns the tasks of a number of workers. Each begins tasks, and calls Leave when there are no more. Only as many
// tasks as atOnce do not wait at a time.
func (r *Run) NewTasks(workers, atOnce int) *Tasks {
	return &Tasks{run: r, slots: make(chan struct{}, atOnce), active: workers, wave: make(chan struct{}), idle: make(chan struct{}, 1)}
}

// Leave ends a worker.
func (t *Tasks) Leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stop()
}

// stop counts a worker that is not active any more. The mutex is locked.
func (t *Tasks) stop() {
	if t.active--; t.active == 0 {
		select {
		case t.idle <- struct{}{}:
		default:
		}
	}
}

// Begin begins a task, whose name is the same in each process. end ends it.
func (t *Tasks) Begin(ctx context.Context, name string) (_ context.Context, end func()) {
	t.slots <- struct{}{} // those that have one do not wait for others
	p := t.run.NewPass(false)
	p.tasks, p.task = t, name
	ctx, row := p.Enter(WithPass(ctx, p), "", NoRow, "")
	return ctx, func() {
		row.End()
		<-t.slots
	}
}

// Send sends waves until all workers have left. An error ends ctx, by stop; with detach ErrDetached when a wave is sent.
func (t *Tasks) Send(ctx context.Context, detach bool, stop func(error)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.idle:
		}
		t.mu.Lock()
		isEnd := t.parked == 0
		t.mu.Unlock()
		if isEnd {
			return
		}
		few, err := t.run.Few()
		if err == nil && len(few) == 0 {
			err = cmp.Or(t.run.Send(ctx, SendOptions{Detach: detach}), t.run.lostError())
		}
		if err != nil {
			stop(err)
			return
		}
		t.mu.Lock()
		t.few, t.active, t.parked = few, t.active+t.parked, 0
		close(t.wave)
		t.wave = make(chan struct{})
		t.mu.Unlock()
	}
}

// await waits for a wave. The calls that a task makes at once wait together.
func (t *Tasks) await(ctx context.Context, p *Pass) error {
	t.mu.Lock()
	wave := t.wave
	isFirst := p.wave != wave
	if isFirst {
		p.wave = wave
		t.parked++
		t.stop()
	}
	t.mu.Unlock()
	if isFirst {
		<-t.slots
		defer func() { t.slots <- struct{}{} }()
	}
	select {
	case <-wave:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// isFew reports whether the calls of a model are made at once.
func (t *Tasks) isFew(model string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.few[model]
}

// park makes a call of a task: it waits for the answer of its wave.
func (t *transport) park(row *Row, c call, req *http.Request) (*http.Response, error) {
	for {
		if err := row.pass.tasks.await(req.Context(), row.pass); err != nil {
			return nil, err
		}
		found, err := t.run.lookup(c.id)
		switch {
		case err != nil:
			return nil, err
		case found.status > 0:
			return found.response(req), nil
		case row.pass.tasks.isFew(t.model):
			return t.callAtOnce(row, c, req)
		}
	}
}
