package memory

import (
	"context"
	"iter"

	"github.com/qtype-dev/qtype/internal/memory/change"
	"github.com/qtype-dev/qtype/internal/memory/history"
	"github.com/qtype-dev/qtype/memory/store"
)

// Snapshot is a session as it was at one moment: nothing of a turn that another process
// commits later is part of it.
type Snapshot struct {
	Head    store.Head // the zero Head for an unknown or expired session
	memory  *Memory
	session string
}

// Snapshot returns a session as it is now.
func (m *Memory) Snapshot(ctx context.Context, session string) (*Snapshot, error) {
	if err := m.record(ctx, AuditRecord{Operation: AuditRead, Session: m.Conversation(session)}); err != nil {
		return nil, err
	}
	head, err := m.Head(ctx, session)
	if err != nil {
		return nil, err
	}
	return &Snapshot{Head: head, memory: m, session: session}, nil
}

// History yields all messages in order, and reads them while the range continues.
func (s *Snapshot) History(ctx context.Context) iter.Seq2[store.Entry, error] {
	if s.Head.State.Last == 0 {
		return func(func(store.Entry, error) bool) {}
	}
	scan := &history.Scan{Reader: &s.memory.reader, Key: s.memory.key(s.session), Session: s.session, Head: s.Head}
	return scan.Range(ctx, 1, 0)
}

// Events yields the events in order, and reads them while the range continues.
func (s *Snapshot) Events(ctx context.Context) iter.Seq2[store.Event, error] {
	return func(yield func(store.Event, error) bool) {
		for e, err := range s.memory.Events(ctx, s.session) {
			if isLater := e.Turn > s.Head.State.Turns && !e.Kind.IsEarly(); err == nil && (isLater || e.To > s.Head.State.Last) {
				return // of a later turn, as are those after it
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// Variables returns the variables by name.
func (s *Snapshot) Variables() []change.Variable {
	return change.SortedByName(change.VariablesOf(s.Head.Values))
}

// ContextValues returns the values, as JSON, that the context has in addition to the messages and
// that a transcript has too, such as facts.
func (s *Snapshot) ContextValues() map[string][]byte {
	if portable, ok := s.memory.context.(PortableContext); ok {
		return portable.Portable(s.Head)
	}
	return nil
}
