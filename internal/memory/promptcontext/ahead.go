package promptcontext

import (
	"context"
	"fmt"
	"sync"

	"github.com/qtype-dev/qtype/internal/memory/segments"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
)

// maxAhead is the number of sessions whose messages are embedded after their turns at the same time. Those of more are
// embedded by their next turns.
const maxAhead = 64

// maxStored is the number of sessions of which it is known how far their words are stored.
const maxStored = 1_024

// aheadJobs are the sessions whose messages are being embedded, or whose words are being stored, after a turn.
type aheadJobs struct {
	mu     sync.Mutex
	byKey  map[memory.Key]*aheadJob
	stored map[memory.Key]storedWords
}

// aheadJob embeds messages of a session in the background.
type aheadJob struct {
	done  chan struct{}
	again bool // another turn has ended since
	stop  bool // a turn waits: the rest is its own
}

// Prepare is memory.Preparer: messages get vectors, and those of a long session a stored index of their words, after their turn,
// not within the one that retrieves them.
func (c *source) Prepare(key memory.Key, last int64, run func(work func(open func() (memory.ContextSession, error))) bool) {
	if c.retrieval == nil {
		return
	}
	if c.retrieval.Embedder != nil {
		j, begun := c.ahead.begin(key)
		if begun && !run(func(open func() (memory.ContextSession, error)) { c.embedAhead(key, j, open) }) {
			c.ahead.end(key, j, true)
		}
	}
	if last <= maxMessages || last-c.storing.tried(key) < segments.MinMessages {
		return
	}
	j, begun := c.storing.begin(key)
	if begun && !run(func(open func() (memory.ContextSession, error)) { c.storeWords(key, j, open) }) {
		c.storing.end(key, j, true)
	}
}

// storeWords stores the words of messages of a session. What fails is left to a later turn: of a process that ends, or after as many
// messages as are worth it.
func (c *source) storeWords(key memory.Key, j *aheadJob, open func() (memory.ContextSession, error)) {
	defer c.storing.end(key, j, true)
	s, err := open()
	if err != nil {
		return
	}
	to, err := segments.Extend(s.Context(), s.Store(), key, s.Now())
	if err == nil || s.Context().Err() != nil {
		c.storing.learn(key, storedWords{to, to})
		return
	}
	c.storing.learn(key, storedWords{to, s.Head().State.Last})
	c.warn(fmt.Sprintf("memory %s, %s: the index of words could not be stored: %s; a later turn will retry", key.Memory, Retrieval, textfmt.OneLine(err.Error())))
}

// storedWords is how far the words of a session are stored, as far as it is known, and how far that was tried.
type storedWords struct{ to, tried int64 }

// known returns the position up to which words of a session are stored.
func (a *aheadJobs) known(key memory.Key) int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stored[key].to
}

// tried returns the position up to which words of a session are stored, or could not be.
func (a *aheadJobs) tried(key memory.Key) int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stored[key].tried
}

// learn notes how far the words of a session are stored.
func (a *aheadJobs) learn(key memory.Key, w storedWords) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stored == nil || len(a.stored) >= maxStored {
		a.stored = map[memory.Key]storedWords{}
	}
	a.stored[key] = w
}

// begin registers a job; it reports false if there is one, which looks again, or if there are too many.
func (a *aheadJobs) begin(key memory.Key) (j *aheadJob, begun bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if j := a.byKey[key]; j != nil {
		j.again = true
		return j, false
	}
	if len(a.byKey) >= maxAhead {
		return nil, false
	}
	if a.byKey == nil {
		a.byKey = map[memory.Key]*aheadJob{}
	}
	j = &aheadJob{done: make(chan struct{})}
	a.byKey[key] = j
	return j, true
}

// end reports whether a job has ended: with last set, or if no turn has ended since.
func (a *aheadJobs) end(key memory.Key, j *aheadJob, last bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if j.again && !j.stop && !last {
		j.again = false
		return false
	}
	delete(a.byKey, key)
	close(j.done)
	return true
}

// isStopped reports whether a turn waits for the job.
func (a *aheadJobs) isStopped(j *aheadJob) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return j.stop
}

// wait waits for the call of the model that embeds messages of a session; it reports false if there is none.
func (a *aheadJobs) wait(ctx context.Context, key memory.Key) (bool, error) {
	a.mu.Lock()
	j := a.byKey[key]
	if j != nil {
		j.stop = true
	}
	a.mu.Unlock()
	if j == nil {
		return false, nil
	}
	select {
	case <-j.done:
		return true, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

// embedAhead embeds the messages of a session until no turn has ended since. What fails is left to the next turn.
func (c *source) embedAhead(key memory.Key, j *aheadJob, open func() (memory.ContextSession, error)) {
	for {
		s, err := open()
		if c.ahead.end(key, j, err != nil || !c.embedMissing(s, j)) {
			return
		}
	}
}

// embedMissing embeds the messages of a session, those of the window too, which the next question may push out of it. It
// reports whether all have vectors.
func (c *source) embedMissing(s memory.ContextSession, j *aheadJob) bool {
	t := &turnContext{source: c, session: s, ahead: true, problems: map[store.BlockKind]string{}}
	of := t.whole(memory.SessionHead{Session: s.Key().Session, Head: s.Head()})
	stored, err := t.loadVectors(of)
	for err == nil && !c.ahead.isStopped(j) {
		next, problem, failed := t.embedPending(of)
		if failed != nil || next == nil || problem == "" || next.meta.To == stored.meta.To {
			return failed == nil && problem == ""
		}
		stored = next
	}
	return false
}
