package memory

import (
	"context"
	"reflect"
	"strconv"

	"github.com/qtype-dev/qtype/internal/memory/change"
	"github.com/qtype-dev/qtype/internal/memory/history"
	"github.com/qtype-dev/qtype/internal/memory/window"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// Find returns a message of the conversation as it is now, by its id or else by its
// position in the history. It returns a *MessageError if there is none: also for messages
// of failed turns, and for rewound and deleted messages.
func (m *Memory) Find(ctx context.Context, session, message string) (store.Entry, error) {
	key := m.key(session)
	head, err := m.Head(ctx, session)
	if err != nil {
		return store.Entry{}, err
	}
	known, err := m.reader.KnownIDs(ctx, key, []string{message})
	if err != nil {
		return store.Entry{}, err
	}
	position, found := known[message]
	if !found {
		if position, err = strconv.ParseInt(message, 10, 64); err != nil {
			position = 0
		}
	}
	v := m.reader.NewView()
	v.State = head.State
	e, err := m.reader.Place(ctx, key, v, position)
	if refused, ok := err.(*history.MessageError); ok { //nolint:errorlint // place returns it as it is
		refused.Message = strconv.Quote(message)
	}
	if err != nil {
		return store.Entry{}, err
	}
	return *e, nil
}

// Message returns the message of the conversation at a position, whole and as it is now. It
// returns a *MessageError if there is none, as Find does.
func (m *Memory) Message(ctx context.Context, session string, position int64) (chat.Message, error) {
	return m.messageAt(ctx, m.key(session), position)
}

// Message is Memory.Message during a turn, whose own messages have the positions that they
// will get: those in the notes of short forms.
func (t *Turn) Message(position int64) (chat.Message, error) {
	t.mu.Lock()
	ctx, key, places := t.ctx, t.key, t.places()
	t.mu.Unlock()
	for e, place := range places {
		if place == position {
			return e.Message, nil
		}
	}
	return t.memory.messageAt(ctx, key, position)
}

func (m *Memory) messageAt(ctx context.Context, key store.Key, position int64) (chat.Message, error) {
	head, err := m.reader.Store.Head(ctx, key)
	if err != nil {
		return chat.Message{}, err
	}
	v := m.reader.NewView()
	if !m.expired(head.State) {
		v.State = head.State
	}
	e, err := m.reader.Place(ctx, key, v, position)
	if err != nil {
		return chat.Message{}, err
	}
	return e.Message, nil
}

// Edit gives a message of the conversation another text. The message keeps its id, its
// place and its role; a message with tool calls keeps their ids, and a tool result that
// of its call. The former text stays in the history, with the status Edited, and is
// neither summarized nor retrieved; a summary that has it is dropped, and written again
// by the next turn. The window is fitted to the policy. Messages that left the window do
// not return, except with round_window. An edit counts as a turn, so that Rewind undoes
// it, and waits while another turn is active. It does nothing if the message is the
// same. position is that of the message or of one of its texts; Edit returns a
// *MessageError if the session has no such message, or if it cannot be changed this way.
func (m *Memory) Edit(ctx context.Context, session string, position int64, msg chat.Message) error {
	if err := window.CheckMessages([]chat.Message{msg}); err != nil {
		return err
	}
	msg.ID = ""
	return m.revise(ctx, session, position, func(t *Turn, base *window.View, n *change.Transition, old *store.Entry) (bool, error) {
		msg := msg
		msg.Context = old.Message.Context // what was sent before it
		text := window.NewEntry(m.reader.Counter, msg)
		same := text.Message
		if same.ID = old.Message.ID; reflect.DeepEqual(same, old.Message) {
			return false, nil
		}
		if problem := change.EditProblem(&old.Message, &msg); problem != "" {
			return false, m.reader.MessageError(session, strconv.FormatInt(position, 10), "%s", problem)
		}
		n.BeginTurn(base, []*store.Entry{text}, m.moment())
		n.Edit(old, n.Change.Entries[0])
		return true, nil
	})
}

// Delete removes a message from the conversation; a tool call and its results leave
// together. They stay in the history, with the status Deleted. Everything else is as for
// Edit.
func (m *Memory) Delete(ctx context.Context, session string, position int64) error {
	return m.revise(ctx, session, position, func(t *Turn, base *window.View, n *change.Transition, old *store.Entry) (bool, error) {
		all, err := m.reader.Unit(ctx, t.key, base, old)
		if err != nil {
			return false, err
		}
		n.Begin(base, m.moment())
		n.Next.State.Turns++
		n.Next.State.Extend(n.Now)
		n.Remove(all)
		return true, nil
	})
}

// revise changes one message of the conversation; plan returns false if nothing changes.
func (m *Memory) revise(ctx context.Context, session string, position int64, plan func(t *Turn, base *window.View, n *change.Transition, old *store.Entry) (bool, error)) error {
	t, err := m.open(ctx, session, true)
	if err != nil {
		return err
	}
	defer t.close()
	if err := m.record(ctx, AuditRecord{Operation: AuditEdit, Session: t.key.Session, Message: strconv.FormatInt(position, 10)}); err != nil {
		return err
	}
	last := int64(0)
	err = t.apply(ctx, func(base *window.View, n *change.Transition) (bool, error) {
		scratch := *base
		old, err := m.reader.Place(ctx, t.key, &scratch, position)
		if err != nil {
			return false, err
		}
		changed, err := plan(t, base, n, old)
		if err != nil || !changed {
			return false, err
		}
		last = base.State.Last + 1 // with the text of an edit
		if err := m.forgetWords(ctx, t.key, last); err != nil {
			return false, err
		}
		if err := m.withdraw(t, n, old); err != nil {
			return false, err
		}
		if window.IsSystem(old) {
			n.Next.System = nil
			l := n.TimelineOfNext()
			if err := m.reader.RestoreSystem(ctx, t.key, base, &n.Next, l); err != nil {
				return false, err
			}
		}
		return true, m.fit(ctx, t, n, base)
	}, nil)
	if err != nil {
		return err
	}
	return m.forgetWords(ctx, t.key, last) // another process may have stored them meanwhile
}

// withdraw removes what depends on a message from the context, before the message
// changes.
func (m *Memory) withdraw(t *Turn, n *change.Transition, old *store.Entry) error {
	if m.context != nil {
		if err := m.context.Withdraw(contextSession{t}, old.Seq); err != nil {
			return err
		}
	}
	if m.context != nil || old.Status != store.InWindow {
		n.DropContext(m.context, old.Seq)
	}
	return nil
}

// fit makes the window of a revised conversation what the policy permits.
func (m *Memory) fit(ctx context.Context, t *Turn, n *change.Transition, base *window.View) error {
	next, err := m.reader.ExtendBack(ctx, t.key, &n.Next, t.policy)
	if err != nil {
		return err
	}
	n.Next = *next
	n.Refit(t.policy, m.kind.Name, base)
	return nil
}
