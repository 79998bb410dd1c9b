package memory

import (
	"context"
	"fmt"

	"github.com/qtype-dev/qtype/spec/chat"
)

// Replacer is implemented by stores that can replace stored records in place. The
// re-encryption of package memory/encrypted needs it.
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

// errNoSuchRecord is the cause of an error about a record that a Replacement names.
func errNoSuchRecord(kind string, n int64) error {
	return fmt.Errorf("%s %d to be replaced does not exist", kind, n)
}

// Replace replaces records. Readers have the old or the new ones.
func (p *inProcess) Replace(ctx context.Context, key Key, r Replacement) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s := p.find(key)
	if s == nil {
		return ErrConflict
	}
	defer s.mu.Unlock()
	if s.head.Version != r.Version {
		return ErrConflict
	}
	var events eventLog
	n := int64(0)
	for e := range s.events.all {
		if replaced, ok := r.Events[n]; ok {
			e = replaced
		}
		events.add(&e)
		n++
	}
	for i := range r.Events {
		if i < 0 || i >= n {
			return errNoSuchRecord("event", i)
		}
	}
	for seq, m := range r.Messages {
		if seq < 1 || seq > int64(len(s.entries)) || s.entries[seq-1].Message.ID != m.ID {
			return errNoSuchRecord("message", seq)
		}
	}
	for seq, m := range r.Messages {
		e := *s.entries[seq-1]
		e.Message = m
		s.entries[seq-1] = &e
	}
	s.events, s.head.Version, s.head.Values = events, r.Next, merge(s.head.Values, r.Values)
	return nil
}
