package memory

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/qtype-dev/qtype/spec/chat"
)

const (
	idempotencyValue   = "operations" // the value that names a session's newest operations
	maxIdempotencyKeys = 64           // how many are remembered: a retry comes soon or not at all
)

// SetIdempotencyKey names what this turn does, so that a retry of it is known: it tells
// whether the session has carried out the operation already. Then Commit keeps
// nothing. A session remembers its newest 64 operations.
func (t *Turn) SetIdempotencyKey(id string) (done bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.operation = id
	t.done = t.base.isApplied(id)
	return t.done
}

// AppendOnce is Append for a caller that may have to try again: what it says
// under an operation's id is said once, however often it is called.
func (m *Memory) AppendOnce(ctx context.Context, session, operation string, msgs ...chat.Message) error {
	t, err := m.open(ctx, session, m.cached)
	if err != nil {
		return err
	}
	defer t.drop()
	if t.SetIdempotencyKey(operation) {
		return nil
	}
	if err := t.Add(msgs...); err != nil {
		return err
	}
	return t.commit(ctx, true)
}

// hashKey is an operation's id in a form of one short length.
func hashKey(operation string) string {
	sum := sha256.Sum256([]byte(operation))
	return hex.EncodeToString(sum[:8])
}

func (v *view) isApplied(operation string) bool { return operation != "" && v.record(operation) != "" }

// record is what the session remembers of an operation, mark or mark@from-to with
// the places of what it said; empty where it remembers none.
func (v *view) record(operation string) string {
	m := hashKey(operation)
	for _, record := range strings.Fields(string(v.values[idempotencyValue])) {
		if name, _, _ := strings.Cut(record, "@"); name == m {
			return record
		}
	}
	return ""
}

// PriorMessages is what the turn's operation said when it was carried out, in order; nothing
// where it was not, or where an earlier version of this package carried it out.
func (t *Turn) PriorMessages(ctx context.Context) ([]chat.Message, error) {
	t.mu.Lock()
	base, operation := t.base, t.operation
	t.mu.Unlock()
	if !base.isApplied(operation) {
		return nil, nil
	}
	_, places, _ := strings.Cut(base.record(operation), "@")
	var q Query
	if _, err := fmt.Sscanf(places, "%d-%d", &q.From, &q.To); err != nil || q.From > q.To {
		return nil, nil // it said nothing, or its places were not kept
	}
	q.Live = true
	var said []chat.Message
	for e, err := range t.memory.store.Entries(ctx, t.key, q) {
		if err != nil {
			return nil, err
		}
		said = append(said, e.Message)
	}
	return said, nil
}

// remember adds an operation to those that the session has carried out.
func (s *transition) remember(operation string) {
	if operation == "" {
		return
	}
	record, last := hashKey(operation), s.change.State.Last
	if n := len(s.change.Entries); n > 0 {
		record = fmt.Sprintf("%s@%d-%d", record, last-int64(n)+1, last)
	}
	all := append(strings.Fields(string(s.next.values[idempotencyValue])), record)
	all = all[max(len(all)-maxIdempotencyKeys, 0):]
	s.setValue(idempotencyValue, []byte(strings.Join(all, " ")))
}
