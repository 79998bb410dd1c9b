package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"runtime"
	"slices"
	"time"

	"github.com/qtype-dev/qtype/internal/sqlitefile"
	"github.com/qtype-dev/qtype/internal/storage"
	"github.com/qtype-dev/qtype/memory/store"
)

const (
	maxBatch     = 64               // changes that share one commit
	writeTimeout = 30 * time.Second // for one commit, including the wait for other processes
)

// writes holds the prepared statements that write.
type writes struct {
	insert, update, entry, event, set, unset *sql.Stmt
}

func (w *writes) prepare(ctx context.Context, db *sql.DB) error {
	return prepare(ctx, db, map[string]**sql.Stmt{
		"INSERT INTO sessions (memory, session, version, state) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING id": &w.insert,
		"UPDATE sessions SET version = ?, state = ? WHERE memory = ? AND session = ? AND version = ? RETURNING id":       &w.update,
		"INSERT INTO entries (id, session_id, turn, tokens, time, failed, message_id, message) VALUES (?,?,?,?,?,?,?,?)": &w.entry,
		"INSERT INTO events (session_id, event) VALUES (?, ?)":                                                           &w.event,
		"INSERT INTO named (session_id, name, value) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value":  &w.set,
		"DELETE FROM named WHERE session_id = ? AND name = ?":                                                            &w.unset,
	})
}

func prepare(ctx context.Context, db *sql.DB, statements map[string]**sql.Stmt) error {
	for text, to := range statements {
		s, err := db.PrepareContext(ctx, text)
		if err != nil {
			return err
		}
		*to = s
	}
	return nil
}

// request is a change that waits for its commit.
type request struct {
	key    store.Key
	change store.Change
	record storage.Record // of change
	done   chan error
}

// Distinct returns true: a unique index rejects duplicates.
func (s *Store) Distinct() bool { return true }

// Apply makes one change. Changes that arrive during a commit share the next one.
func (s *Store) Apply(ctx context.Context, key store.Key, c store.Change) error {
	if _, err := s.open(ctx, true); err != nil {
		return err
	}
	record, err := storage.Encode(c)
	if err != nil {
		return err
	}
	r := &request{key: key, change: c, record: record, done: make(chan error, 1)}
	s.queue.Lock()
	s.pending = append(s.pending, r)
	s.queue.Unlock()
	select {
	case s.writing <- struct{}{}:
		s.writePending()
		<-s.writing
		return <-r.done
	case err := <-r.done:
		return err
	case <-ctx.Done():
		if s.withdraw(r) {
			return ctx.Err()
		}
		return <-r.done // its write has begun and ends soon
	}
}

// withdraw removes a request whose write has not begun.
func (s *Store) withdraw(r *request) bool {
	s.queue.Lock()
	defer s.queue.Unlock()
	i := slices.Index(s.pending, r)
	if i < 0 {
		return false
	}
	s.pending = slices.Delete(s.pending, i, i+1)
	return true
}

// writePending writes all pending requests in as few commits as possible.
func (s *Store) writePending() {
	for {
		runtime.Gosched() // what is ready to add a change shares this commit
		s.queue.Lock()
		n := min(len(s.pending), maxBatch)
		batch := slices.Clone(s.pending[:n])
		s.pending = slices.Delete(s.pending, 0, n)
		s.queue.Unlock()
		if n == 0 {
			return
		}
		s.writeBatch(batch)
	}
}

// writeBatch completes every request of the batch. If a commit of several fails,
// each gets a separate commit, so that only the invalid one fails.
func (s *Store) writeBatch(batch []*request) {
	// The batch belongs to several callers: canceling one must not stop the others.
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	results, err := s.commit(ctx, batch)
	if err != nil && ctx.Err() != nil {
		err = s.location.Error(store.Locked, "timed out: a write took longer than "+writeTimeout.String(), ctx.Err())
	}
	if err != nil && len(batch) > 1 && !sqlitefile.IsBusy(err) && ctx.Err() == nil {
		for _, r := range batch {
			s.writeBatch([]*request{r})
		}
		return
	}
	for i, r := range batch {
		if err != nil {
			r.done <- s.explain(err)
			continue
		}
		r.done <- results[i]
	}
}

// commit writes the batch in one transaction. Each result is nil or ErrConflict.
func (s *Store) commit(ctx context.Context, batch []*request) ([]error, error) {
	c, err := s.open(ctx, true)
	if err != nil {
		return nil, err
	}
	results := make([]error, len(batch))
	return results, c.Change(ctx, func(tx *sql.Tx) error {
		// The driver starts a goroutine for each statement whose context can end. Statements
		// of a transaction do not wait for other processes, so only the transaction has ctx.
		w := &transaction{ctx: context.WithoutCancel(ctx), tx: tx, of: &c.Statements.writes}
		for i, r := range batch {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			err := w.apply(r)
			if err != nil && !errors.Is(err, store.ErrConflict) {
				return err
			}
			results[i] = err
		}
		return nil
	})
}

// transaction makes each statement that is used in it once, for all requests of the batch.
type transaction struct {
	ctx  context.Context
	tx   *sql.Tx
	of   *writes
	used writes
}

// statement returns a statement in the transaction, which used remembers.
func (t *transaction) statement(of *sql.Stmt, used **sql.Stmt) *sql.Stmt {
	if *used == nil {
		*used = t.tx.StmtContext(t.ctx, of)
	}
	return *used
}

// apply writes one request. It returns ErrConflict before it has written anything.
func (t *transaction) apply(r *request) error {
	id, err := t.session(r)
	if err != nil {
		return err
	}
	if err := t.addEntries(id, r); err != nil {
		return err
	}
	for _, event := range r.record.Events {
		if _, err := t.statement(t.of.event, &t.used.event).ExecContext(t.ctx, id, event); err != nil {
			return err
		}
	}
	for name, value := range r.change.Values {
		if value == nil {
			_, err = t.statement(t.of.unset, &t.used.unset).ExecContext(t.ctx, id, name)
		} else {
			_, err = t.statement(t.of.set, &t.used.set).ExecContext(t.ctx, id, name, value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// session moves the session's head from the expected version to the next.
func (t *transaction) session(r *request) (id int64, err error) {
	c, k := r.change, r.key
	if c.Version == 0 {
		err = t.statement(t.of.insert, &t.used.insert).QueryRowContext(t.ctx, k.Memory, k.Session, c.Next, r.record.State).Scan(&id)
	} else {
		err = t.statement(t.of.update, &t.used.update).QueryRowContext(t.ctx, c.Next, r.record.State, k.Memory, k.Session, c.Version).Scan(&id)
	}
	if errors.Is(err, sql.ErrNoRows) {
		return 0, store.ErrConflict
	}
	return id, err
}

func (t *transaction) addEntries(session int64, r *request) error {
	for i, e := range r.change.Entries {
		_, err := t.statement(t.of.entry, &t.used.entry).ExecContext(t.ctx, session<<seqBits|e.Seq, session, e.Turn, e.Tokens, e.Time.UnixMicro(),
			e.Status == store.Failed, e.Message.ID, r.record.Messages[i])
		if sqlitefile.IsDuplicate(err, "entries.message_id") {
			return store.ErrDuplicateMessage
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Delete removes a session with everything that belongs to it.
func (s *Store) Delete(ctx context.Context, key store.Key) error { return s.remove(ctx, key, nil) }

// Remove deletes a session if its version is still version.
func (s *Store) Remove(ctx context.Context, key store.Key, version int64) error {
	return s.remove(ctx, key, &version)
}

// errNoDatabase reports that there is no database yet, so that it has no sessions.
var errNoDatabase = errors.New("the database does not exist")

// inTransaction runs f in a transaction, after those of other writers of this process. It
// creates no database: without one it returns errNoDatabase.
func (s *Store) inTransaction(ctx context.Context, f func(*sql.Tx) error) error {
	c, err := s.open(ctx, false)
	if err == nil && c == nil {
		return errNoDatabase
	}
	if err != nil {
		return err
	}
	select {
	case s.writing <- struct{}{}:
		defer func() { <-s.writing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := c.Change(ctx, f); err != nil {
		return s.explain(cause(ctx, err))
	}
	return nil
}
