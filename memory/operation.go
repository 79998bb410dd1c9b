package memory

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/chat"
)

const (
	operations    = "operations" // the value that names a session's newest operations
	maxOperations = 64           // how many are remembered: a retry comes soon or not at all
)

// Operation names what this turn does, so that a retry of it is known: it tells
// whether the session has carried out the operation already. Then Commit keeps
// nothing. A session remembers its newest 64 operations.
func (t *Turn) Operation(id string) (done bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.operation = id
	t.done = t.base.carriedOut(id)
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
	if t.Operation(operation) {
		return nil
	}
	if err := t.Add(msgs...); err != nil {
		return err
	}
	return t.commit(ctx, true)
}

// mark is an operation's id in a form of one short length.
func mark(operation string) string {
	sum := sha256.Sum256([]byte(operation))
	return hex.EncodeToString(sum[:8])
}

func (v *view) carriedOut(operation string) bool {
	return operation != "" && slices.Contains(strings.Fields(string(v.values[operations])), mark(operation))
}

// remember adds an operation to those that the session has carried out.
func (s *step) remember(operation string) {
	if operation == "" {
		return
	}
	all := append(strings.Fields(string(s.next.values[operations])), mark(operation))
	all = all[max(len(all)-maxOperations, 0):]
	s.set(operations, []byte(strings.Join(all, " ")))
}
