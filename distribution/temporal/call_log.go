package temporal

import (
	"context"
	"errors"
	"io/fs"
	"sync"
)

// callLog stores the result of each call of a model or a tool before the row goes on, so that
// the row can be repeated by another worker without repeating the call. It is a steps.CallGate: no call
// begins when the worker stops.
type callLog struct {
	ctx     context.Context // of the chunk
	blobs   *blobs
	folder  string      // of the results
	repeats bool        // an earlier attempt may have stored results
	fail    func(error) // ends the chunk, which Temporal repeats

	mu       sync.Mutex
	active   int           // calls that have begun
	stopping chan struct{} // is closed when the last of them has ended; nil unless the worker stops
}

// Begin notes that a call begins. When the worker stops, it waits until ctx ends.
func (l *callLog) Begin(ctx context.Context) (end func(), err error) {
	l.mu.Lock()
	if l.stopping != nil {
		l.mu.Unlock()
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	defer l.mu.Unlock()
	l.active++
	return l.end, nil
}

func (l *callLog) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.active--; l.active == 0 && l.stopping != nil {
		close(l.stopping)
	}
}

// stop lets no further call begin. The returned channel is closed when those that have begun are recorded.
func (l *callLog) stop() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopping = make(chan struct{})
	if l.active == 0 {
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
	}
	return err
}
