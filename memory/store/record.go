package store

import (
	"context"
	"errors"
	"iter"
	"net/url"
	"slices"
	"time"
)

// Record is a small set of named values that an application keeps besides its conversations:
// a run of its server, a limit, a cached result.
type Record struct {
	RecordHead

	Values map[string][]byte // nil for none
}

// RecordHead is a record without its values.
type RecordHead struct {
	ID      string
	Version int64     // 0: there is no such record
	Stored  time.Time // as the writer set it
	Expires time.Time // when the record is gone, by the clock of the store; zero: never
	Size    int64     // as the writer set it
}

// RecordChange is what one Write does to a record.
type RecordChange struct {
	Version int64             // the version that the record must have; 0: it must not exist
	Next    int64             // the version that it has afterwards; see NextVersion
	Stored  time.Time         // see RecordHead
	Expires time.Time         // see RecordHead
	Size    int64             // see RecordHead
	Values  map[string][]byte // set; a nil value removes the name; other names stay
}

// Application is the part of a store that belongs to one application. What it returns and
// changes is never that of another one. The zero value is of no store.
type Application struct {
	Store Store
	ID    string // the id of the document, or the namespace of its store
	clock *ServerClock
}

// NewApplication returns the part of a store that belongs to the application with an id.
func NewApplication(s Store, id string) Application { return Application{s, id, &ServerClock{}} }

// Time returns the time of the store, as ServerClock does.
func (a Application) Time(ctx context.Context) (time.Time, error) { return a.clock.Now(ctx, a.Store) }

// RecordQuery selects records of a kind.
type RecordQuery struct {
	Prefix string // only records whose ids begin with it
	After  string // only records whose ids are greater; empty: from the first one
	Limit  int    // the most records; 0: all

	Expired bool // also records that have expired and are still there
}

// Records returns the records of a kind.
func (a Application) Records(kind string) Records {
	return Records{app: a, memory: recordsPrefix + url.QueryEscape(a.ID) + ":" + kind}
}

// recordsPrefix begins the ids under which a store has records. The id of a memory has a
// slash, and no escaped id of an application has one.
const recordsPrefix = "records:"

// Records are the records of one kind of an application. They are safe for concurrent use.
// The methods return a *Error for failures of the store, as those of Store do.
type Records struct {
	app    Application
	memory string
}

// Application returns the application to which the records belong.
func (r Records) Application() Application { return r.app }

// Memory returns the id under which the store lists the records, for what treats all
// contents of a store alike, such as a change of keys.
func (r Records) Memory() string { return r.memory }

func (r Records) key(id string) Key { return Key{Memory: r.memory, Session: id} }

// Get returns a record; one with version 0 if it does not exist or has expired.
func (r Records) Get(ctx context.Context, id string) (Record, error) {
	head, err := r.app.Store.Head(ctx, r.key(id))
	if err != nil || head.Version == 0 {
		return Record{}, err
	}
	rec := Record{RecordHead: recordHead(SessionHead{Session: id, Head: head}), Values: head.Values}
	if expired, err := r.expired(ctx, &rec.RecordHead); err != nil || expired {
		return Record{}, err
	}
	return rec, nil
}

func recordHead(s SessionHead) RecordHead {
	return RecordHead{ID: s.Session, Version: s.Head.Version, Stored: s.Head.State.LastSaid, Expires: s.Head.State.Expires, Size: s.Head.State.Size}
}

// expired reports whether a record is gone.
func (r Records) expired(ctx context.Context, h *RecordHead) (bool, error) {
	if h.Expires.IsZero() {
		return false, nil
	}
	now, err := r.app.Time(ctx)
	return h.IsExpired(now), err
}

// Write makes one change, as a whole or not at all, if the record has the version of the
// change; otherwise it returns ErrConflict. As with Store.Apply, the caller does not know
// after any other error whether the change was made.
func (r Records) Write(ctx context.Context, id string, c RecordChange) error {
	change := Change{Version: c.Version, Next: c.Next, State: State{LastSaid: c.Stored, Expires: c.Expires, Size: c.Size}, Values: c.Values}
	err := r.app.Store.Apply(ctx, r.key(id), change)
	if c.Version != 0 || !errors.Is(err, ErrConflict) {
		return err
	}
	head, err := r.app.Store.Head(ctx, r.key(id))
	if err != nil {
		return err
	}
	h := recordHead(SessionHead{Head: head})
	expired, err := r.expired(ctx, &h)
	if err != nil {
		return err
	}
	if !expired {
		return ErrConflict
	}
	if err := Remove(ctx, r.app.Store, r.key(id), h.Version); err != nil {
		return err
	}
	return r.app.Store.Apply(ctx, r.key(id), change)
}

// Delete removes a record. It does nothing if there is none.
func (r Records) Delete(ctx context.Context, id string) error {
	return r.app.Store.Delete(ctx, r.key(id))
}

// Remove removes those of the records that still have their versions, and returns their number.
func (r Records) Remove(ctx context.Context, heads ...RecordHead) (int, error) {
	sessions := make([]SessionHead, len(heads))
	for i, h := range heads {
		sessions[i] = SessionHead{Session: h.ID, Head: Head{Version: h.Version}}
	}
	return RemoveAll(ctx, r.app.Store, r.memory, sessions)
}

// IsExpired reports whether the record is gone at a time of the store.
func (h *RecordHead) IsExpired(now time.Time) bool {
	return !h.Expires.IsZero() && !now.Before(h.Expires)
}

// List yields the records that q selects, ordered by id, and reads them in pages while the range continues.
func (r Records) List(ctx context.Context, q RecordQuery) iter.Seq2[RecordHead, error] {
	return func(yield func(RecordHead, error) bool) {
		for left := q.Limit; ; {
			page, err := r.page(ctx, &q, left)
			for _, h := range page {
				if !yield(h, nil) {
					return
				}
			}
			if err != nil {
				yield(RecordHead{}, err)
				return
			}
			left -= len(page)
			if q.After == "" || q.Limit > 0 && left == 0 {
				return
			}
		}
	}
}

// listPage is how many records are listed at a time.
const listPage = 256

// page returns at most limit records, 0 for all of a page, and moves q.After to the next page; it is empty after the last one.
func (r Records) page(ctx context.Context, q *RecordQuery, limit int) ([]RecordHead, error) {
	size := listPage
	if limit > 0 {
		size = min(size, limit)
	}
	sessions, err := ListSessions(ctx, r.app.Store, r.memory, SessionQuery{Prefix: q.Prefix, After: q.After, Limit: size})
	if err != nil {
		return nil, err
	}
	q.After = ""
	if len(sessions) == size {
		q.After = sessions[size-1].Session
	}
	var page []RecordHead
	for _, s := range sessions {
		h := recordHead(s)
		expired, err := r.expired(ctx, &h)
		if err != nil {
			return nil, err
		}
		if !expired || q.Expired {
			page = append(page, h)
		}
	}
	return page, nil
}

// Purge removes expired records, at most limit of those that come first, and returns their number.
func (r Records) Purge(ctx context.Context, limit int) (int, error) {
	now, err := r.app.Time(ctx)
	if err != nil {
		return 0, err
	}
	sessions, err := ListSessions(ctx, r.app.Store, r.memory, SessionQuery{Limit: limit})
	if err != nil {
		return 0, err
	}
	gone := slices.DeleteFunc(sessions, func(s SessionHead) bool {
		h := recordHead(s)
		return !h.IsExpired(now)
	})
	return RemoveAll(ctx, r.app.Store, r.memory, gone)
}
