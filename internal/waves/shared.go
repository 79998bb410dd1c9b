package waves

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/internal/textfmt"
)

// Shared makes the calls of runs that begin and end at any time, such as those of a server. They wait in place, and calls of
// several runs are in one batch. It is safe for concurrent use.
type Shared struct {
	Run *Run // its calls

	gather time.Duration
	id     string
	lock   *os.File

	mu    sync.Mutex
	due   time.Time      // when the calls that wait are sent; zero if none does
	next  time.Time      // when to look at batches; zero if none is open
	woken chan struct{}  // has a token if due or next has changed
	round int            // the number of the next sending
	few   map[string]int // by the ids of models: the newest sending whose calls are made at once; see Run.Few
	wave  chan struct{}  // is closed when calls may have answers
}

// OpenShared opens a file, which no other process uses until Close. Calls are gathered for a time before they are sent.
func OpenShared(path string, gather time.Duration) (*Shared, error) {
	s := &Shared{Run: New(path), gather: gather, woken: make(chan struct{}, 1), round: 1, few: map[string]int{}, wave: make(chan struct{})}
	s.Run.shared = s
	if _, err := s.Run.conn(); err != nil { // makes the folder
		return nil, err
	}
	path, err := filepath.EvalSymlinks(path) // links to the file have one lock
	if err == nil {
		s.lock, err = lockFile(path + ".lock")
	}
	if err != nil {
		return nil, errors.Join(err, s.Run.Close())
	}
	const key = "file"
	if s.id = string(s.Run.Recorded(key)); s.id == "" {
		s.id = rand.Text()
		err = s.Run.Record(context.Background(), key, []byte(s.id))
	}
	if err = errors.Join(err, s.Run.Failed()); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// ID identifies the file.
func (s *Shared) ID() string { return s.id }

// Close closes the file, after Serve has ended.
func (s *Shared) Close() error { return errors.Join(s.Run.Close(), s.lock.Close()) }

// Begin returns a context for a run of an application whose calls are made in batches. Its name is the same in each process, and
// at most rows of its rows wait at once.
func (s *Shared) Begin(ctx context.Context, name string, rows int) context.Context {
	p := s.Run.NewPass(false)
	p.shared, p.owner, p.task, p.rows = s, name, fmt.Sprintf("%q ", name), rows
	return WithPass(ctx, p)
}

// Chosen returns what reports whether a call is made in batches, for applications some of whose runs make theirs so; nil if
// the run of ctx has all of its calls.
func Chosen(ctx context.Context) func(context.Context) bool {
	if r := Of(ctx); r == nil || r.shared == nil {
		return nil
	}
	return func(ctx context.Context) bool { return rowOf(ctx) != nil }
}

// End forgets the calls of a run that has ended. A batch that no other run needs is canceled.
func (s *Shared) End(name string) error {
	s.Run.mu.Lock()
	s.Run.noted = slices.DeleteFunc(s.Run.noted, func(c call) bool { return c.task == name })
	s.Run.mu.Unlock()
	err := s.Run.change(func(tx *transaction) error {
		_, err := tx.ExecContext(context.Background(), "DELETE FROM calls WHERE task = ? AND (batch IS NULL OR batch NOT IN (SELECT id FROM batches WHERE done = 0))", name)
		if err == nil {
			_, err = tx.ExecContext(context.Background(), "UPDATE calls SET dropped = 1 WHERE task = ?", name)
		}
		return err
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.next.IsZero() {
		s.next = time.Now()
		s.wakeLoop()
	}
	return err
}

// wakeLoop lets Serve look at the times again. The mutex is locked.
func (s *Shared) wakeLoop() {
	select {
	case s.woken <- struct{}{}:
	default:
	}
}

// park makes a call: it waits for the answer of a batch.
func (s *Shared) park(t *transport, row *Row, c call, req *http.Request) (*http.Response, error) {
	row.pause()
	defer row.resume()
	for round := 0; ; {
		wave, current := s.join()
		found, err := t.run.lookup(c.id)
		switch {
		case err != nil:
			t.run.fail(err)
			return nil, err
		case found.status > 0:
			if found.atOnce {
				wire.MarkAtOnce(req.Context())
			}
			return found.response(req), nil
		case found.batch != 0 && t.run.isLost(found.batch):
			return nil, t.run.lostError()
		case found.batch == 0 && s.isFew(t.model, round) && t.run.claim(c.id):
			return t.callAtOnce(row, c, req)
		case found.batch == 0:
			s.gatherFrom(time.Now())
		}
		round = current
		select {
		case <-wave:
		case <-req.Context().Done():
			return nil, context.Cause(req.Context())
		}
	}
}

// join returns what is closed when calls may have answers, and the number of the next sending.
func (s *Shared) join() (wave <-chan struct{}, round int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wave, s.round
}

// gatherFrom lets the calls that wait be sent after the time in which they are gathered.
func (s *Shared) gatherFrom(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.due.IsZero() {
		s.due = now.Add(s.gather)
		s.wakeLoop()
	}
}

// isFew reports whether a call of a model is made at once that has waited for a sending.
func (s *Shared) isFew(model string, round int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return round > 0 && s.few[model] >= round
}

// claim takes a call that waits, so that no batch gets it, and reports whether it was free.
func (r *Run) claim(id string) (free bool) {
	err := r.change(func(tx *transaction) error {
		done, err := tx.ExecContext(context.Background(), "UPDATE calls SET batch = 0 WHERE id = ? AND batch IS NULL AND status = 0", id)
		if err != nil {
			return err
		}
		n, err := done.RowsAffected()
		free = n > 0
		return err
	})
	return free && err == nil
}

// unclaim lets a call wait again that has failed for a time.
func (r *Run) unclaim(id string) error {
	return r.change(func(tx *transaction) error {
		_, err := tx.ExecContext(context.Background(), "UPDATE calls SET batch = NULL WHERE id = ? AND batch = 0 AND status = 0", id)
		return err
	})
}

// Serve sends the calls of runs, and collects their answers, until ctx ends: batches go on, and Serve of the next process
// continues. isOpen reports whether a run has not ended: what an earlier process has left of others is forgotten.
func (s *Shared) Serve(ctx context.Context, isOpen func(name string) (bool, error)) {
	if err := s.recover(isOpen); err != nil {
		s.Run.report("%s", err)
	}
	for looks := 0; ctx.Err() == nil; {
		s.mu.Lock()
		due, next := s.due, s.next
		s.mu.Unlock()
		now := time.Now()
		if !due.IsZero() && !now.Before(due) {
			s.send()
			looks, next = 0, now
		}
		if !next.IsZero() && !now.Before(next) {
			s.look(ctx, looks)
			looks++
			continue
		}
		s.await(ctx, due, next)
	}
}

// await waits for the next time, or for another one.
func (s *Shared) await(ctx context.Context, due, next time.Time) {
	first := due
	if first.IsZero() || !next.IsZero() && next.Before(first) {
		first = next
	}
	var timer <-chan time.Time
	if !first.IsZero() {
		timer = time.After(time.Until(first))
	}
	select {
	case <-ctx.Done():
	case <-s.woken:
	case <-timer:
	}
}

// recover forgets the calls of runs that have ended, frees those that were being made at once, and looks at batches.
func (s *Shared) recover(isOpen func(name string) (bool, error)) error {
	s.mu.Lock()
	s.next = time.Now()
	s.mu.Unlock()
	names, err := s.names()
	for _, name := range names {
		open, failed := isOpen(name)
		if failed == nil && !open {
			failed = s.End(name)
		}
		err = errors.Join(err, failed)
	}
	return errors.Join(err, s.Run.change(func(tx *transaction) error {
		_, err := tx.ExecContext(context.Background(), "UPDATE calls SET batch = NULL WHERE batch = 0 AND status = 0")
		return err
	}))
}

// names returns the runs with calls.
func (s *Shared) names() (all []string, err error) {
	c, err := s.Run.conn()
	if err != nil {
		return nil, err
	}
	rows, err := c.Read.QueryContext(context.Background(), "SELECT DISTINCT task FROM calls WHERE dropped = 0")
	if err != nil {
		return nil, s.Run.storeError(err)
	}
	defer func() { _ = rows.Close() }() // only read
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, s.Run.storeError(err)
		}
		all = append(all, name)
	}
	return all, s.Run.storeError(rows.Err())
}

// send makes batches of the calls that wait. Calls of models that have too few are made at once.
func (s *Shared) send() {
	s.mu.Lock()
	sent := s.round
	s.due, s.round = time.Time{}, s.round+1 // a call that comes now is sent later
	s.mu.Unlock()
	r := s.Run
	few, err := r.Few()
	if err == nil {
		err = r.planAll(planWanted{isNew: true, without: few})
	}
	left, failed := r.waitingCalls(0)
	if err = errors.Join(err, failed); err != nil {
		r.report("%s", err)
	}
	again := err != nil
	for _, w := range left {
		_, unknown := r.api(w.model)
		again = again || unknown == nil && !few[w.model] // the provider has no room
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if again && s.due.IsZero() {
		s.due = time.Now().Add(max(s.gather, r.Poll(0)))
	}
	for model := range few {
		s.few[model] = sent
	}
	if len(few) > 0 {
		s.wake()
	}
}

// wake lets calls look for their answers. The mutex is locked.
func (s *Shared) wake() {
	close(s.wave)
	s.wave = make(chan struct{})
}

// look creates, reads and collects batches.
func (s *Shared) look(ctx context.Context, looks int) {
	r, before := s.Run, s.Run.ended.Load()
	s.cancelDropped(ctx)
	batches, err := r.live()
	for _, b := range batches {
		if _, unknown := r.api(b.model); unknown != nil { // its application was not made yet, or does not have it any more
			continue
		}
		if b.remote == "" {
			s.trouble(b, r.create(ctx, b))
		}
		if b.remote != "" {
			s.trouble(b, r.read(ctx, b))
		}
	}
	if err != nil {
		r.report("%s", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next = (time.Time{}); len(batches) > 0 || err != nil {
		s.next = time.Now().Add(r.Poll(looks))
	}
	if r.ended.Load() > before {
		s.wake()
		s.next = time.Now().Add(r.Poll(0)) // calls that depend on the answers follow
	}
}

// trouble reports an error of a batch. If the batch was not created its calls fail; otherwise it is looked at again.
func (s *Shared) trouble(b *batch, err error) {
	if err == nil || errors.Is(err, context.Canceled) {
		return
	}
	if text := err.Error(); text != s.Run.trouble { // once in succession
		s.Run.trouble = text
		s.Run.report("%s", text)
	}
	if b.remote == "" && b.tries == 0 {
		if failed := s.Run.failAll(b, http.StatusBadRequest, err.Error()); failed != nil {
			s.Run.report("%s", failed)
		}
	}
}

// failAll ends a batch whose calls without an answer have failed.
func (r *Run) failAll(b *batch, status int, message string) error {
	err := r.change(func(tx *transaction) error { return failCalls(tx, b, status, message) })
	if err != nil {
		return err
	}
	_, err = r.end(b, "")
	return err
}

// cancelDropped cancels batches of which no run needs an answer. What they have made is paid.
func (s *Shared) cancelDropped(ctx context.Context) {
	batches, err := s.Run.live()
	for _, b := range batches {
		var needed int
		if needed, err = s.needed(b); err != nil || needed > 0 {
			continue
		}
		if _, unknown := s.Run.api(b.model); unknown != nil {
			continue
		}
		if b.canceled {
			continue
		}
		if err = s.Run.finish(ctx, b); err == nil && b.canceled {
			s.Run.report("wave %d: batch %s is to be canceled: its %s are of runs that have ended", b.wave, b.remote, textfmt.Count(int64(b.count), "call"))
		}
	}
	if err != nil && ctx.Err() == nil {
		s.Run.report("%s", err)
	}
}

// needed returns how many calls of a batch wait for an answer that a run needs.
func (s *Shared) needed(b *batch) (n int, err error) {
	c, err := s.Run.conn()
	if err != nil {
		return 0, err
	}
	err = c.Read.QueryRowContext(context.Background(), "SELECT count(*) FROM calls WHERE batch = ? AND dropped = 0", b.id).Scan(&n)
	return n, s.Run.storeError(err)
}

// Waiting is what a run waits for.
type Waiting struct {
	Wave     int       // the number of its waves so far
	Gathered int       // calls that are in no batch of a provider yet
	Calls    int       // calls in batches that have not ended
	Batches  int       // these batches
	Expected time.Time // when they end, by those that have ended; zero if none has, or nothing is open
}

// Waiting returns what a run waits for.
func (s *Shared) Waiting(ctx context.Context, name string) (w Waiting, err error) {
	if _, err := s.Run.Waiting(); err != nil { // stores what was noted
		return w, err
	}
	c, err := s.Run.conn()
	if err != nil {
		return w, err
	}
	var since int64
	err = c.Read.QueryRowContext(ctx, `
SELECT count(DISTINCT CASE WHEN b.remote <> '' THEN b.wave END), count(CASE WHEN c.status = 0 AND (c.batch IS NULL OR b.remote = '') THEN 1 END),
  count(CASE WHEN b.done = 0 AND b.remote <> '' THEN 1 END), count(DISTINCT CASE WHEN b.done = 0 AND b.remote <> '' THEN b.id END),
  coalesce(max(CASE WHEN b.done = 0 THEN b.since END), 0)
FROM calls c LEFT JOIN batches b ON b.id = c.batch WHERE c.task = ?`, name).Scan(&w.Wave, &w.Gathered, &w.Calls, &w.Batches, &since)
	if err != nil || w.Calls == 0 {
		return w, s.Run.storeError(err)
	}
	usual, err := usualTime(ctx, c.Read)
	if usual > 0 {
		w.Expected = time.UnixMilli(since).Add(usual).UTC()
	}
	return w, s.Run.storeError(err)
}
