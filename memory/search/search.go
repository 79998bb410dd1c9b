// Package search finds messages in the stored conversations of a memory, by their words
// and, if the memory has a context block retrieval, by their meaning.
//
//	s := search.New(m)
//	found, err := s.Search(ctx, search.Query{Text: "sourdough", Scope: search.User("ada")})
//
// The words of messages are indexed in the memory of the process when they are first
// searched; later searches add what was written since. The index of a session of thousands of messages is
// stored in the store of the memory, encrypted if its messages are, so that a new process reads what a search
// needs of it. It is deleted with the session, and when a message is edited or deleted. Messages are read from the store again before
// they are returned, so that what was deleted, rewound or has expired is not found.
package search

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/memory/ranking"
	"github.com/qtype-dev/qtype/internal/memory/segments"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// The number of messages that a search returns.
const (
	DefaultLimit = 10
	MaxLimit     = 1_000
)

// Scope selects the sessions that are searched. The zero Scope selects none.
type Scope struct {
	kind memory.Scope
	id   string
}

// Session is the scope of one session, by its stored id.
func Session(id string) Scope { return Scope{memory.SessionScope, id} }

// User is the scope of all sessions of a user.
func User(user string) Scope { return Scope{memory.UserScope, user} }

// All is the scope of all sessions of the memory.
func All() Scope { return Scope{memory.AppScope, ""} }

// ScopeOf returns the sessions that a scope of the language has for a session. The scope
// of the memory may be wider: its conversation is that of several sessions. A session
// without a user is the only one of its user.
func (s *Searcher) ScopeOf(scope memory.Scope, session string) Scope {
	user, _ := memory.SplitSession(session)
	switch {
	case s.memory.Scope().Covers(scope):
		return Session(session)
	case scope == memory.AppScope:
		return All()
	case scope == memory.UserScope && user != "":
		return User(user)
	}
	return Session(session)
}

// Query is a search.
type Query struct {
	Text     string    // what to find, in any characters
	Scope    Scope     // where
	Since    time.Time // only messages of this time and later; zero: all
	Until    time.Time // only messages before this time; zero: all
	Limit    int       // the most messages; 0: DefaultLimit
	MinScore float64   // the least Message.Score; 0: any
}

// Message is a found message.
type Message struct {
	Session string    `json:"session"`           // the stored id of its session
	ID      string    `json:"id"`                // its id
	Seq     int64     `json:"seq"`               // its position in the history
	Turn    int64     `json:"turn"`              // the number of its turn
	Time    time.Time `json:"time"`              // when its turn ended
	Role    chat.Role `json:"role"`              // its role
	Name    string    `json:"name,omitempty"`    // the name of the author
	Content string    `json:"content"`           // its text
	Passage string    `json:"passage,omitempty"` // the part of a long text that fits best, after its heading
	Score   float64   `json:"score"`             // about 1 for all rare words of the text and 0.4 for a message that may answer it
}

// Results are the messages that a search found.
type Results struct {
	Messages []Message // the best first
	Problem  string    // why messages were not, or not all, compared by meaning, or the index was not stored; empty for none
}

// Searcher searches a memory. It is safe for concurrent use.
type Searcher struct {
	memory *memory.Memory

	mu      sync.Mutex // guards what follows
	indexes map[Scope]*index
	order   []*index // least recently used first
}

// New returns a Searcher. It reads nothing yet.
func New(m *memory.Memory) *Searcher {
	return &Searcher{memory: m, indexes: map[Scope]*index{}}
}

// errScope is returned for a scope without a session or user.
var errScope = errors.New("a search needs a session, a user, or All")

// Search returns the messages that fit a text best. Without a text it returns none.
func (s *Searcher) Search(ctx context.Context, q Query) (Results, error) {
	if q.Scope.kind == "" || q.Scope.kind != memory.AppScope && q.Scope.id == "" {
		return Results{}, errScope
	}
	if q.Limit == 0 {
		q.Limit = DefaultLimit
	}
	if q.Limit < 1 || q.Limit > MaxLimit {
		return Results{}, fmt.Errorf("the limit of a search must be from 1 to %d, not %d", MaxLimit, q.Limit)
	}
	x := s.index(q.Scope)
	x.mu.Lock()
	defer x.mu.Unlock()
	out, err := s.search(ctx, x, q)
	for attempt := 1; segments.IsUnusable(err) && attempt <= maxAttempts; attempt++ {
		if err = x.discard(ctx, err, attempt == maxAttempts); err == nil {
			out, err = s.search(ctx, x, q)
		}
	}
	return out, err
}

// search is Search with an index that the caller has locked.
func (s *Searcher) search(ctx context.Context, x *index, q Query) (Results, error) {
	heads, err := x.update(ctx)
	if err != nil {
		return Results{}, err
	}
	s.shrink(x)
	var out Results
	similar, problem, err := x.similar(ctx, heads, q.Text)
	if err != nil {
		return Results{}, err
	}
	out.Problem = cmp.Or(problem, x.problem)
	const spare = 20 // for messages that were deleted meanwhile
	query := ranking.Query{Text: q.Text, Similar: similar, Limit: q.Limit + spare, MinScore: q.MinScore, Whole: true}
	if !q.Since.IsZero() || !q.Until.IsZero() {
		query.Match = func(doc int) bool {
			at := x.corpus.Time(doc)
			return (q.Since.IsZero() || !at.Before(q.Since.Truncate(time.Second))) && (q.Until.IsZero() || at.Before(q.Until))
		}
	}
	ranked, err := x.corpus.Rank(ctx, query)
	if err != nil {
		return Results{}, err
	}
	for _, f := range ranked {
		if len(out.Messages) == q.Limit {
			break
		}
		if out.Messages, err = x.read(ctx, f, q, out.Messages); err != nil {
			return Results{}, err
		}
	}
	return out, nil
}

// read appends a found message, if the store still has it.
func (x *index) read(ctx context.Context, f ranking.Result, q Query, to []Message) ([]Message, error) {
	number, at := x.corpus.At(f.Doc)
	session := x.names[number]
	for e, err := range x.memory.HistoryRange(ctx, session, at.Seq, at.Seq) {
		if err != nil {
			return nil, err
		}
		if !isSearched(&e) || !q.Since.IsZero() && e.Time.Before(q.Since) || !q.Until.IsZero() && !e.Time.Before(q.Until) {
			continue
		}
		text, passage := e.Message.Text(), ""
		if parts := ranking.Passages(text); len(parts) > 1 && at.Part < len(parts) {
			passage = parts[at.Part].String()
		}
		to = append(to, Message{Session: session, ID: e.Message.ID, Seq: e.Seq, Turn: e.Turn, Time: e.Time,
			Role: e.Message.Role, Name: e.Message.Name, Content: text, Passage: passage, Score: f.Score})
	}
	return to, nil
}

// isSearched reports whether a message can be found.
func isSearched(e *memory.Entry) bool {
	return e.Status != store.Failed && e.Status != store.Rewound && e.Status != store.Edited && e.Status != store.Deleted && e.Message.Role != chat.System
}
