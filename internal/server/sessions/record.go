package sessions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
)

// The records of sessions are sessions of two memories that no document can
// declare: one by the stored id, with the values, and one whose ids sort by time,
// the newest first, so that the store lists a page of them.
const (
	recordsMemory = "qtype:sessions"
	newestMemory  = "qtype:sessions:newest"
	recordValue   = "session"
)

const (
	listedFor     = 10 * time.Minute // after which a session that is used moves to the front of the list
	maxTitle      = 80               // characters of a title that is made of a message
	maxNewTitle   = 200              // characters of a title that a client sets
	maxSearchable = 400              // bytes of the first message that a search looks at
)

// record is what the server keeps of a session.
type record struct {
	Title   string    `json:"title"`
	Flow    string    `json:"flow"`            // the flow that began it, empty if unknown
	First   string    `json:"first,omitempty"` // the start of the first message
	Created time.Time `json:"created"`
	Listed  time.Time `json:"listed"` // its time in the list
	version int64     // of the stored record, 0 if there is none
}

// Parts returns the parts of a store that have the records of sessions, by stored ids that
// begin with the prefix of the principal.
func Parts() []string { return []string{recordsMemory, newestMemory} }

func recordKey(session string) memory.Key {
	return memory.Key{Memory: recordsMemory, Session: session}
}

// newestKey is the place of a session in the list of the caller's sessions.
func newestKey(p access.Principal, id string, at time.Time) memory.Key {
	return memory.Key{Memory: newestMemory, Session: fmt.Sprintf("%s%016x/%s", p.SessionPrefix(), math.MaxInt64-at.UnixMicro(), id)}
}

// parseNewest returns the id and the time of a session in the list.
func parseNewest(p access.Principal, entry string) (id string, at time.Time, ok bool) {
	rest, ok := strings.CutPrefix(entry, p.SessionPrefix())
	moment, id, found := strings.Cut(rest, "/")
	n, err := strconv.ParseInt(moment, 16, 64)
	if !ok || !found || err != nil || len(moment) != 16 {
		return "", time.Time{}, false
	}
	return id, time.UnixMicro(math.MaxInt64 - n).UTC(), true
}

// Record notes that a run of a flow begins in a stored session of the caller of ctx;
// firstMessage makes the title of a new session. It reads the record each time, because another
// process with the same store may have deleted it.
func (s *Service) Record(ctx context.Context, flow, storedSession, firstMessage string) error {
	rec, err := s.readRecord(ctx, storedSession)
	switch {
	case err != nil:
	case rec.version == 0:
		err = s.create(ctx, storedSession, newRecord(flow, firstMessage))
	case s.now().Sub(rec.Listed) > listedFor:
		err = s.putFirst(ctx, storedSession, rec)
	}
	return err
}

func newRecord(flow, firstMessage string) record {
	return record{Title: titleOf(firstMessage), Flow: flow, First: start(oneLine(firstMessage), maxSearchable)}
}

// readRecord returns the record of a session, one with version 0 if there is none.
func (s *Service) readRecord(ctx context.Context, session string) (record, error) {
	head, err := s.opts.State.Head(ctx, recordKey(session))
	if err != nil || head.Version == 0 {
		return record{}, err
	}
	rec := record{}
	if err := json.Unmarshal(head.Values[recordValue], &rec); err != nil {
		return rec, fmt.Errorf("the record of session %q is damaged: %w", session, err)
	}
	rec.version = head.Version
	return rec, nil
}

// create writes the record of a new session.
func (s *Service) create(ctx context.Context, session string, rec record) error {
	if rec.Created.IsZero() {
		rec.Created = s.now()
	}
	return s.putFirst(ctx, session, rec)
}

// putFirst writes a record and makes its session the first one of the list. If another
// process was faster, its record stays, and the new place in the list is removed.
func (s *Service) putFirst(ctx context.Context, session string, rec record) error {
	p := access.PrincipalOf(ctx)
	id, ok := p.ClientSession(session)
	if !ok {
		return errors.New("the session belongs to another caller")
	}
	before := newestKey(p, id, rec.Listed)
	rec.Listed = s.now()
	place := newestKey(p, id, rec.Listed)
	err := s.opts.State.Apply(ctx, place, store.Change{Next: store.NextVersion(0), State: store.State{LastSaid: rec.Listed}})
	if err != nil && !errors.Is(err, store.ErrConflict) {
		return err
	}
	err = s.writeRecord(ctx, session, rec)
	switch {
	case errors.Is(err, store.ErrConflict):
		return s.opts.State.Delete(ctx, place)
	case err != nil || rec.version == 0:
		return err
	}
	return s.opts.State.Delete(ctx, before)
}

// writeRecord writes a record if the store has its version; otherwise it returns
// store.ErrConflict.
func (s *Service) writeRecord(ctx context.Context, session string, rec record) error {
	raw, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	return s.opts.State.Apply(ctx, recordKey(session), store.Change{Version: rec.version, Next: store.NextVersion(rec.version),
		State: store.State{LastSaid: rec.Created}, Values: map[string][]byte{recordValue: raw}})
}

// forget deletes the record of a session.
func (s *Service) forget(ctx context.Context, session, id string, rec record) error {
	if rec.version == 0 {
		return nil
	}
	if err := s.opts.State.Delete(ctx, newestKey(access.PrincipalOf(ctx), id, rec.Listed)); err != nil {
		return err
	}
	return s.opts.State.Delete(ctx, recordKey(session))
}

// titleOf returns the start of a message as a title.
func titleOf(message string) string {
	text := []rune(oneLine(message))
	switch {
	case len(text) == 0:
		return "New session"
	case len(text) <= maxTitle:
		return string(text)
	}
	return strings.TrimRightFunc(string(text[:maxTitle-1]), unicode.IsSpace) + "…"
}

// oneLine returns a text with single blanks in the place of white space and control characters.
func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "\uFFFD"), func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r)
	}), " ")
}

// start returns at most n bytes of a text, without a part of a character.
func start(text string, n int) string {
	return strings.ToValidUTF8(text[:min(len(text), n)], "")
}
