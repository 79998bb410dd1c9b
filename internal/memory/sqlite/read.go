package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"iter"
	"time"

	"github.com/qtype-dev/qtype/memory/store"
)

// page is how many entries are read at a time: a slow reader of a long history
// neither fills memory nor keeps a transaction open.
const page = 256

// reads holds the prepared queries.
type reads struct {
	head, entries, byID, liveByID, events, eventsReversed, sessions, sessionsFrom, sessionsBetween, hidden *sql.Stmt
}

const (
	// A LIMIT is never a parameter alone: SQLite would prepare the statement again at each use,
	// which takes longer than reading a window.
	selectSession = "(SELECT id FROM sessions WHERE memory = ? AND session = ?)"
	selectEntries = "SELECT id & 68719476735, turn, tokens, time, failed, message FROM entries"
	selectRange   = selectEntries + " WHERE id BETWEEN (" + selectSession + " << 36) + ? AND (" + selectSession + " << 36) + ? AND failed <= ? ORDER BY id LIMIT ? + 0"
	selectByID    = selectEntries + " WHERE session_id = " + selectSession + " AND message_id IN (SELECT value FROM json_each(?)) ORDER BY id"
	listFrom      = "SELECT session, version, state FROM sessions WHERE memory = ? AND session >= ?"
	// selectLiveByID repeats failed = 0 of the partial index, which SQLite needs to use it.
	selectLiveByID = selectEntries + " WHERE session_id = " + selectSession + " AND message_id IN (SELECT value FROM json_each(?)) AND failed = 0 ORDER BY id"
)

func (r *reads) prepare(ctx context.Context, db *sql.DB) error {
	return prepare(ctx, db, map[string]**sql.Stmt{
		"SELECT version, state, name, value FROM sessions LEFT JOIN named ON session_id = id WHERE memory = ? AND session = ?": &r.head,
		selectRange:    &r.entries,
		selectByID:     &r.byID,
		selectLiveByID: &r.liveByID,
		"SELECT event FROM events WHERE session_id = " + selectSession + " ORDER BY id":      &r.events,
		"SELECT event FROM events WHERE session_id = " + selectSession + " ORDER BY id DESC": &r.eventsReversed,
		"SELECT session, version, state FROM sessions WHERE memory = ? ORDER BY session":     &r.sessions,
		listFrom + " ORDER BY session LIMIT ? + 0":                                           &r.sessionsFrom,
		listFrom + " AND session < ? ORDER BY session LIMIT ? + 0":                           &r.sessionsBetween,
		selectHidden: &r.hidden,
	})
}

// Head returns the session's head.
func (s *Store) Head(ctx context.Context, key store.Key) (store.Head, error) {
	c, err := s.open(ctx, false)
	if err != nil || c == nil {
		return store.Head{}, err
	}
	var head store.Head
	for rows, err := range short(ctx, c.Statements.head, key.Memory, key.Session) {
		var state string
		var name sql.NullString
		var value []byte
		if err == nil {
			err = rows.Scan(&head.Version, &state, &name, &value)
		}
		if err == nil && head.State.Last == 0 { // the same in every row
			err = s.location.Decode(state, &head.State)
		}
		if err != nil {
			return store.Head{}, s.explain(err)
		}
		if name.Valid {
			if head.Values == nil {
				head.Values = map[string][]byte{}
			}
			if value == nil { // an empty one
				value = []byte{}
			}
			head.Values[name.String] = value
		}
	}
	return head, nil
}

// Entries yields entries page by page.
func (s *Store) Entries(ctx context.Context, key store.Key, q store.Query) iter.Seq2[*store.Entry, error] {
	return func(yield func(*store.Entry, error) bool) {
		c, err := s.open(ctx, false)
		if err != nil {
			yield(nil, err)
			return
		}
		if c == nil {
			return
		}
		for from := max(q.From, 1); ; {
			entries, err := s.page(ctx, c, key, q, from)
			for _, e := range entries {
				if !yield(e, nil) {
					return
				}
				from = e.Seq + 1
			}
			if err != nil {
				yield(nil, s.explain(err))
				return
			}
			if q.IDs != nil || len(entries) < page {
				return
			}
		}
	}
}

// page reads the next entries of q from a Seq on; with q.IDs, all of them at once.
func (s *Store) page(ctx context.Context, c *conn, key store.Key, q store.Query, from int64) ([]*store.Entry, error) {
	failed, byID := 1, c.Statements.byID // rows with failed <= 1: all
	if q.Live {
		failed, byID = 0, c.Statements.liveByID
	}
	to := q.To
	if to == 0 {
		to = 1<<seqBits - 1
	}
	var rows iter.Seq2[*sql.Rows, error]
	if q.IDs != nil {
		ids, err := json.Marshal(q.IDs)
		if err != nil {
			return nil, err
		}
		rows = short(ctx, byID, key.Memory, key.Session, string(ids))
	} else {
		rows = short(ctx, c.Statements.entries, key.Memory, key.Session, from, key.Memory, key.Session, to, failed, page)
	}
	var out []*store.Entry
	for row, err := range rows {
		if err != nil {
			return out, err
		}
		e, err := s.entry(row)
		if err != nil {
			return out, err
		}
		if e.Seq >= from && e.Seq <= to {
			out = append(out, e)
		}
	}
	return out, nil
}

func (s *Store) entry(row *sql.Rows) (*store.Entry, error) {
	var e store.Entry
	var micros int64
	var failed bool
	var message string
	if err := row.Scan(&e.Seq, &e.Turn, &e.Tokens, &micros, &failed, &message); err != nil {
		return nil, err
	}
	e.Time = time.UnixMicro(micros).UTC()
	if failed {
		e.Status = store.Failed
	}
	return &e, s.location.DecodeMessage(message, &e.Message)
}

// Events yields the session's events.
func (s *Store) Events(ctx context.Context, key store.Key) iter.Seq2[store.Event, error] {
	return s.events(ctx, key, func(r *reads) *sql.Stmt { return r.events })
}

// EventsReversed yields the session's events, newest first.
func (s *Store) EventsReversed(ctx context.Context, key store.Key) iter.Seq2[store.Event, error] {
	return s.events(ctx, key, func(r *reads) *sql.Stmt { return r.eventsReversed })
}

func (s *Store) events(ctx context.Context, key store.Key, statement func(*reads) *sql.Stmt) iter.Seq2[store.Event, error] {
	return func(yield func(store.Event, error) bool) {
		c, err := s.open(ctx, false)
		if err != nil {
			yield(store.Event{}, err)
			return
		}
		if c == nil {
			return
		}
		for row, err := range query(ctx, statement(&c.Statements.reads), key.Memory, key.Session) {
			var text string
			var e store.Event
			if err == nil {
				err = row.Scan(&text)
			}
			if err == nil {
				err = s.location.Decode(text, &e)
			}
			if !yield(e, s.explain(err)) || err != nil {
				return
			}
		}
	}
}

// Sessions yields the sessions of one memory.
func (s *Store) Sessions(ctx context.Context, mem string) iter.Seq2[store.SessionHead, error] {
	return func(yield func(store.SessionHead, error) bool) {
		c, err := s.open(ctx, false)
		if err != nil {
			yield(store.SessionHead{}, err)
			return
		}
		if c == nil {
			return
		}
		for row, err := range query(ctx, c.Statements.sessions, mem) {
			l, err := s.sessionHead(row, err)
			if !yield(l, err) || err != nil {
				return
			}
		}
	}
}

// sessionHead reads one session of a list.
func (s *Store) sessionHead(row *sql.Rows, err error) (l store.SessionHead, _ error) {
	var state string
	if err == nil {
		err = row.Scan(&l.Session, &l.Head.Version, &state)
	}
	if err == nil {
		err = s.location.Decode(state, &l.Head.State)
	}
	return l, s.explain(err)
}

// ListSessions returns a page of the sessions of one memory, a range of an index.
func (s *Store) ListSessions(ctx context.Context, mem string, q store.SessionQuery) ([]store.SessionHead, error) {
	c, err := s.open(ctx, false)
	if err != nil || c == nil {
		return nil, err
	}
	limit := q.Limit
	if limit == 0 {
		limit = -1 // none
	}
	from, to := q.Bounds()
	rows := query(ctx, c.Statements.sessionsFrom, mem, from, limit)
	if to != "" {
		rows = query(ctx, c.Statements.sessionsBetween, mem, from, to, limit)
	}
	var out []store.SessionHead
	for row, err := range rows {
		l, err := s.sessionHead(row, err)
		if err != nil {
			return nil, err
		}
		out = append(out, l)
	}
	return out, nil
}

// short is query for a few rows of an index, which takes no longer than the goroutines that
// would end it with ctx.
func short(ctx context.Context, statement *sql.Stmt, args ...any) iter.Seq2[*sql.Rows, error] {
	if ctx.Err() != nil {
		return func(yield func(*sql.Rows, error) bool) { yield(nil, ctx.Err()) }
	}
	return query(context.WithoutCancel(ctx), statement, args...)
}

// query yields the rows of the result, or one error.
func query(ctx context.Context, statement *sql.Stmt, args ...any) iter.Seq2[*sql.Rows, error] {
	return func(yield func(*sql.Rows, error) bool) {
		rows, err := statement.QueryContext(ctx, args...)
		if err != nil {
			yield(nil, cause(ctx, err))
			return
		}
		defer func() { _ = rows.Close() }() // errors are reported by rows.Err
		for rows.Next() {
			if !yield(rows, nil) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(nil, cause(ctx, err))
		}
	}
}

// cause returns the context's error if SQLite was interrupted because of it.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
