package memory

import (
	"context"
	"errors"
	"fmt"

	"github.com/qtype-dev/qtype/internal/memory/change"
	"github.com/qtype-dev/qtype/internal/memory/window"
	"github.com/qtype-dev/qtype/memory/store"
)

// TurnError reports a turn that a session does not have.
type TurnError struct {
	Memory  string // the memory's id
	Session string // the session's id
	Turn    int64  // the turn that was named
	Last    int64  // the newest turn; 0 if there is none
}

// Error names the turns that exist.
func (e *TurnError) Error() string {
	if e.Last == 0 {
		return fmt.Sprintf("memory %s: session %q has no turns yet", e.Memory, e.Session)
	}
	return fmt.Sprintf("memory %s: session %q has no turn %d: its turns are 1 to %d", e.Memory, e.Session, e.Turn, e.Last)
}

// Rewind undoes a turn and all later ones, so that the session continues from the turn
// before: to edit a message and send it again, or to get another answer. Window and
// variables become what they were after the turn before. The messages stay in the
// history, with the status Rewound, and are neither summarized nor retrieved; a summary
// that has some of them is dropped, and written again by the next turn. Rewind counts as
// a turn and waits while another one is active. It returns a *TurnError for an unknown
// turn.
func (m *Memory) Rewind(ctx context.Context, session string, turn int64) error {
	return m.rewind(ctx, session, turn, false)
}

// Regenerate undoes a turn and all later ones like Rewind, so that its question can be
// asked again. Edits and deletions of earlier messages stay, though they were made later.
func (m *Memory) Regenerate(ctx context.Context, session string, turn int64) error {
	return m.rewind(ctx, session, turn, true)
}

func (m *Memory) rewind(ctx context.Context, session string, turn int64, keep bool) error {
	t, err := m.open(ctx, session, true)
	if err != nil {
		return err
	}
	defer t.close()
	if err := m.record(ctx, AuditRecord{Operation: AuditRewind, Session: t.key.Session, FromTurn: turn}); err != nil {
		return err
	}
	return t.apply(ctx, func(base *window.View, n *change.Transition) (bool, error) {
		if turn < 1 || turn > base.State.Turns {
			return false, &TurnError{Memory: m.id, Session: session, Turn: turn, Last: base.State.Turns}
		}
		event, err := m.reader.RewindEvent(ctx, t.key, base, turn)
		if err != nil {
			return false, err
		}
		l, err := m.reader.Timeline(ctx, t.key, base.State.Turns)
		if err != nil {
			return false, err
		}
		event.Revised = keep
		if undone := l.Rewind(turn, store.Range{From: event.From, To: event.To}, keep); !undone && event.Messages == 0 {
			return false, nil
		}
		kept := base.State.Last
		if event.From > 0 {
			kept = event.From - 1
		}
		past, err := m.reader.Restore(ctx, t.policy, base, l, t.key, base.State.Last, kept)
		if err != nil {
			return false, err
		}
		from := event.From
		if revised := change.FirstRevised(base.State, past.State); revised > 0 && (from == 0 || revised < from) {
			from = revised // a message has its former text again
		}
		if m.context != nil && from > 0 {
			if err := m.context.Withdraw(contextSession{t}, from); err != nil {
				return false, err
			}
		}
		n.Rewind(t.policy, past, event, m.context, from, m.moment())
		return true, nil
	}, nil)
}

// RewindTo undoes the turns after one, so that the session continues from that turn; 0
// undoes all of them. It does nothing if turn is the newest one. See Rewind.
func (m *Memory) RewindTo(ctx context.Context, session string, turn int64) error {
	err := m.Rewind(ctx, session, turn+1)
	if unknown, ok := errors.AsType[*TurnError](err); ok && turn >= 0 {
		if turn == unknown.Last && turn > 0 {
			return nil
		}
		unknown.Turn = turn
	}
	return err
}
