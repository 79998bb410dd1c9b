package search

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"sync"

	"github.com/qtype-dev/qtype/internal/memory/ranking"
	"github.com/qtype-dev/qtype/internal/memory/segments"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
)

const (
	maxIndexes         = 256       // scopes whose words a Searcher keeps
	maxIndexed         = 2_000_000 // messages of all of them, but for the scope that was searched last
	maxCompared        = 8_192     // messages that are compared by meaning, of the newest sessions
	maxComparedSession = 64        // sessions of them
	minDead            = 1_000     // removed messages that are kept until the index is made again
	maxAttempts        = 3         // to use stored words
	maxGeneration      = 1 << 40   // versions further apart are of different sessions with one id
)

// index has the words of the messages of a scope.
type index struct {
	memory *memory.Memory
	scope  Scope

	mu       sync.Mutex // guards what follows
	corpus   ranking.Corpus
	sessions map[string]*indexed
	names    []string // of sessions by number
	round    int      // of the last update
	unstored bool     // whether stored words are not used, as they can be neither read nor deleted
	problem  string   // why words could not be stored; empty for none

	size int // messages, guarded by the mutex of the Searcher
}

// indexed is how much of a session is in an index.
type indexed struct {
	number  int32
	version int64
	last    int64
	words   *segments.Index // stored words that were added; nil for none
	stored  int64           // position of the last message whose words are stored, or could not be
	rewound string
	edited  string
	deleted string
	round   int // of the last update that saw the session
}

// index returns the index of a scope, which becomes the one that was used last.
func (s *Searcher) index(scope Scope) *index {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.indexes[scope]
	if x == nil {
		x = &index{memory: s.memory, scope: scope, sessions: map[string]*indexed{}}
		s.indexes[scope] = x
	}
	s.order = append(slices.DeleteFunc(s.order, func(o *index) bool { return o == x }), x)
	return x
}

// shrink forgets the indexes that were not used for the longest time.
func (s *Searcher) shrink(used *index) {
	s.mu.Lock()
	defer s.mu.Unlock()
	used.size = used.corpus.Len()
	total := 0
	for _, x := range s.order {
		total += x.size
	}
	for len(s.order) > 1 && s.order[0] != used && (total > maxIndexed || len(s.order) > maxIndexes) {
		total -= s.order[0].size
		delete(s.indexes, s.order[0].scope)
		s.order = s.order[1:]
	}
}

// heads yields the sessions of the scope.
func (x *index) heads(ctx context.Context) iter.Seq2[memory.SessionHead, error] {
	switch x.scope.kind {
	case memory.AppScope:
		return x.memory.Heads(ctx, "")
	case memory.UserScope:
		return x.memory.Heads(ctx, memory.UserPrefix(x.scope.id))
	}
	return func(yield func(memory.SessionHead, error) bool) {
		session := x.memory.Conversation(x.scope.id)
		head, err := x.memory.Head(ctx, session)
		if err != nil || head.Version != 0 {
			yield(memory.SessionHead{Session: session, Head: head}, err)
		}
	}
}

// reset makes the index empty.
func (x *index) reset() {
	x.corpus, x.sessions, x.names = ranking.Corpus{}, map[string]*indexed{}, nil
}

// update brings the index up to date with the stored messages. It returns the heads of
// the sessions that are compared by meaning, the newest first.
func (x *index) update(ctx context.Context) ([]memory.SessionHead, error) {
	x.round++
	var newest []memory.SessionHead
	for l, err := range x.heads(ctx) {
		if err == nil {
			err = x.updateSession(ctx, l)
		}
		if err != nil {
			return nil, err
		}
		if newest = append(newest, l); len(newest) == 2*maxComparedSession {
			newest = newestSessions(newest)
		}
	}
	for name, known := range x.sessions {
		if known.round != x.round {
			x.remove(name, known)
		}
	}
	if x.corpus.Dead() > minDead && x.corpus.Dead() > x.corpus.Len() {
		x.reset()
		return x.update(ctx)
	}
	return newestSessions(newest), nil
}

// newestSessions returns the sessions with the newest messages, up to maxComparedSession.
func newestSessions(heads []memory.SessionHead) []memory.SessionHead {
	slices.SortFunc(heads, func(a, b memory.SessionHead) int {
		return cmp.Or(b.Head.State.LastSaid.Compare(a.Head.State.LastSaid), cmp.Compare(a.Session, b.Session))
	})
	return heads[:min(len(heads), maxComparedSession)]
}

func (x *index) remove(name string, known *indexed) {
	x.corpus.Remove(known.number, 0, known.last)
	delete(x.sessions, name)
}

// updateSession adds what a session has had since the last update.
func (x *index) updateSession(ctx context.Context, l memory.SessionHead) error {
	state := l.Head.State
	known := x.sessions[l.Session]
	if known != nil && (l.Head.Version < known.version || l.Head.Version-known.version > maxGeneration || state.Last < known.last ||
		state.Edited != known.edited || segments.Returned(known.deleted, state)) {
		x.remove(l.Session, known)
		known = nil
	}
	if known == nil {
		known = &indexed{number: int32(len(x.names)), edited: state.Edited}
		x.names = append(x.names, l.Session)
		x.sessions[l.Session] = known
	}
	known.round, known.deleted = x.round, state.Deleted
	if known.version == l.Head.Version {
		return nil
	}
	if err := x.useStored(ctx, l, known); err != nil {
		return err
	}
	if known.rewound != state.Rewound {
		x.removeRewound(known, state)
	}
	for e, err := range x.memory.Scan(ctx, l.Session, known.last+1, state.Last) {
		if err != nil {
			return err
		}
		if e.Seq <= known.last {
			continue
		}
		known.last = e.Seq
		if text := e.Message.Text(); isSearched(&e) && text != "" {
			x.corpus.Add(ranking.Document{Session: known.number, Seq: e.Seq, Time: e.Time, Name: e.Message.Name, Text: text})
		}
	}
	known.version = l.Head.Version
	return nil
}

// useStored stores the words of messages that are not stored, if they are many, and adds stored ones to the index of a session that
// has none yet.
func (x *index) useStored(ctx context.Context, l memory.SessionHead, known *indexed) error {
	if x.unstored || l.Head.State.Last-known.stored < segments.MinMessages {
		return nil
	}
	x.problem = ""
	if err := x.memory.StoreWords(ctx, l.Session); err != nil {
		if ctx.Err() != nil {
			return err
		}
		x.problem = "the index of words could not be stored, so that each process reads all messages: " + textfmt.OneLine(err.Error())
	}
	words, err := x.memory.Words(ctx, l)
	if err != nil {
		return err
	}
	known.stored = words.To()
	if x.problem != "" {
		known.stored = l.Head.State.Last
	}
	if known.last > 0 || words.To() == 0 {
		return nil
	}
	known.words, known.last = words, words.To()
	if err := words.AddTo(ctx, &x.corpus, known.number, 1, known.last, true); err != nil {
		if !segments.IsUnusable(err) { // else discard does so
			x.reset()
		}
		return err
	}
	if l.Head.State.Rewound != "" {
		x.removeRewound(known, l.Head.State)
	}
	return nil
}

// discard makes the index empty because stored words cannot be used, and deletes those of the session with the error if no other process
// has replaced them. If they cannot be deleted, or it was tried before, stored words are not used any more.
func (x *index) discard(ctx context.Context, unusable error, last bool) error {
	err := error(nil)
	if failed, ok := errors.AsType[*ranking.SegmentError](unusable); ok {
		if known := x.sessions[x.names[failed.Session]]; known != nil && known.number == failed.Session && known.words != nil {
			err = known.words.Discard(ctx)
		}
	}
	x.reset()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if x.unstored = err != nil || last; x.unstored {
		x.problem = "the stored index of words cannot be used, so that all messages are read: " + textfmt.OneLine(cmp.Or(err, unusable).Error())
	}
	return nil
}

func (x *index) removeRewound(known *indexed, state store.State) {
	gone := state.WasRewound()
	for _, at := range x.corpus.Session(known.number) {
		if gone(at.Seq) {
			x.corpus.Remove(known.number, at.Seq, at.Seq)
		}
	}
	known.rewound = state.Rewound
}

// similar returns the similarities of messages with a text.
func (x *index) similar(ctx context.Context, heads []memory.SessionHead, text string) ([]ranking.Similarity, string, error) {
	total := int64(0)
	for i, l := range heads {
		if total += l.Head.State.Last; total > maxCompared {
			heads = heads[:i+1]
			break
		}
	}
	all, problem, err := x.memory.Similar(ctx, heads, text)
	if err != nil {
		return nil, "", err
	}
	var list []ranking.Similarity
	for i, similar := range all {
		if len(similar) == 0 {
			continue
		}
		for doc, at := range x.corpus.Session(x.sessions[heads[i].Session].number) {
			if score, found := similar[at.ID()]; found {
				list = append(list, ranking.Similarity{Doc: doc, Score: score})
			}
		}
	}
	return list, problem, nil
}
