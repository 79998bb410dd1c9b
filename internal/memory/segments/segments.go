// Package segments stores the index of the words of long sessions, so that a new process does not read and index all
// of their messages for its first search.
//
// A segment has consecutive messages, in pieces of package ranking. Each piece is the values of a session of its own in a companion
// memory of the same store: every store keeps values as they are, and encrypting ones seal them. Another session of the companion lists
// the segments. It changes as a whole, on the condition that no other process has changed it; the pieces of a segment never change.
// It also names the generation of the session, and its edits and deletions: an index of a text that a user has deleted is not used.
package segments

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/qtype-dev/qtype/internal/memory/ranking"
	"github.com/qtype-dev/qtype/memory/store"
)

const (
	// MinMessages is the number of messages that are worth a segment: shorter sessions have none.
	MinMessages = 4_096

	maxBatch     = 1 << 17 // messages that are indexed at a time
	maxMerged    = 1 << 19 // messages of a segment that is merged of others
	valueBytes   = 16 << 10
	memorySuffix = "\x00words"
	valueName    = "words" // of a list
	// maxGeneration is the most changes of a session between its creation and its deletion.
	maxGeneration = 1 << 40
)

// ErrGone is returned when a piece is read of a segment that was deleted or merged with others: the index is to be opened again.
var ErrGone = errors.New("the stored index of words was replaced")

// StoredMemory returns the id under which a store has the segments of a memory.
func StoredMemory(id string) string { return id + memorySuffix }

// listKey is the key of the list of the segments of a session. No key of a piece ends like it.
func listKey(key store.Key) store.Key {
	return store.Key{Memory: StoredMemory(key.Memory), Session: key.Session + "\x00"}
}

// The digits that end the key of a piece.
const (
	idDigits    = 16
	pieceDigits = idDigits + 6
)

func pieceKey(key store.Key, id string, number int) store.Key {
	return store.Key{Memory: StoredMemory(key.Memory), Session: fmt.Sprintf("%s\x00%s%06x", key.Session, id, number)}
}

// list is the stored list of segments.
type list struct {
	Generation int64  `json:"life"` // version of the session when the first segment was written
	Form       int    `json:"form"` // ranking.SegmentForm
	Edited     string `json:"edited,omitempty"`
	Deleted    string `json:"deleted,omitempty"` // as in the state of the session

	Segments []part `json:"segments"` // in the order of their messages
}

// part describes a segment.
type part struct {
	ID     string `json:"id"`
	From   int64  `json:"from"`
	To     int64  `json:"to"` // positions of messages
	Pieces int    `json:"pieces"`
	Docs   int    `json:"docs"` // passages
}

func (p part) messages() int64 { return p.To - p.From + 1 }

// Index is the stored index of a session, as it was opened. It is safe for concurrent use.
type Index struct {
	store   store.Store
	key     store.Key
	version int64 // of the list; 0 if there is none
	list    list
}

// Open returns the stored index of a session; an empty one for a session that is short or has none. An index of what the session is no
// longer is deleted.
func Open(ctx context.Context, s store.Store, key store.Key, head store.Head) (*Index, error) {
	empty := &Index{store: s, key: key, list: list{Generation: head.Version, Form: ranking.SegmentForm, Edited: head.State.Edited, Deleted: head.State.Deleted}}
	if head.State.Last < MinMessages {
		return empty, nil
	}
	stored, err := s.Head(ctx, listKey(key))
	if isCorrupt(err) {
		_ = Delete(ctx, s, key) // what may only be read is not used either
		return empty, nil
	}
	if err != nil || stored.Version == 0 {
		return empty, err
	}
	x := &Index{store: s, key: key, version: stored.Version}
	readable := json.Unmarshal(stored.Values[valueName], &x.list) == nil && x.list.isValid()
	if readable && x.covers(head) {
		return x, nil
	}
	if head, err = s.Head(ctx, key); err != nil || readable && x.covers(head) { // the index is newer than the head
		return empty, err
	}
	if isSealed := !readable && len(stored.Values) > 1; !isSealed { // else the store is encrypted, and so are the messages, for which there is no key
		_ = x.Discard(ctx) // see above
	}
	return empty, nil
}

// Discard deletes the stored index, if no other process has changed it.
func (x *Index) Discard(ctx context.Context) error {
	if x.version == 0 {
		return nil
	}
	if err := store.Remove(ctx, x.store, listKey(x.key), x.version); err != nil {
		if errors.Is(err, store.ErrConflict) {
			return nil
		}
		return err
	}
	return deletePieces(ctx, x.store, x.key, func(string) bool { return true })
}

// isValid reports whether a list may be one that this package wrote: segments follow each other, and do not have more than their messages.
func (l *list) isValid() bool {
	to := int64(0)
	for _, p := range l.Segments {
		if p.From != to+1 || p.To < p.From || p.Docs < 0 || int64(p.Docs) > p.messages()*ranking.MaxPassages {
			return false
		}
		to = p.To
	}
	return true
}

// covers reports whether the index is one of a session that has a head.
func (x *Index) covers(head store.Head) bool {
	l := &x.list
	return head.Version >= l.Generation && head.Version-l.Generation < maxGeneration && l.Form == ranking.SegmentForm &&
		l.Edited == head.State.Edited && l.Deleted == head.State.Deleted && x.To() <= head.State.Last
}

// Returned reports whether messages are in a session that were deleted before: their deletion was rewound.
func Returned(deleted string, now store.State) bool {
	if deleted == "" || deleted == now.Deleted {
		return false
	}
	before, _ := store.ParseRanges(deleted) // checked when the session was read
	still, _ := store.ParseRanges(now.Deleted)
	return len(before.Except(still)) > 0
}

// To returns the position of the last message that the index has, 0 for none.
func (x *Index) To() int64 {
	if n := len(x.list.Segments); n > 0 {
		return x.list.Segments[n-1].To
	}
	return 0
}

// Len returns the number of segments.
func (x *Index) Len() int { return len(x.list.Segments) }

// AddTo adds the messages from a position to another one to a corpus; without aside, no calls and results of tools. After an error the corpus is
// not to be used.
func (x *Index) AddTo(ctx context.Context, c *ranking.Corpus, session int32, from, to int64, aside bool) error {
	docs := 0
	for _, p := range x.list.Segments {
		docs += p.Docs
	}
	c.Reserve(docs)
	for _, p := range x.list.Segments {
		if p.To < from || p.From > to || p.Pieces == 0 {
			continue
		}
		if err := c.AddSegment(ctx, session, x.pieces(p), from, to, aside); err != nil {
			return err
		}
	}
	return nil
}

// pieces returns what reads the pieces of a segment.
func (x *Index) pieces(p part) ranking.Pieces {
	return func(ctx context.Context, number int) ([]byte, error) {
		if number >= p.Pieces {
			return nil, ranking.ErrDamaged
		}
		head, err := x.store.Head(ctx, pieceKey(x.key, p.ID, number))
		if isCorrupt(err) {
			return nil, fmt.Errorf("%w: %w", ranking.ErrDamaged, err)
		}
		if err != nil {
			return nil, err
		}
		if len(head.Values) == 0 {
			return nil, ErrGone
		}
		return join(head.Values), nil
	}
}

// split returns the values that have a piece, which are small: SQLite compares whole values when it looks for one.
func split(piece []byte) map[string][]byte {
	values := map[string][]byte{}
	for chunk := range slices.Chunk(piece, valueBytes) {
		values[fmt.Sprintf("%06x", len(values))] = chunk
	}
	return values
}

// join is the reverse of split.
func join(values map[string][]byte) []byte {
	var b []byte
	for _, name := range slices.Sorted(maps.Keys(values)) {
		b = append(slices.Grow(b, len(values)*valueBytes-len(b)), values[name]...)
	}
	return b
}

// IsUnusable reports whether an error is one of the stored index: it is to be opened again, or discarded.
func IsUnusable(err error) bool { return errors.Is(err, ErrGone) || errors.Is(err, ranking.ErrDamaged) }

// isCorrupt reports whether an error is one of what is stored, such as a modified value of an encrypted store.
func isCorrupt(err error) bool {
	failed, ok := errors.AsType[*store.Error](err)
	return ok && failed.Problem == store.Corrupt
}

// newID returns the id of a segment.
func newID() string { return fmt.Sprintf("%0*x", idDigits, rand.Uint64()) }

// write stores values in a session.
func write(ctx context.Context, s store.Store, key store.Key, version int64, values map[string][]byte, now time.Time) error {
	return s.Apply(ctx, key, store.Change{Version: version, Next: store.NextVersion(version), State: store.State{LastSaid: now}, Values: values})
}
