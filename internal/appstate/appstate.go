// Package appstate names the kinds of records that an application has in its store, and
// deletes those that were derived from a conversation together with it.
package appstate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
)

// The kinds of records.
const (
	Runs       = "run"            // of the server, by id
	Unfinished = "unfinished-run" // empty, one for each run that has not ended
	Sessions   = "session"        // title and flow, by the stored session
	Newest     = "newest-session" // empty; see NewestID
	Inputs     = "input"          // values of session inputs; see OfFlow
	Responses  = "response"       // the newest one of OpenAI's Responses API; see OfFlow
	Ratings    = "feedback"       // of users on turns, by the stored conversation
	Quotas     = "quota"          // calls and tokens in a minute, by a digest of the credentials
	Budgets    = "budget"         // what a run has spent, by its id
	Cache      = "cache"          // results of steps
	Probe      = "probe"          // written by /readyz
)

// Kinds returns all kinds.
func Kinds() []string {
	return append(OfSessions(), Runs, Unfinished, Quotas, Budgets, Cache, Probe)
}

// OfSessions returns the kinds that are derived from sessions, whose ids begin with that of the session or its user.
func OfSessions() []string { return []string{Sessions, Newest, Inputs, Responses, Ratings} }

// OfFlow returns the id of a record of a flow in a stored session. All those of a session begin
// with OfFlow(session, ""), and all those of a user with the prefix of the sessions of the user.
func OfFlow(session, flow string) string {
	return strings.ReplaceAll(session, "\x00", "\x00\xff") + "\x00\x01" + flow
}

// newestLayout is the place of a session in the list of its user: ids sort by time, the newest first.
const newestLayout = "%s%016x/%s"

// NewestID returns the id of a session in the list of a user; prefix begins the stored
// sessions of the user, and id is the rest of that of the session.
func NewestID(prefix, id string, at time.Time) string {
	return fmt.Sprintf(newestLayout, prefix, math.MaxInt64-at.UnixMicro(), id)
}

// ParseNewest returns the session and the time of an id of NewestID.
func ParseNewest(prefix, entry string) (id string, at time.Time, ok bool) {
	rest, ok := strings.CutPrefix(entry, prefix)
	moment, id, found := strings.Cut(rest, "/")
	n, err := strconv.ParseInt(moment, 16, 64)
	if !ok || !found || err != nil || len(moment) != 16 {
		return "", time.Time{}, false
	}
	return id, time.UnixMicro(math.MaxInt64 - n).UTC(), true
}

// SessionValue is the name of the value of a record of Sessions.
const SessionValue = "session"

// Session is what the server keeps of a session.
type Session struct {
	Title   string    `json:"title"`
	Flow    string    `json:"flow"`            // the flow that began it, empty if unknown
	First   string    `json:"first,omitempty"` // the start of the first message
	Created time.Time `json:"created"`
	Listed  time.Time `json:"listed"` // its time in the list
}

// ReadSession returns the record of a stored session and its version, 0 if there is none.
func ReadSession(ctx context.Context, app store.Application, session string) (s Session, version int64, err error) {
	rec, err := app.Records(Sessions).Get(ctx, session)
	if err != nil || rec.Version == 0 {
		return s, 0, err
	}
	if err := json.Unmarshal(rec.Values[SessionValue], &s); err != nil {
		return s, rec.Version, fmt.Errorf("the record of session %q is damaged: %w", session, err)
	}
	return s, rec.Version, nil
}

// HasSessions reports whether the application has any record that is derived from a session.
func HasSessions(ctx context.Context, app store.Application) (bool, error) {
	for _, kind := range OfSessions() {
		for _, err := range app.Records(kind).List(ctx, store.RecordQuery{Limit: 1}) {
			return err == nil, err
		}
	}
	return false, nil
}

// ForgetSession deletes what the server derived from a stored session: its title, its place
// in the list, its inputs, its responses and the feedback. Its runs stay until they expire.
func ForgetSession(ctx context.Context, app store.Application, session string) error {
	s, version, err := ReadSession(ctx, app, session)
	var failed *memory.StoreError
	if err != nil && (errors.As(err, &failed) || version == 0) {
		return err
	}
	user, id := memory.SplitSession(session)
	if version != 0 && err == nil {
		if err := app.Records(Newest).Delete(ctx, NewestID(memory.UserPrefix(user), id, s.Listed)); err != nil {
			return err
		}
	}
	for _, kind := range []string{Inputs, Responses} {
		if err := DeleteAll(ctx, app.Records(kind), OfFlow(session, "")); err != nil {
			return err
		}
	}
	return errors.Join(app.Records(Ratings).Delete(ctx, session), app.Records(Sessions).Delete(ctx, session))
}

// DeleteAll deletes the records whose ids have a prefix.
func DeleteAll(ctx context.Context, records store.Records, prefix string) error {
	for h, err := range records.List(ctx, store.RecordQuery{Prefix: prefix}) {
		if err == nil {
			err = records.Delete(ctx, h.ID)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
