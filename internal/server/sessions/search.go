package sessions

import (
	"net/http"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/memoryview"
	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/search"
	"github.com/qtype-dev/qtype/spec/chat"
)

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
