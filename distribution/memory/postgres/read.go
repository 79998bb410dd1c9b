package postgres

import (
	"context"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/qtype-dev/qtype/internal/storage"
	"github.com/qtype-dev/qtype/memory/store"
)

// sql replaces every %s by the prefix of the table names.
func (s *Store) sql(statement string) string {
	return strings.ReplaceAll(statement, "%s", s.server.Prefix)
}

const (
	selectHead = `SELECT version, state, name, value FROM %ssessions LEFT JOIN %snamed ON session_id = id
WHERE memory_key = $1 AND session_key = $2`
	selectEntries = `SELECT seq, turn, tokens, time, failed, message FROM %sentries
WHERE session_id = (SELECT id FROM %ssessions WHERE memory_key = $1 AND session_key = $2)`
	selectRange = selectEntries + ` AND seq BETWEEN $3 AND $4 ORDER BY seq LIMIT $5`
	// selectLiveByID looks up each message separately. With = ANY the planner may
	// read the whole session if it expects sessions to be short, and without NOT
	// failed it cannot use the partial index.
	selectLiveByID = `SELECT e.* FROM unnest($3::bytea[]) AS wanted, LATERAL (SELECT seq, turn, tokens, time, failed, message FROM %sentries
WHERE session_id = (SELECT id FROM %ssessions WHERE memory_key = $1 AND session_key = $2) AND message_key = wanted AND NOT failed LIMIT 1) AS e ORDER BY seq`
	selectByID   = selectEntries + ` AND message_key = ANY ($3) ORDER BY seq`
	selectEvents = `SELECT id, event FROM %sevents
WHERE session_id = (SELECT id FROM %ssessions WHERE memory_key = $1 AND session_key = $2) AND id > $3 ORDER BY id LIMIT $4`
	selectEventsReversed = `SELECT id, event FROM %sevents
WHERE session_id = (SELECT id FROM %ssessions WHERE memory_key = $1 AND session_key = $2) AND id < $3 ORDER BY id DESC LIMIT $4`
	// selectSessions compares the indexed part of ids first, then the whole ids.
	selectSessions = `SELECT session, version, state FROM %ssessions
WHERE memory_key = $1 AND (substring(session FROM 1 FOR 256), session) > (substring($2::bytea FROM 1 FOR 256), $2)
ORDER BY substring(session FROM 1 FOR 256), session LIMIT $3`
	selectSessionsFrom = `SELECT session, version, state FROM %ssessions
WHERE memory_key = $1 AND (substring(session FROM 1 FOR 256), session) >= (substring($2::bytea FROM 1 FOR 256), $2)
ORDER BY substring(session FROM 1 FOR 256), session LIMIT $3`
	selectSessionsBetween = `SELECT session, version, state FROM %ssessions
WHERE memory_key = $1 AND (substring(session FROM 1 FOR 256), session) >= (substring($2::bytea FROM 1 FOR 256), $2)
AND (substring(session FROM 1 FOR 256), session) < (substring($4::bytea FROM 1 FOR 256), $4)
ORDER BY substring(session FROM 1 FOR 256), session LIMIT $3`
	selectFirstSessions = `SELECT session, version, state FROM %ssessions
WHERE memory_key = $1 ORDER BY substring(session FROM 1 FOR 256), session LIMIT $2`
)

// listPage is how many sessions or events are read at a time.
const listPage = 256

// Head returns the session's head.
func (s *Store) Head(ctx context.Context, k store.Key) (store.Head, error) {
	var head store.Head
	err := s.use(ctx, false, func(ctx context.Context, pool *pgxpool.Pool) error {
		head = store.Head{}
		var state string
		var name, value []byte
		rows, err := pool.Query(ctx, s.sql(selectHead), key(k.Memory), key(k.Session))
		if err != nil {
			return err
		}
		_, err = pgx.ForEachRow(rows, []any{&head.Version, &state, &name, &value}, func() error {
			if name == nil {
				return nil
			}
			if head.Values == nil {
				head.Values = map[string][]byte{}
			}
			head.Values[string(name)] = append([]byte{}, value...)
			return nil
		})
		if err != nil || head.Version == 0 {
			return err
		}
		return s.server.Location.Decode(state, &head.State)
	})
	if err != nil {
		return store.Head{}, err
	}
	return head, nil
}

// Time returns the time of the server.
func (s *Store) Time(ctx context.Context) (now time.Time, err error) {
	err = s.use(ctx, true, func(ctx context.Context, pool *pgxpool.Pool) error {
		return pool.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&now)
	})
	return now, err
}

// Entries yields entries page by page.
func (s *Store) Entries(ctx context.Context, k store.Key, q store.Query) iter.Seq2[*store.Entry, error] {
	to := q.To
	if to == 0 {
		to = storage.MaxSeq
	}
	return storage.Entries(q, func(from int64, limit int) (p storage.Page, err error) {
		err = s.use(ctx, false, func(ctx context.Context, pool *pgxpool.Pool) error {
			if q.IDs != nil {
				statement := selectByID
				if q.Live {
					statement = selectLiveByID
				}
				p, err = s.page(ctx, pool, q, statement, key(k.Memory), key(k.Session), keys(q.IDs))
				p.Rows = 0 // no second page
				return err
			}
			p, err = s.page(ctx, pool, q, selectRange, key(k.Memory), key(k.Session), from, to, limit)
			return err
		})
		return p, err
	})
}

// keys returns the indexed forms of ids, without duplicates.
func keys(ids []string) [][]byte {
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	out := make([][]byte, len(ids))
	for i, id := range ids {
		out[i] = key(id)
	}
	return out
}

// page reads entries and drops those that do not match q.
func (s *Store) page(ctx context.Context, pool *pgxpool.Pool, q store.Query, statement string, args ...any) (storage.Page, error) {
	var p storage.Page
	rows, err := pool.Query(ctx, s.sql(statement), args...)
	if err != nil {
		return p, err
	}
	var e store.Entry
	var added time.Time
	var failed bool
	var message string
	_, err = pgx.ForEachRow(rows, []any{&e.Seq, &e.Turn, &e.Tokens, &added, &failed, &message}, func() error {
		p.Rows++
		p.Bytes += len(message)
		p.Next = e.Seq + 1
		if failed && q.Live || e.Seq < q.From || q.To != 0 && e.Seq > q.To {
			return nil
		}
		entry := e
		entry.Time = added.UTC()
		if failed {
			entry.Status = store.Failed
		}
		if err := s.server.Location.DecodeMessage(message, &entry.Message); err != nil {
			return err
		}
		p.Entries = append(p.Entries, &entry)
		return nil
	})
	return p, err
}

// Events yields the session's events.
func (s *Store) Events(ctx context.Context, k store.Key) iter.Seq2[store.Event, error] {
	return s.events(ctx, k, selectEvents, 0)
}

// EventsReversed yields the session's events, newest first.
func (s *Store) EventsReversed(ctx context.Context, k store.Key) iter.Seq2[store.Event, error] {
	return s.events(ctx, k, selectEventsReversed, math.MaxInt64)
}

// events yields the events that a query selects after the one with an id, page by page.
func (s *Store) events(ctx context.Context, k store.Key, selection string, id int64) iter.Seq2[store.Event, error] {
	return func(yield func(store.Event, error) bool) {
		for after := id; ; {
			var events []store.Event
			err := s.use(ctx, false, func(ctx context.Context, pool *pgxpool.Pool) error {
				events = nil
				rows, err := pool.Query(ctx, s.sql(selection), key(k.Memory), key(k.Session), after, listPage)
				if err != nil {
					return err
				}
				last := after
				var text string
				_, err = pgx.ForEachRow(rows, []any{&last, &text}, func() error {
					events = append(events, store.Event{})
					return s.server.Location.Decode(text, &events[len(events)-1])
				})
				if err == nil {
					after = last
				}
				return err
			})
			if !storage.YieldAll(yield, events, err) || len(events) < listPage {
				return
			}
		}
	}
}

// Sessions yields the sessions of one memory.
func (s *Store) Sessions(ctx context.Context, mem string) iter.Seq2[store.SessionHead, error] {
	return func(yield func(store.SessionHead, error) bool) {
		statement, args := selectFirstSessions, []any{key(mem), listPage}
		for {
			var listed []store.SessionHead
			err := s.use(ctx, false, func(ctx context.Context, pool *pgxpool.Pool) (err error) {
				listed, err = s.list(ctx, pool, statement, args...)
				return err
			})
			if !storage.YieldAll(yield, listed, err) || len(listed) < listPage {
				return
			}
			statement, args = selectSessions, []any{key(mem), []byte(listed[len(listed)-1].Session), listPage}
		}
	}
}

// ListSessions returns a page of the sessions of one memory, a range of an index.
func (s *Store) ListSessions(ctx context.Context, mem string, q store.SessionQuery) (listed []store.SessionHead, err error) {
	from, to := q.Bounds()
	limit := &q.Limit
	if q.Limit == 0 {
		limit = nil // LIMIT NULL
	}
	statement, args := selectSessionsFrom, []any{key(mem), []byte(from), limit}
	if to != "" {
		statement, args = selectSessionsBetween, append(args, []byte(to))
	}
	err = s.use(ctx, false, func(ctx context.Context, pool *pgxpool.Pool) (err error) {
		listed, err = s.list(ctx, pool, statement, args...)
		return err
	})
	return listed, err
}

func (s *Store) list(ctx context.Context, pool *pgxpool.Pool, statement string, args ...any) ([]store.SessionHead, error) {
	rows, err := pool.Query(ctx, s.sql(statement), args...)
	if err != nil {
		return nil, err
	}
	var listed []store.SessionHead
	var session []byte
	var version int64
	var state string
	_, err = pgx.ForEachRow(rows, []any{&session, &version, &state}, func() error {
		l := store.SessionHead{Session: string(session), Head: store.Head{Version: version}}
		if err := s.server.Location.Decode(state, &l.Head.State); err != nil {
			return err
		}
		listed = append(listed, l)
		return nil
	})
	return listed, err
}
