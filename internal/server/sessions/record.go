package sessions

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"
	"unicode"

	"github.com/qtype-dev/qtype/internal/appstate"
	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/memory/store"
)

const (
	listedFor     = 10 * time.Minute // after which a session that is used moves to the front of the list
	maxTitle      = 80               // characters of a title that is made of a message
	maxNewTitle   = 200              // characters of a title that a client sets
	maxSearchable = 400              // bytes of the first message that a search looks at
)

// record is what the server keeps of a session.
type record struct {
	appstate.Session
	version int64 // of the stored record, 0 if there is none
}

// Record notes that a run of a flow begins in a stored session of the caller of ctx;
// firstMessage makes the title of a new session. It reads the record each time, because another
// process with the same store may have deleted it.
func (s *Service) Record(ctx context.Context, flow, storedSession, firstMessage string) error {
	rec, err := s.readRecord(ctx, storedSession)
	if err == nil && s.mayHaveExpired(&rec) {
		var one *session
		if one, err = s.load(ctx, "", storedSession); err == nil {
			rec = one.record
		}
	}
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
	return record{Session: appstate.Session{Title: titleOf(firstMessage), Flow: flow, First: start(oneLine(firstMessage), maxSearchable)}}
}

// readRecord returns the record of a session, one with version 0 if there is none.
func (s *Service) readRecord(ctx context.Context, session string) (rec record, err error) {
	rec.Session, rec.version, err = appstate.ReadSession(ctx, s.opts.State(), session)
	return rec, err
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
	list := s.opts.State().Records(appstate.Newest)
	before := appstate.NewestID(p.SessionPrefix(), id, rec.Listed)
	rec.Listed = s.now()
	place := appstate.NewestID(p.SessionPrefix(), id, rec.Listed)
	err := list.Write(ctx, place, store.RecordChange{Next: store.NextVersion(0), Stored: rec.Listed})
	if err != nil && !errors.Is(err, store.ErrConflict) {
		return err
	}
	err = s.writeRecord(ctx, session, rec)
	switch {
	case errors.Is(err, store.ErrConflict):
		return list.Delete(ctx, place)
	case err != nil || rec.version == 0:
		return err
	}
	return list.Delete(ctx, before)
}

// writeRecord writes a record if the store has its version; otherwise it returns
// store.ErrConflict.
func (s *Service) writeRecord(ctx context.Context, session string, rec record) error {
	raw, err := json.Marshal(rec.Session)
	if err != nil {
		return err
	}
	return s.opts.State().Records(appstate.Sessions).Write(ctx, session, store.RecordChange{Version: rec.version, Next: store.NextVersion(rec.version),
		Stored: rec.Created, Values: map[string][]byte{appstate.SessionValue: raw}})
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
