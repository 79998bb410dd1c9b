package memory

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/vectors"
	"github.com/qtype-dev/qtype/spec/chat"
)

// The vectors of a session's flushed messages are kept in the memory's own
// store, as the blocks of a companion session: so every store can keep them, one
// of a user's own too, and reading a session's head never reads its vectors.
//
// The companion has a head and a version of its own. Its head says how far the
// vectors reach, and moves in the same change in which they are added: no
// message is embedded twice or skipped, whoever is faster. It also says of which
// life of the session they are, because the two are not deleted in one step.

// vectorSessionSuffix ends the memory's id in a companion's key. No document can
// declare such an id.
const vectorSessionSuffix = "\x00vectors"

// vectorMetaKey names the value of a companion that says what it holds.
const vectorMetaKey = "vectors"

const (
	maxVectors           = 8_192    // that are searched in a session: the newest ones
	maxCachedVectorBytes = 64 << 20 // that one memory keeps at hand
	// maxChangesPerGeneration is how many changes one life of a session has at most: a version
	// further away is another life's, which begins at a random number.
	maxChangesPerGeneration = 1 << 40
)

func vectorSession(key Key) Key {
	return Key{Memory: key.Memory + vectorSessionSuffix, Session: key.Session}
}

// sessionVectors is what a companion holds. It never changes once it is published.
type sessionVectors struct {
	version int64 // of the companion; 0: there is none
	last    int64 // its newest entry
	about   vectorMeta
	vectors vectors.Vectors
}

// vectorMeta is what a companion's head says.
type vectorMeta struct {
	Life  int64  `json:"life"`  // a version that the session had when the companion was begun
	Model string `json:"model"` // what made the vectors
	To    int64  `json:"to"`    // the newest message that was looked at
}

// vectorCache keep the shelves that were used last, within maxCachedVectorBytes.
type vectorCache struct {
	mu    sync.Mutex
	byKey map[Key]*sessionVectors
	order []Key // the one that was used last at the end
}

func (s *vectorCache) get(key Key) *sessionVectors {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byKey[key]
}

func (s *vectorCache) put(key Key, one *sessionVectors) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byKey == nil {
		s.byKey = map[Key]*sessionVectors{}
	}
	s.byKey[key] = one
	s.order = append(slices.DeleteFunc(s.order, func(k Key) bool { return k == key }), key)
	total := 0
	for _, k := range slices.Backward(s.order) {
		total += s.byKey[k].vectors.Bytes()
	}
	for total > maxCachedVectorBytes && len(s.order) > 1 {
		total -= s.byKey[s.order[0]].vectors.Bytes()
		delete(s.byKey, s.order[0])
		s.order = s.order[1:]
	}
}

func (s *vectorCache) drop(key Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byKey, key)
	s.order = slices.DeleteFunc(s.order, func(k Key) bool { return k == key })
}

// loadVectors reads what a session's companion holds, as far as it is not at hand. One
// of an earlier life of the session, or of another model, is deleted.
func (m *Memory) loadVectors(ctx context.Context, key Key, base *view) (*sessionVectors, error) {
	at := vectorSession(key)
	head, err := m.store.Head(ctx, at)
	if err != nil {
		return nil, err
	}
	s := m.context.shelves.get(key)
	if s != nil && s.version == head.Version && s.about.sameGeneration(base.version) {
		return s, nil
	}
	name, err := m.context.retrieval.Embedder.Name()
	if err != nil {
		return nil, &embedderError{err}
	}
	begun := vectorMeta{Life: base.version, Model: name}
	if head.Version == 0 {
		return &sessionVectors{about: begun}, nil
	}
	next := &sessionVectors{version: head.Version, last: head.State.Last}
	if json.Unmarshal(head.Values[vectorMetaKey], &next.about) != nil || !next.about.sameGeneration(base.version) || next.about.Model != begun.Model {
		m.context.shelves.drop(key)
		err := Remove(ctx, m.store, at, head.Version)
		return &sessionVectors{about: begun}, err
	}
	from := int64(1)
	if s != nil && s.about.Life == next.about.Life && s.version < next.version && next.version-s.version < maxChangesPerGeneration {
		next.vectors, from = s.vectors, s.last+1 // only the session's turn writes behind its end
	}
	for e, err := range m.store.Entries(ctx, at, Query{From: from, To: next.last}) {
		if err != nil {
			return nil, err
		}
		for _, b := range e.Message.Blocks {
			if err := next.vectors.AddBinary(b.Data); err != nil {
				return nil, fmt.Errorf("memory %s, session %q: %w", m.id, key.Session, err)
			}
		}
		if next.vectors.Len() > 2*maxVectors {
			next.vectors = next.vectors.Newest(maxVectors)
		}
	}
	m.context.shelves.put(key, next)
	return next, nil
}

// embedderError says that the embedding model cannot be asked at all.
type embedderError struct{ error }

// Unwrap is the reason.
func (e *embedderError) Unwrap() error { return e.error }

// sameGeneration tells whether a session of this version is the one that the vectors are of.
func (a vectorMeta) sameGeneration(version int64) bool {
	return version >= a.Life && version-a.Life < maxChangesPerGeneration
}

// addVectors adds vectors to a session's companion. Where the session was
// cleared meanwhile, they go as well.
func (m *Memory) addVectors(ctx context.Context, key Key, s *sessionVectors, b vectorBatch) error {
	at := vectorSession(key)
	about := s.about
	about.To = b.to
	raw, err := json.Marshal(about)
	if err != nil {
		return err
	}
	now := time.UnixMicro(m.now().UnixMicro()).UTC()
	c := Change{Version: s.version, Next: nextVersion(s.version), Values: map[string][]byte{vectorMetaKey: raw},
		State: State{Last: s.last, First: s.last + 1, Turns: s.last, LastSaid: now}}
	if b.vectors.Len() > 0 {
		data, err := b.vectors.AppendBinary(nil)
		if err != nil {
			return err
		}
		c.State.Last, c.State.Turns, c.State.First = s.last+1, s.last+1, s.last+2
		c.Entries = []*Entry{{Message: chat.Message{ID: chat.NewID(), Role: chat.Assistant, Blocks: []chat.Block{{Type: "bytes", Data: data}}},
			Seq: c.State.Last, Turn: c.State.Turns, Time: now}}
	}
	if err := m.store.Apply(ctx, at, c); err != nil {
		return err
	}
	head, err := m.store.Head(ctx, key)
	if err == nil && !about.sameGeneration(head.Version) {
		m.context.shelves.drop(key)
		err = m.store.Delete(ctx, at)
	}
	return err
}

// deleteVectors deletes what a session has beside itself. It comes before the session
// is deleted, so that a call that dies in between can be made again.
func (m *Memory) deleteVectors(ctx context.Context, key Key) error {
	if m.context == nil || m.context.retrieval == nil {
		return nil
	}
	m.context.shelves.drop(key)
	return m.store.Delete(ctx, vectorSession(key))
}
