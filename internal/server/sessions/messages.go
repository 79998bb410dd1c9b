package sessions

import (
	"context"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/memoryview"
	"github.com/qtype-dev/qtype/internal/memoryview/explain"
	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/search"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// messageJSON is a message of the history in the form of the AI SDK. Tool results are
// part of the message with their calls.
type messageJSON struct {
	ID     string    `json:"id"`
	Seq    int64     `json:"seq"`
	Turn   int64     `json:"turn"`
	Role   string    `json:"role"` // system, user or assistant
	Name   string    `json:"name,omitempty"`
	Parts  []part    `json:"parts"`
	Tokens int       `json:"tokens"` // with those of the results
	Time   time.Time `json:"time"`
	Status string    `json:"status"`
	Reason string    `json:"reason,omitempty"` // why it is not in the window

	Stopped bool `json:"stopped,omitempty"` // the user stopped the answer
}

// The statuses of messages.
const (
	inWindow   = "in_window"
	evicted    = "evicted"
	summarized = "summarized"
	failed     = "failed"
	stopped    = "stopped" // its turn was stopped before anything was said
	replaced   = "replaced"
	deleted    = "deleted"
)

// maxResults is how far a page is extended so that it begins with a tool call and not
// with its results.
const maxResults = 64

// messages answers GET /sessions/{id}/messages: a page of the history, the newest
// one first, in its order; with search, what fits a text.
func (s *Service) messages(w http.ResponseWriter, r *http.Request) error {
	one, m, err := s.findMemory(r)
	if err != nil {
		return err
	}
	if r.URL.Query().Has("search") {
		return s.searchSession(w, r, one, m)
	}
	limit, err := intParameter(r, "limit", defaultPage, maxPage)
	if err != nil {
		return err
	}
	before, err := intParameter(r, "before", 0, 1<<53)
	if err != nil {
		return err
	}
	out := struct {
		Messages []messageJSON `json:"messages"`
		Previous *int64        `json:"previous"`
	}{Messages: []messageJSON{}}
	if m.Memory == nil {
		return writeJSON(w, http.StatusOK, out)
	}
	info, err := m.Info(r.Context(), one.stored)
	if err != nil {
		return err
	}
	last := info.Messages
	if before > 0 {
		last = min(before-1, last)
	}
	if last < 1 {
		return writeJSON(w, http.StatusOK, out)
	}
	entries, err := page(r.Context(), m.Memory, one.stored, max(last-limit+1, 1), last)
	if err != nil {
		return err
	}
	previous := entries
	if entries, err = current(r.Context(), m, one.stored, entries); err != nil {
		return err
	}
	if out.Messages, err = convert(r.Context(), m, one.stored, entries); err != nil {
		return err
	}
	if len(previous) > 0 && previous[0].Seq > 1 {
		out.Previous = &previous[0].Seq
	}
	return writeJSON(w, http.StatusOK, out)
}

// page reads a range of the history, and what precedes it back to the call of the
// first tool result.
func page(ctx context.Context, m *memory.Memory, stored string, from, to int64) ([]memory.Entry, error) {
	entries, err := collect(m.HistoryRange(ctx, stored, from, to))
	if err != nil || len(entries) == 0 || !isResult(&entries[0]) || from == 1 {
		return entries, err
	}
	earlier, err := collect(m.HistoryRange(ctx, stored, max(from-maxResults, 1), from-1))
	if err != nil {
		return nil, err
	}
	call := len(earlier) - 1
	for call > 0 && isResult(&earlier[call]) {
		call--
	}
	return append(earlier[max(call, 0):], entries...), nil
}

func collect[T any](seq func(func(T, error) bool)) (all []T, err error) {
	for v, err := range seq {
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

func isResult(e *memory.Entry) bool {
	return e.Message.Role == chat.Tool || e.Message.Role == chat.Function
}

// convert returns the messages of entries with their statuses.
func convert(ctx context.Context, m memoryview.Memory, stored string, entries []memory.Entry) ([]messageJSON, error) {
	out := []messageJSON{}
	reasons := &reasons{memory: m, session: stored}
	for i := range entries {
		e := &entries[i]
		if n := len(out); n > 0 && isResult(e) && out[n-1].Turn == e.Turn && out[n-1].Role == "assistant" {
			out[n-1].Parts = addResult(out[n-1].Parts, &e.Message)
			out[n-1].Tokens += e.Tokens
			continue
		}
		one := messageJSON{ID: e.Message.ID, Seq: e.Seq, Turn: e.Turn, Role: roleOf(e.Message.Role), Name: e.Message.Name, Parts: partsOf(&e.Message), Tokens: e.Tokens, Time: e.Time, Stopped: e.Message.Stopped}
		if isResult(e) {
			one.Parts = addResult(nil, &e.Message)
		}
		var err error
		if one.Status, one.Reason, err = reasons.of(ctx, *e); err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

// roleOf returns the role that the AI SDK has for one of ours.
func roleOf(r chat.Role) string {
	switch r {
	case chat.User:
		return "user"
	case chat.System, chat.Developer:
		return "system"
	}
	return "assistant"
}

// reasons finds why messages are not in the window. It reads the events of the session
// only if one is not.
type reasons struct {
	memory   memoryview.Memory
	session  string
	read     bool
	removals *explain.Removals
	context  *memoryview.Context
}

func (r *reasons) of(ctx context.Context, e memory.Entry) (status, reason string, err error) {
	if e.Status == store.InWindow {
		return inWindow, "", nil
	}
	if e.Status == store.Replaced {
		return replaced, "a newer system message replaced it", nil
	}
	if !r.read {
		r.read = true
		events, err := collect(r.memory.Events(ctx, r.session))
		if err != nil {
			return "", "", err
		}
		info, err := r.memory.Info(ctx, r.session)
		if err != nil {
			return "", "", err
		}
		r.removals = explain.NewRemovals(events, math.MaxInt64, info.Messages)
		if r.context, err = memoryview.ContextOf(ctx, r.memory, r.session); err != nil {
			return "", "", err
		}
	}
	removal, _ := r.removals.Of(e)
	switch {
	case e.Status == store.Failed && removal.Reason == memory.ErrStopped.Error():
		return stopped, removal.Reason, nil
	case e.Status == store.Failed:
		return failed, removal.Reason, nil
	case e.Status == store.Deleted:
		return deleted, removal.Reason, nil
	case e.Status == store.Rewound || removal.Kind == store.EventSet:
		return replaced, removal.Reason, nil
	case e.Seq <= r.context.Through:
		return summarized, removal.Reason, nil
	}
	return evicted, removal.Reason, nil
}

// foundJSON is a message that a search found.
type foundJSON struct {
	Session string    `json:"session"` // the client's id of its session; empty if all sessions of the caller share the conversation
	ID      string    `json:"id"`
	Seq     int64     `json:"seq"`
	Turn    int64     `json:"turn"`
	Time    time.Time `json:"time"`
	Role    chat.Role `json:"role"`
	Name    string    `json:"name,omitempty"`
	Content string    `json:"content"`
	Passage string    `json:"passage,omitempty"` // the part of a long content that fits best, after its heading
	Score   float64   `json:"score"`             // comparable within one search
}

// searchSession answers GET /sessions/{id}/messages?search=TEXT: messages of one session.
func (s *Service) searchSession(w http.ResponseWriter, r *http.Request, one *session, m memoryview.Memory) error {
	if r.URL.Query().Has("before") {
		return badParameter("before", "a search has no pages; set limit")
	}
	if m.Memory == nil { // no messages yet
		return s.search(w, r, nil, search.Scope{})
	}
	searcher := s.opts.App().Searcher(m.ID)
	return s.search(w, r, searcher, searcher.ScopeOf(memory.SessionScope, one.stored))
}

// searchAll answers GET /sessions/messages?search=TEXT: messages of all sessions of the caller.
// Without a text it is the session of that id.
func (s *Service) searchAll(w http.ResponseWriter, r *http.Request) error {
	if !r.URL.Query().Has("search") {
		r.SetPathValue("id", "messages")
		return s.get(w, r)
	}
	m, err := s.searchedMemory(r)
	if err != nil {
		return err
	}
	searcher, p := s.opts.App().Searcher(m.ID), access.PrincipalOf(r.Context())
	if p.Name == "" {
		return s.search(w, r, searcher, search.All())
	}
	return s.search(w, r, searcher, searcher.ScopeOf(memory.UserScope, p.StoredSession("")))
}

// searchedMemory returns the memory that the parameter memory names, by default the first
// one. One conversation of all callers belongs to none of them.
func (s *Service) searchedMemory(r *http.Request) (memoryview.Memory, error) {
	id := r.URL.Query().Get("memory")
	var ids []string
	for _, m := range s.memories("") {
		if m.Scope() == memory.AppScope {
			continue
		}
		if id == "" || m.ID == id {
			return m, nil
		}
		ids = append(ids, m.ID)
	}
	if len(ids) == 0 {
		return memoryview.Memory{}, badParameter("memory", "the application has no memory with separate conversations for each caller")
	}
	return memoryview.Memory{}, badParameter("memory", "there is no memory %q to search in all sessions; there is: %s", id, strings.Join(ids, ", "))
}

// search writes what a search finds; searcher is nil if there is nothing to search.
func (s *Service) search(w http.ResponseWriter, r *http.Request, searcher *search.Searcher, scope search.Scope) error {
	text := strings.TrimSpace(r.URL.Query().Get("search"))
	if text == "" {
		return badParameter("search", "it is empty; it is the text to find")
	}
	limit, err := intParameter(r, "limit", search.DefaultLimit, maxPage)
	if err != nil {
		return err
	}
	out := struct {
		Messages []foundJSON `json:"messages"`
		Problem  *string     `json:"problem"` // why not all messages were compared by meaning
	}{Messages: []foundJSON{}}
	if searcher == nil {
		return writeJSON(w, http.StatusOK, out)
	}
	found, err := searcher.Search(r.Context(), search.Query{Text: text, Scope: scope, Limit: int(limit)})
	if err != nil {
		return err
	}
	p := access.PrincipalOf(r.Context())
	for _, m := range found.Messages {
		id, _ := p.ClientSession(m.Session)
		out.Messages = append(out.Messages, foundJSON{Session: id, ID: m.ID, Seq: m.Seq, Turn: m.Turn, Time: m.Time, Role: m.Role, Name: m.Name, Content: m.Content, Passage: m.Passage, Score: m.Score})
	}
	if found.Problem != "" {
		s.opts.Log.WarnContext(r.Context(), "a search compared not all messages by meaning", "problem", found.Problem)
		problem := "not all messages were compared by meaning; the log of the server has the reason"
		out.Problem = &problem
	}
	return writeJSON(w, http.StatusOK, out)
}
