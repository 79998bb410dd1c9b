package promptcontext

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/qtype-dev/qtype/internal/memory/segments"
	"github.com/qtype-dev/qtype/internal/vectors"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// The vectors of a session are the blocks of a companion session in the same
// store, so that every store can keep them, and reading the head of a session
// does not read its vectors.
//
// The head of the companion records how far the vectors reach, and changes together
// with them: whichever process is faster, no message is embedded twice or
// skipped. It also names the generation of the session that the vectors belong
// to, because the two sessions are not deleted in one step.

// companionSuffix ends the memory's id in the key of a companion. No document
// can declare such an id.
const companionSuffix = "\x00vectors"

// metaValue is the value of a companion that describes its content.
const metaValue = "vectors"

const (
	maxMessages    = 8_192 // the newest ones of a session, which are compared by their vectors, and searched if no words are stored
	maxVectors     = 2 * maxMessages
	maxCachedBytes = 64 << 20 // of the vectors that one memory caches
	// maxChangesPerGeneration is the most changes of a session between its creation
	// and deletion: a version further away belongs to another generation, which
	// begins at a random number.
	maxChangesPerGeneration = 1 << 40
)

// StoredMemories returns the ids under which a store has what belongs to a memory: its
// sessions, and what a context stores apart from them.
func StoredMemories(id string) []string {
	return []string{id, id + companionSuffix, segments.StoredMemory(id)}
}

func companionOf(key memory.Key) memory.Key {
	return memory.Key{Memory: key.Memory + companionSuffix, Session: key.Session}
}

// sessionVectors is the content of a companion. It is immutable once it is published; vectors may be added after its own.
type sessionVectors struct {
	extended atomic.Bool // the memory after its vectors is used
	version  int64       // of the companion; 0 if there is none
	last     int64       // position of its newest entry
	meta     vectorMeta
	vectors  vectors.Vectors
}

// extend returns the vectors, to which others may be added.
func (v *sessionVectors) extend() vectors.Vectors {
	if v.extended.Swap(true) {
		return v.vectors.Newest(2 * maxVectors) // a copy
	}
	return v.vectors
}

// vectorMeta is the stored description of a companion's content.
type vectorMeta struct {
	Generation int64  `json:"life"`             // the session's version when the companion was created
	Model      string `json:"model"`            // the embedding model
	Form       int    `json:"form"`             // vectorForm when the companion was created
	To         int64  `json:"to"`               // position of the newest message that was processed
	Edited     int64  `json:"edited,omitempty"` // position of the newest text of an edited message that was processed
}

// vectorForm changes when vectors belong to other parts of messages than before.
const vectorForm = 2

// covers reports whether a session of this version is of the same generation.
func (m vectorMeta) covers(version int64) bool {
	return version >= m.Generation && version-m.Generation < maxChangesPerGeneration
}

// vectorCache has the vectors that were used last, within maxCachedBytes.
type vectorCache struct {
	mu    sync.Mutex
	byKey map[memory.Key]*sessionVectors
	order []memory.Key // least recently used first
}

func (c *vectorCache) get(key memory.Key) *sessionVectors {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byKey[key]
}

func (c *vectorCache) put(key memory.Key, v *sessionVectors) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byKey == nil {
		c.byKey = map[memory.Key]*sessionVectors{}
	}
	c.byKey[key] = v
	c.order = append(slices.DeleteFunc(c.order, func(k memory.Key) bool { return k == key }), key)
	total := 0
	for _, k := range c.order {
		total += c.byKey[k].vectors.Bytes()
	}
	for total > maxCachedBytes && len(c.order) > 1 {
		total -= c.byKey[c.order[0]].vectors.Bytes()
		delete(c.byKey, c.order[0])
		c.order = c.order[1:]
	}
}

func (c *vectorCache) drop(key memory.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.byKey, key)
	c.order = slices.DeleteFunc(c.order, func(k memory.Key) bool { return k == key })
}

// embedderError reports that the embedding model cannot be used.
type embedderError struct{ error }

// Unwrap returns the cause.
func (e *embedderError) Unwrap() error { return e.error }

// embedded is a session whose messages get vectors.
type embedded struct {
	key     memory.Key
	version int64
	edits   store.Edits                                // of the session
	pending func(after int64) (evictedMessages, error) // the messages after a position
}

// own is the session of the turn: its messages get vectors when they leave the window.
func (t *turnContext) own() embedded {
	return embedded{t.session.Key(), t.session.Head().Version, t.session.Head().State.Edits(), func(after int64) (evictedMessages, error) {
		return t.pending(after, embedBatchTokens)
	}}
}

// other is another session of the user, all of whose messages get vectors.
func (t *turnContext) other(l memory.SessionHead) embedded {
	key := memory.Key{Memory: t.session.Key().Memory, Session: l.Session}
	return embedded{key, l.Head.Version, l.Head.State.Edits(), func(after int64) (evictedMessages, error) {
		return readBatch(t.session.EntriesOf(l, after+1), after+1, embedBatchTokens)
	}}
}

// whole is a session whose newest messages get vectors: older ones would not be kept.
func (t *turnContext) whole(l memory.SessionHead) embedded {
	of := t.other(l)
	pending, oldest := of.pending, l.Head.State.Last-maxMessages
	of.pending = func(after int64) (evictedMessages, error) { return pending(max(after, oldest)) }
	return of
}

// loadVectors reads the content of the session's companion that is not cached.
// A companion of an earlier generation, another model or another form is deleted.
func (t *turnContext) loadVectors(of embedded) (*sessionVectors, error) {
	ctx, backend, key := t.session.Context(), t.session.Store(), of.key
	cache := &t.source.vectors
	companion := companionOf(key)
	head, err := backend.Head(ctx, companion)
	if err != nil {
		return nil, err
	}
	cached := cache.get(key)
	if cached != nil && cached.version == head.Version && cached.meta.covers(of.version) {
		return cached, nil
	}
	name, err := t.source.retrieval.Embedder.Name()
	if err != nil {
		return nil, &embedderError{err}
	}
	empty := &sessionVectors{meta: vectorMeta{Generation: of.version, Model: name, Form: vectorForm}}
	if head.Version == 0 {
		return empty, nil
	}
	next := &sessionVectors{version: head.Version, last: head.State.Last}
	if json.Unmarshal(head.Values[metaValue], &next.meta) != nil || !next.meta.covers(of.version) || next.meta.Model != name || next.meta.Form != vectorForm {
		cache.drop(key)
		return empty, store.Remove(ctx, backend, companion, head.Version)
	}
	from := int64(1)
	if cached != nil && cached.meta.Generation == next.meta.Generation && cached.version < next.version && next.version-cached.version < maxChangesPerGeneration {
		next.vectors, from = cached.extend(), cached.last+1
	}
	for e, err := range backend.Entries(ctx, companion, store.Query{From: from, To: next.last}) {
		if err != nil {
			return nil, err
		}
		for _, b := range e.Message.Blocks {
			if err := next.vectors.AddBinary(b.Data); err != nil {
				return nil, fmt.Errorf("memory %s, session %q: %w", key.Memory, key.Session, err)
			}
		}
		if next.vectors.Len() > 2*maxVectors {
			next.vectors = next.vectors.Newest(maxVectors)
		}
	}
	cache.put(key, next)
	return next, nil
}

// addVectors adds vectors to the session's companion. If the session was cleared
// in the meantime the companion is deleted.
func (t *turnContext) addVectors(of embedded, stored *sessionVectors, b vectorBatch) error {
	ctx, backend, key := t.session.Context(), t.session.Store(), of.key
	meta := stored.meta
	meta.To, meta.Edited = b.to, max(meta.Edited, b.edited)
	raw, err := json.Marshal(meta)
	if err != nil {
		return err
	}
	now := t.session.Now()
	last := stored.last
	c := store.Change{Version: stored.version, Next: store.NextVersion(stored.version), Values: map[string][]byte{metaValue: raw}}
	if b.vectors.Len() > 0 {
		data, err := b.vectors.AppendBinary(nil)
		if err != nil {
			return err
		}
		last++
		c.Entries = []*memory.Entry{{Message: chat.Message{ID: chat.NewID(), Role: chat.Assistant, Blocks: []chat.Block{{Type: "bytes", Data: data}}},
			Seq: last, Turn: last, Time: now}}
	}
	c.State = store.State{Last: last, Turns: last, First: last + 1, LastSaid: now}
	if err := backend.Apply(ctx, companionOf(key), c); err != nil {
		return err
	}
	head, err := backend.Head(ctx, key)
	if err == nil && !meta.covers(head.Version) {
		t.source.vectors.drop(key)
		err = backend.Delete(ctx, companionOf(key))
	}
	return err
}

// Delete deletes the session's companion.
func (c *source) Delete(ctx context.Context, store memory.Store, key memory.Key) error {
	if c.retrieval == nil {
		return nil
	}
	c.vectors.drop(key)
	c.words.drop(key)
	return store.Delete(ctx, companionOf(key))
}

// Prune deletes companions without a session, which a process left that died
// while another one deleted the session.
func (c *source) Prune(ctx context.Context, store memory.Store, id string) error {
	if c.retrieval == nil {
		return nil
	}
	var orphans []memory.Key
	for l, err := range store.Sessions(ctx, id+companionSuffix) {
		if err != nil {
			return err
		}
		key := memory.Key{Memory: id, Session: l.Session}
		head, err := store.Head(ctx, key)
		if err != nil {
			return fmt.Errorf("memory %s, session %q: %w", id, l.Session, err)
		}
		if head.Version == 0 {
			orphans = append(orphans, companionOf(key))
		}
	}
	for _, key := range orphans {
		if err := store.Delete(ctx, key); err != nil {
			return err
		}
	}
	return nil
}
