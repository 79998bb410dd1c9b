package temporal

import (
	"context"
	"errors"
	"io/fs"
	"sync"

	"github.com/qtype-dev/qtype/memory"
)

// callLog stores the result of each call of a model or a tool before the row goes on, so that
// the row can be repeated by another worker without repeating the call. It is a steps.CallGate: no call
// begins when the worker stops. A mark of each call that has begun tells a later attempt which calls it repeats.
type callLog struct {
	ctx     context.Context // of the chunk
	blobs   *blobs
	folder  string      // of the results
	repeats bool        // an earlier attempt may have stored results
	fail    func(error) // ends the chunk, which Temporal repeats

	mu       sync.Mutex
	active   map[string]bool // the keys of calls that have begun, with whether their results are recorded
	stopping chan struct{}   // is closed when the last of them has ended; nil unless the worker stops
}

// Begin notes that a call begins. When the worker stops, it waits until ctx ends.
func (l *callLog) Begin(ctx context.Context, key string) (end func(), before int, err error) {
	l.mu.Lock()
	if l.stopping != nil {
		l.mu.Unlock()
		<-ctx.Done()
		return nil, 0, context.Cause(ctx)
	}
	l.active[key] = false
	l.mu.Unlock()
	if l.repeats {
		_ = l.blobs.read(l.ctx, l.mark(key), &before) // most calls have none
	}
	var marking sync.WaitGroup
	marking.Go(func() { l.setMark(key, before+1) }) // the call does not wait for it
	return func() {
		marking.Wait()
		l.end(key)
	}, before, nil
}

// end notes that a call has ended. One that was not recorded stays marked if it was cut off: not if it has failed, or
// waits for an answer.
func (l *callLog) end(key string) {
	if cause := context.Cause(l.ctx); !l.isRecorded(key) && (cause == nil || cause == memory.ErrSuspended) { //nolint:errorlint // others match it, too
		l.setMark(key, 0)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if delete(l.active, key); len(l.active) == 0 && l.stopping != nil {
		close(l.stopping)
	}
}

// mark returns the name of the blob with how often a call was begun and did not end.
func (l *callLog) mark(key string) string { return l.folder + "/" + key + ".begun" }

// setMark sets the mark of a call. It is for reports only, so that an error does not matter.
func (l *callLog) setMark(key string, begun int) {
	_ = l.blobs.store(context.WithoutCancel(l.ctx), l.mark(key), begun, true)
}

func (l *callLog) isRecorded(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.active[key]
}

// stop lets no further call begin. The returned channel is closed when those that have begun are recorded.
func (l *callLog) stop() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopping = make(chan struct{})
	if len(l.active) == 0 {
		close(l.stopping)
	}
	return l.stopping
}

// isStopping reports whether stop was called.
func (l *callLog) isStopping() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stopping != nil
}

// Recorded returns the result of a call of an earlier attempt, nil if there is none. If it
// cannot be read, the chunk ends, because the call may have been made.
func (l *callLog) Recorded(key string) []byte {
	if !l.repeats {
		return nil
	}
	var result []byte
	err := l.blobs.read(l.ctx, l.folder+"/"+key, &result)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.fail(err)
		return nil
	}
	return result
}

// Record stores the result of a call, also if the chunk was just canceled. If it cannot be stored,
// the chunk ends: an agent would pass the error to its model, and go on.
func (l *callLog) Record(ctx context.Context, key string, result []byte) error {
	err := l.blobs.write(context.WithoutCancel(ctx), l.folder+"/"+key, result)
	if err != nil {
		l.fail(err)
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.active[key] = true
	return nil
}
