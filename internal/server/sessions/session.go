package sessions

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/internal/appstate"
	"github.com/qtype-dev/qtype/internal/memoryview"
	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

const (
	defaultPage = 50
	maxPage     = 200
	maxScanned  = 1_000 // records that one request for a list looks at
	unusedFor   = time.Hour
)

// session is a session of one caller.
type session struct {
	id     string // the client's
	stored string
	record record
	kept   []runtime.Effect // calls of tools that a rewind has not undone
	heads  []head           // in the order of the flow, then in that of the document; only memories that have it
}

// head is a session in one memory.
type head struct {
	memory memoryview.Memory
	info   memory.SessionInfo
}

// find returns the session that the path names. The error is notFound if no memory has
// it and there is no record of it.
func (s *Service) find(r *http.Request) (*session, error) {
	stored, err := storedSession(r)
	if err != nil {
		return nil, err
	}
	one, err := s.load(r.Context(), r.PathValue("id"), stored)
	if err == nil && one.record.version == 0 && len(one.heads) == 0 {
		return nil, notFound()
	}
	return one, err
}

func (s *Service) load(ctx context.Context, id, stored string) (*session, error) {
	rec, err := s.readRecord(ctx, stored)
	if err != nil {
		return nil, err
	}
	one := &session{id: id, stored: stored, record: rec}
	for _, m := range s.memories(rec.Flow) {
		info, err := m.Info(ctx, stored)
		if err != nil {
			return nil, err
		}
		if !info.LastSaid.IsZero() {
			one.heads = append(one.heads, head{m, info})
		}
	}
	if len(one.heads) == 0 && s.mayHaveExpired(&rec) {
		return s.forgetExpired(ctx, one)
	}
	if rec.version == 0 && len(one.own()) == 0 {
		one.heads = nil // other sessions of the user have conversations that this one would share
	}
	if rec.version == 0 && len(one.heads) > 0 {
		err = one.describe(ctx)
	}
	return one, err
}

// own returns the heads of conversations that belong to the session alone: not to all
// sessions of the user, or to all of the application.
func (o *session) own() []head {
	return slices.DeleteFunc(slices.Clone(o.heads), func(h head) bool { return h.memory.Conversation(o.stored) != o.stored })
}

// describe makes the record of a session that the server did not begin.
func (o *session) describe(ctx context.Context) (err error) {
	o.record.Title, o.record.First, o.record.Created, err = firstMessage(ctx, o.heads[0].memory.Memory, o.stored)
	return err
}

// firstMessage returns a title for a session, the start of its first user message, and
// the time of its first message.
func firstMessage(ctx context.Context, m *memory.Memory, stored string) (title, first string, created time.Time, err error) {
	const searched = 8 // messages: a system message may precede it
	for e, err := range m.HistoryRange(ctx, stored, 1, searched) {
		if err != nil {
			return "", "", created, err
		}
		if created.IsZero() {
			created = e.Time
		}
		if e.Message.Role == chat.User {
			rec := newRecord("", e.Message.Written())
			return rec.Title, rec.First, created, nil
		}
	}
	return titleOf(""), "", created, nil
}

// memories returns the memories of the application, those of a flow first.
func (s *Service) memories(flow string) []memoryview.Memory {
	app := s.opts.App()
	var ids []string
	for _, f := range app.Spec().Flows {
		if f.ID == flow {
			ids = runtime.MemoryIDs(f)
		}
	}
	for _, m := range app.Spec().Memories {
		if !slices.Contains(ids, m.ID) {
			ids = append(ids, m.ID)
		}
	}
	var all []memoryview.Memory
	for _, id := range ids {
		if m := app.Memory(id); m != nil {
			all = append(all, memoryview.Memory{Memory: m, ID: id})
		}
	}
	return all
}

// memory returns the memory that the parameter memory names, by default the first
// one; a zero Memory for a session without messages.
func (o *session) memory(r *http.Request) (memoryview.Memory, error) {
	id := r.URL.Query().Get("memory")
	var ids []string
	for _, h := range o.heads {
		if id == "" || h.memory.ID == id {
			return h.memory, nil
		}
		ids = append(ids, h.memory.ID)
	}
	if id == "" {
		return memoryview.Memory{}, nil
	}
	return memoryview.Memory{}, badParameter("memory", "the session has no memory %q; it has: %s", id, strings.Join(ids, ", "))
}

// updated returns when the session was changed last.
func (o *session) updated() time.Time {
	last := o.record.Created
	for _, h := range o.heads {
		if h.info.LastSaid.After(last) {
			last = h.info.LastSaid
		}
	}
	return last
}

// listedJSON is a session in a list.
type listedJSON struct {
	ID       string    `json:"id"`
	Title    string    `json:"title"`
	Flow     string    `json:"flow"`
	Messages int64     `json:"messages"` // of the longest history
	Updated  time.Time `json:"updated"`
	Memories []string  `json:"memories"`
}

// sessionJSON is one session.
type sessionJSON struct {
	ID       string       `json:"id"`
	Title    string       `json:"title"`
	Flow     string       `json:"flow"`
	Created  time.Time    `json:"created"`
	Updated  time.Time    `json:"updated"`
	Memories []memoryJSON `json:"memories"`
	Run      *string      `json:"run"` // the run that uses it now

	Feedback  []*appstate.Feedback `json:"feedback,omitempty"`   // of the user on turns, the oldest first
	NotUndone []runtime.Effect     `json:"not_undone,omitempty"` // of a rewind: calls of tools that it has not undone
}

// memoryJSON is a session in one memory.
type memoryJSON struct {
	ID       string      `json:"id"`
	Policy   spec.Policy `json:"policy"`
	Messages int64       `json:"messages"` // of the history, those of failed turns included
	InWindow int         `json:"in_window"`
	Used     int         `json:"used"`
	Limit    int         `json:"limit"` // 0: none
	Unit     store.Unit  `json:"unit"`
	Tokens   int         `json:"tokens"`
	Flushes  int         `json:"flushes"`
	Turns    int64       `json:"turns"` // number of the newest turn
}

// findMemory returns the session of a request and the memory that its parameter names.
func (s *Service) findMemory(r *http.Request) (*session, memoryview.Memory, error) {
	one, err := s.find(r)
	if err != nil {
		return nil, memoryview.Memory{}, err
	}
	m, err := one.memory(r)
	return one, m, err
}

// get answers GET /sessions/{id}.
func (s *Service) get(w http.ResponseWriter, r *http.Request) error {
	one, err := s.find(r)
	if err != nil {
		return err
	}
	return s.write(w, r, http.StatusOK, one)
}

func (s *Service) write(w http.ResponseWriter, r *http.Request, status int, one *session) error {
	out := sessionJSON{ID: one.id, Title: one.record.Title, Flow: one.record.Flow, Created: one.record.Created, Updated: one.updated(), Memories: []memoryJSON{}, NotUndone: one.kept}
	for _, h := range one.heads {
		window, err := h.memory.Window(r.Context(), one.stored)
		if err != nil {
			return err
		}
		out.Memories = append(out.Memories, memoryJSON{ID: h.memory.ID, Policy: h.memory.Policy(), Messages: h.info.Messages, InWindow: len(window.Entries),
			Used: window.Used, Limit: window.Limit, Unit: window.Unit, Tokens: window.Tokens, Flushes: h.info.Flushes, Turns: h.info.Turns})
		given, err := appstate.ReadFeedback(r.Context(), s.opts.State(), h.memory.ID, h.memory.Conversation(one.stored))
		if err != nil {
			return err
		}
		out.Feedback = append(out.Feedback, given...)
	}
	run, _, err := s.running(r.Context(), one.stored)
	if err != nil {
		return err
	}
	if run != "" {
		out.Run = &run
	}
	return writeJSON(w, status, out)
}

func (s *Service) running(ctx context.Context, stored string) (run string, busy bool, err error) {
	if s.opts.Running == nil {
		return "", false, nil
	}
	return s.opts.Running(ctx, stored)
}

// list answers GET /sessions: the sessions of the caller, those first that were used
// last, as exact as listedFor.
func (s *Service) list(w http.ResponseWriter, r *http.Request) error {
	limit, err := intParameter(r, "limit", defaultPage, maxPage)
	if err != nil {
		return err
	}
	p := access.PrincipalOf(r.Context())
	q := store.RecordQuery{Prefix: p.SessionPrefix()}
	if cursor := r.URL.Query().Get("cursor"); cursor != "" {
		raw, err := base64.RawURLEncoding.DecodeString(cursor)
		if _, _, ok := appstate.ParseNewest(p.SessionPrefix(), string(raw)); err != nil || !ok {
			return badParameter("cursor", "it is not the value of next of an earlier response")
		}
		q.After = string(raw)
	}
	out := struct {
		Sessions []listedJSON `json:"sessions"`
		Next     *string      `json:"next"`
	}{Sessions: []listedJSON{}}
	more, err := s.scan(r, q, func(one *session) bool {
		out.Sessions = append(out.Sessions, one.listed())
		return len(out.Sessions) < int(limit)
	})
	if err != nil {
		return err
	}
	if more != "" {
		next := base64.RawURLEncoding.EncodeToString([]byte(more))
		out.Next = &next
	}
	return writeJSON(w, http.StatusOK, out)
}

// scan calls found for the sessions that match the request until it returns false or
// enough records were read. It returns where to continue, empty at the end.
func (s *Service) scan(r *http.Request, q store.RecordQuery, found func(*session) bool) (more string, err error) {
	ctx, p := r.Context(), access.PrincipalOf(r.Context())
	flow, words := r.URL.Query().Get("flow"), strings.ToLower(r.URL.Query().Get("q"))
	scanned := 0
	for h, err := range s.opts.State().Records(appstate.Newest).List(ctx, q) {
		if err != nil {
			return "", err
		}
		scanned++
		one, err := s.listedSession(ctx, p, h.ID, flow, words)
		if err != nil {
			return "", err
		}
		if one != nil && !found(one) || scanned == maxScanned {
			return h.ID, nil
		}
	}
	return "", nil
}

// listedSession returns the session of an entry of the list, nil if it does not
// match or was deleted. Sessions without messages are listed as long as their first
// run may be active.
func (s *Service) listedSession(ctx context.Context, p access.Principal, entry, flow, words string) (*session, error) {
	id, at, ok := appstate.ParseNewest(p.SessionPrefix(), entry)
	if !ok {
		return nil, nil
	}
	stored := p.StoredSession(id)
	rec, err := s.readRecord(ctx, stored)
	if err != nil || !rec.Listed.Equal(at) || flow != "" && rec.Flow != flow || !rec.matches(words) {
		return nil, err
	}
	one, err := s.load(ctx, id, stored)
	if err != nil || len(one.heads) > 0 {
		return one, err
	}
	if one.record.version == 0 || s.now().Sub(at) > unusedFor {
		return nil, nil
	}
	return one, nil
}

// mayHaveExpired reports whether all conversations of a session have expired if it was not used
// since its record was written.
func (s *Service) mayHaveExpired(rec *record) bool {
	ttl, all := s.lifetime(rec.Flow)
	return rec.version != 0 && all && s.now().Sub(rec.Listed) > ttl
}

// forgetExpired deletes the record of a session without conversations, unless a run of it is active.
func (s *Service) forgetExpired(ctx context.Context, one *session) (*session, error) {
	if _, busy, err := s.running(ctx, one.stored); err != nil || busy {
		return one, err
	}
	one.record = record{}
	return one, appstate.ForgetSession(ctx, s.opts.State(), one.stored)
}

// lifetime returns how long the memories of a flow keep a session, and whether all of
// them have a ttl.
func (s *Service) lifetime(flow string) (longest time.Duration, all bool) {
	app := s.opts.App().Spec()
	i := slices.IndexFunc(app.Flows, func(f *spec.Flow) bool { return f.ID == flow })
	if i < 0 {
		return 0, false
	}
	ids := runtime.MemoryIDs(app.Flows[i])
	for _, m := range app.Memories {
		if !slices.Contains(ids, m.ID) {
			continue
		}
		if m.TTL == 0 {
			return 0, false
		}
		longest = max(longest, time.Duration(m.TTL))
	}
	return longest, longest > 0
}

// matches reports whether title or first message contain the words, which are in lower case.
func (rec record) matches(words string) bool {
	return strings.Contains(strings.ToLower(rec.Title), words) || strings.Contains(strings.ToLower(rec.First), words)
}

func (o *session) listed() listedJSON {
	out := listedJSON{ID: o.id, Title: o.record.Title, Flow: o.record.Flow, Updated: o.updated(), Memories: []string{}}
	for _, h := range o.heads {
		out.Messages = max(out.Messages, h.info.Messages)
		out.Memories = append(out.Memories, h.memory.ID)
	}
	return out
}

// maxRenames bounds how often a title is written again because another request was faster.
const maxRenames = 10

// rename answers PATCH /sessions/{id}.
func (s *Service) rename(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Title *string `json:"title"`
	}
	one, err := s.find(r)
	if err != nil {
		return err
	}
	if err := readJSON(w, r, &body, maxBody); err != nil {
		return err
	}
	if body.Title == nil || oneLine(*body.Title) == "" || utf8.RuneCountInString(*body.Title) > maxNewTitle {
		return invalid("/title", "a title has 1 to %d characters", maxNewTitle)
	}
	for range maxRenames {
		one.record.Title = oneLine(*body.Title)
		if one.record.version == 0 {
			err = s.create(r.Context(), one.stored, one.record)
		} else {
			err = s.writeRecord(r.Context(), one.stored, one.record)
		}
		if !errors.Is(err, store.ErrConflict) {
			break
		}
		if one, err = s.find(r); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	if one, err = s.find(r); err != nil {
		return err
	}
	return s.write(w, r, http.StatusOK, one)
}

// remove answers DELETE /sessions/{id}. If it fails in between, it can be repeated.
func (s *Service) remove(w http.ResponseWriter, r *http.Request) error {
	one, err := s.find(r)
	if err != nil {
		return err
	}
	err = s.changing(r.Context(), one.stored, func(ctx context.Context) error {
		for _, m := range s.memories(one.record.Flow) {
			for _, session := range s.opts.App().SessionsOf(one.stored) {
				if m.Conversation(session) != session {
					continue // other sessions share it
				}
				if err := m.Clear(ctx, session); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err == nil {
		err = appstate.ForgetSession(r.Context(), s.opts.State(), one.stored)
	}
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// context answers GET /sessions/{id}/context.
func (s *Service) context(w http.ResponseWriter, r *http.Request) error {
	one, m, err := s.findMemory(r)
	if err != nil {
		return err
	}
	if m.Memory == nil {
		return writeJSON(w, http.StatusOK, memoryview.Context{Blocks: []memoryview.Block{}, Flushes: []memoryview.Flush{}})
	}
	c, err := memoryview.ContextOf(r.Context(), m, one.stored)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, c)
}
