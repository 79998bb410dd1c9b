package temporal

import (
	"context"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/memory"
)

// callLog stores the result of each call of a model or a tool before the row goes on, so that
// the row can be repeated by another worker without repeating the call. It is a steps.CallGate: no call
// begins when the worker stops. An entry of each call that has begun tells a later attempt which calls it repeats.
type callLog struct {
	ctx     context.Context // of the chunk
	journal *journal
	fail    func(error)    // ends the chunk, which Temporal repeats
	begun   map[string]int // how many earlier attempts have begun a call that may not have ended, or is recorded
	lose    func()         // ends the chunk, which another worker has
	isTail  bool           // the events of rows that are not finished are stored, too

	mu       sync.Mutex
	due      time.Time         // when Temporal gives the chunk to another worker; zero if that is not known
	results  map[string][]byte // of calls of earlier attempts that this one has not asked for
	active   map[string]bool   // the keys of calls that have begun, with whether their results are recorded
	stopping chan struct{}     // is closed when the last of them has ended; nil unless the worker stops
}

// newCallLog returns the log of the calls of the chunk.
func (c *chunkRun) newCallLog(ctx context.Context) *callLog {
	return &callLog{
		ctx: ctx, journal: newJournal(ctx, c.blobs, callsName(c.task.folder(), c.task.Partition, c.task.Number)), fail: c.fail,
		begun: map[string]int{}, results: map[string][]byte{}, active: map[string]bool{}, isTail: c.task.Tail != nil, lose: func() { c.cancel(errLost) },
	}
}

// restore takes an entry of an earlier attempt.
func (l *callLog) restore(e *entry) {
	l.begun[e.Key] += e.Begun
	if e.Result != nil {
		l.results[e.Key] = e.Result
	}
}

// setDue notes when Temporal gives the chunk to another worker.
func (l *callLog) setDue(due time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.due = due
}

// Begin notes that a call begins. When the worker stops, or goes on after it was frozen for too long, it waits until ctx ends.
func (l *callLog) Begin(ctx context.Context, key string) (end func(), before int, err error) {
	if err := l.enter(ctx, key); err != nil {
		return nil, 0, err
	}
	before = l.begun[key]
	if err := l.journal.add(entry{Key: key, Begun: 1}); err != nil { // its result could not be recorded, either
		l.fail(err)
		l.remove(key)
		return nil, 0, err
	}
	return func() { l.end(key, before) }, before, nil
}

// enter returns when a call may begin, or ctx ends.
func (l *callLog) enter(ctx context.Context, key string) error {
	l.mu.Lock()
	isLost := !l.due.IsZero() && time.Now().After(l.due)
	if l.stopping == nil && !isLost {
		l.active[key] = false
		l.mu.Unlock()
		return nil
	}
	l.mu.Unlock()
	if isLost { // another attempt would not know of the call
		l.lose()
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// end notes that a call has ended. One that was not recorded counts as begun if it was cut off: not if it has failed, or
// waits for an answer.
func (l *callLog) end(key string, before int) {
	if cause := context.Cause(l.ctx); !l.isRecorded(key) && (cause == nil || cause == memory.ErrSuspended) { //nolint:errorlint // others match it, too
		_ = l.journal.add(entry{Key: key, Begun: -1 - before}) // for a report only
	}
	l.remove(key)
}

// remove removes a call from those that have begun.
func (l *callLog) remove(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if delete(l.active, key); len(l.active) == 0 && l.stopping != nil {
		close(l.stopping)
	}
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

// Repeats returns how many attempts had begun a call before the one that has recorded it.
func (l *callLog) Repeats(key string) int {
	if l.isTail {
		return 0
	}
	return max(l.begun[key]-1, 0)
}

// Recorded returns the result of a call of an earlier attempt, nil if there is none. An attempt asks once.
func (l *callLog) Recorded(key string) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	result := l.results[key]
	delete(l.results, key)
	return result
}

// Record stores the result of a call, also if the chunk was just canceled. If it cannot be stored,
// the chunk ends: an agent would pass the error to its model, and go on.
func (l *callLog) Record(_ context.Context, key string, result []byte) error {
	err := l.journal.add(entry{Key: key, Result: result})
	if err == nil {
		err = l.journal.sync()
	}
	if err != nil {
		l.fail(err)
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.active[key] = true
	return nil
}
