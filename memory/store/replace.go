package store

import (
	"context"

	"github.com/qtype-dev/qtype/spec/chat"
)

// Replacer is implemented by stores that can replace stored records in place. The
// re-encryption of package internal/memory/encrypted needs it.
type Replacer interface {
	// Replace makes one replacement, as a whole or not at all, if the session's version is
	// r.Version; otherwise it returns ErrConflict and changes nothing. It promises what
	// Apply promises about durability and errors.
	Replace(ctx context.Context, key Key, r Replacement) error
}

// Replacement is what one Replace does to a session. What it does not name stays.
type Replacement struct {
	Version  int64                  // the version that the session must have, not 0
	Next     int64                  // the version that it has afterwards; Version for messages alone, so that no writer has to read the session again
	Messages map[int64]chat.Message // new messages by position; each has the id of the message that it replaces
	Events   map[int64]Event        // new events by index, from 0
	Values   map[string][]byte      // set, as by a Change
}
