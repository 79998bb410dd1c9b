package memory

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/qtype-dev/qtype/internal/memory/change"
	"github.com/qtype-dev/qtype/internal/memory/window"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/memory/store"
)

// PinSizeError reports that a message cannot be pinned, because the pinned messages alone
// would exceed the window's limit.
type PinSizeError struct {
	Memory  string     // the memory's id
	Session string     // the session's id
	Message int64      // the position of the message
	Used    int        // size of the pinned messages with this one, and of the system message if it counts
	Limit   int        // the window's limit
	Unit    store.Unit // unit of both
}

// Error names the sizes.
func (e *PinSizeError) Error() string {
	return fmt.Sprintf("memory %s, session %q, message %d: with it the pinned messages would have %s of the window's %s %s: unpin others or increase the limit",
		e.Memory, e.Session, e.Message, textfmt.Thousands(e.Used), textfmt.Thousands(e.Limit), e.Unit)
}

// Pin makes the policy keep a message of the window, a tool call together with its results:
// other messages leave in its place. It counts towards the limits. A pin counts as a turn, so
// that Rewind undoes it, and waits while another turn is active. It does nothing if the
// message is pinned. Pin returns a *MessageError for a message that is not in the window and
// for system messages, which never leave, and a *PinSizeError if the pinned messages alone
// would exceed the limit. round_window has no pins.
func (m *Memory) Pin(ctx context.Context, session string, position int64) error {
	return m.changePin(ctx, session, position, true)
}

// Unpin undoes Pin: the policy may evict the message again.
func (m *Memory) Unpin(ctx context.Context, session string, position int64) error {
	return m.changePin(ctx, session, position, false)
}

func (m *Memory) changePin(ctx context.Context, session string, position int64, pin bool) error {
	t, err := m.open(ctx, session, true)
	if err != nil {
		return err
	}
	defer t.close()
	if _, ok := t.policy.(window.Rereader); ok {
		return fmt.Errorf("memory %s: policy %s has no pins: it selects the newest rounds at each read", m.id, m.kind.Name)
	}
	if err := m.record(ctx, AuditRecord{Operation: AuditEdit, Session: t.key.Session, Message: strconv.FormatInt(position, 10)}); err != nil {
		return err
	}
	return t.apply(ctx, func(base *window.View, n *change.Transition) (bool, error) {
		scratch := *base
		e, err := m.reader.Place(ctx, t.key, &scratch, position)
		if err != nil {
			return false, err
		}
		if window.IsSystem(e) {
			return false, m.reader.MessageError(session, strconv.FormatInt(position, 10), "it is a system message, which never leaves the window")
		}
		all, err := m.reader.Unit(ctx, t.key, base, e)
		if err != nil {
			return false, err
		}
		if was := base.State.IsPinned(e.Seq); was == pin {
			return false, nil
		}
		if pin && e.Status != store.InWindow {
			return false, m.reader.MessageError(session, strconv.FormatInt(position, 10), "it left the window, so it cannot be pinned")
		}
		n.Begin(base, m.moment())
		n.Next.State.Turns++
		n.Next.State.Extend(n.Now)
		n.Pin(all, pin)
		if pin {
			return true, t.checkPins(session, &n.Next, e.Seq)
		}
		return true, m.fit(ctx, t, n, base)
	}, nil)
}

// checkPins returns a *PinSizeError if the pinned messages of a view exceed the limit.
func (t *Turn) checkPins(session string, v *window.View, position int64) error {
	alone := *v
	alone.Entries = slices.DeleteFunc(slices.Clone(v.Entries), func(e *store.Entry) bool { return !v.State.IsPinned(e.Seq) })
	alone.Tokens = window.SumTokens(alone.Entries)
	used, limit, unit := t.policy.Usage(window.SizeOf(t.policy, &alone))
	if limit > 0 && used > limit {
		return &PinSizeError{Memory: t.memory.id, Session: session, Message: position, Used: used, Limit: limit, Unit: unit}
	}
	return nil
}
