package memory

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/internal/memory/change"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// SetIdempotencyKey names what this turn does, so that a retry is recognized. It
// reports whether the session has committed a turn with this key already: then
// Commit stores nothing. A session remembers its newest 64 keys.
func (t *Turn) SetIdempotencyKey(key string) (done bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.setIdempotencyKey(key)
}

// setIdempotencyKey is SetIdempotencyKey for a caller that has locked the turn.
func (t *Turn) setIdempotencyKey(key string) (done bool) {
	t.operation = key
	t.done = change.OperationOf(t.base.Values, key) != ""
	return t.done
}

// SetNote adds a note to the idempotency key that Commit stores, for Prior. It must have no spaces.
func (t *Turn) SetNote(note string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.note = note
}

// Prior returns how often messages left the window in an earlier turn with the same idempotency key, and its note. They are
// zero if there was no such turn, or if it is not among the newest ones of the session.
func (t *Turn) Prior() (flushes int, note string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, noted, _ := strings.Cut(change.OperationOf(t.base.Values, t.operation), ";")
	count, note, _ := strings.Cut(noted, ";")
	flushes, _ = strconv.Atoi(count) // none without a note
	return flushes, note
}

// PriorMessages returns the messages that an earlier turn with the same
// idempotency key added, in order; none if there was no such turn, or if a
// version of this package committed it that did not record them.
func (t *Turn) PriorMessages(ctx context.Context) ([]chat.Message, error) {
	t.mu.Lock()
	record := change.OperationOf(t.base.Values, t.operation)
	t.mu.Unlock()
	_, positions, _ := strings.Cut(record, "@")
	q := store.Query{Live: true}
	if _, err := fmt.Sscanf(positions, "%d-%d", &q.From, &q.To); err != nil || q.From > q.To {
		return nil, nil
	}
	var msgs []chat.Message
	for e, err := range t.memory.reader.Store.Entries(ctx, t.key, q) {
		if err != nil {
			return nil, err
		}
		msgs = append(msgs, e.Message)
	}
	return msgs, nil
}
