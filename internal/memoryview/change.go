package memoryview

import (
	"context"
	"errors"
	"fmt"

	"github.com/qtype-dev/qtype/internal/memory/promptcontext"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/diag"
)

// printf writes a line about a memory.
func (v *View) printf(m Memory, format string, args ...any) error {
	_, err := fmt.Fprintf(v.Out, "memory %s%s\n", m.ID, fmt.Sprintf(format, args...))
	return err
}

// Clear deletes sessions by their stored ids; those after the first one need not exist.
func (v *View) Clear(ctx context.Context, m Memory, sessions ...string) error {
	for i, session := range sessions {
		if _, err := FindSession(ctx, m, session); err != nil && i > 0 {
			continue
		} else if err != nil {
			return err
		}
		if err := m.Clear(ctx, session); err != nil {
			return err
		}
		if err := v.printf(m, ": session %s deleted", terminal.Clean(session)); err != nil {
			return err
		}
	}
	return nil
}

// ClearAll deletes all sessions of a memory if confirm returns nil for what is deleted, such as
// "2 sessions of memory chats".
func (v *View) ClearAll(ctx context.Context, m Memory, confirm func(what string) error) error {
	sessions, err := m.Sessions(ctx)
	if err != nil {
		return err
	}
	if err := confirm(textfmt.Count(len(sessions), "session") + " of memory " + m.ID); err != nil {
		return err
	}
	for _, s := range sessions {
		if err := m.Clear(ctx, s.Session); err != nil {
			return err
		}
	}
	return v.printf(m, ": %s deleted", textfmt.Count(len(sessions), "session"))
}

// Prune deletes the expired sessions of declared memories.
func (v *View) Prune(ctx context.Context, app App, declared []*spec.Memory) error {
	for _, d := range declared {
		m, text := Of(app, d.ID), " has no ttl: its sessions do not expire"
		n, err := m.Prune(ctx) // also what killed processes left
		if err != nil {
			return err
		}
		if d.TTL != 0 {
			text = fmt.Sprintf(": %s deleted", textfmt.Count(n, "session"))
		}
		if err := v.printf(m, "%s", text); err != nil {
			return err
		}
	}
	return nil
}

// Fork copies a session, up to a turn, to another one; 0 is the newest turn.
func (v *View) Fork(ctx context.Context, m Memory, session, to string, turn int64) error {
	if err := m.Fork(ctx, session, to, turn); err != nil {
		return err
	}
	return v.printf(m, ": session %s forked to %s", terminal.Clean(session), terminal.Clean(to))
}

// Rewind undoes the turns of a session after one; 0 for all.
func (v *View) Rewind(ctx context.Context, m Memory, session string, turn int64) error {
	if err := m.RewindTo(ctx, session, turn); err != nil {
		return err
	}
	to := "the beginning"
	if turn > 0 {
		to = fmt.Sprintf("turn %d", turn)
	}
	return v.printf(m, ": session %s rewound to %s", terminal.Clean(session), to)
}

// Message names a message of a session.
type Message struct {
	Memory  Memory
	Session string // its stored id
	ID      string // the id of the message, or its position in the history
}

// Edit gives a message the content that edited returns for it.
func (v *View) Edit(ctx context.Context, m Message, edited func(chat.Message) (chat.Message, error)) error {
	return v.change(ctx, m, "edited", func(e memory.Entry) error {
		msg, err := edited(e.Message)
		if err != nil {
			return err
		}
		return m.Memory.Edit(ctx, m.Session, e.Seq, msg)
	})
}

// Delete removes a message from the conversation.
func (v *View) Delete(ctx context.Context, m Message) error {
	return v.change(ctx, m, "deleted", func(e memory.Entry) error { return m.Memory.Delete(ctx, m.Session, e.Seq) })
}

// Pin keeps a message in the window.
func (v *View) Pin(ctx context.Context, m Message) error {
	return v.change(ctx, m, "pinned", func(e memory.Entry) error { return m.Memory.Pin(ctx, m.Session, e.Seq) })
}

// Unpin undoes Pin.
func (v *View) Unpin(ctx context.Context, m Message) error {
	return v.change(ctx, m, "unpinned", func(e memory.Entry) error { return m.Memory.Unpin(ctx, m.Session, e.Seq) })
}

// change finds a message, changes it and writes what was done.
func (v *View) change(ctx context.Context, m Message, done string, apply func(memory.Entry) error) error {
	e, err := m.Memory.Find(ctx, m.Session, m.ID)
	if err != nil {
		return err
	}
	if err := apply(e); err != nil {
		return err
	}
	return v.printf(m.Memory, ", session %s: message %d %s", terminal.Clean(m.Session), e.Seq, done)
}

// FactChange adds a fact, or edits or deletes one; exactly one of the three is set.
type FactChange struct {
	Add    string // the text of a new fact
	Edit   string // the id of the fact that gets Text
	Text   string
	Delete string // the id of the fact to delete
}

// ChangeFact changes a fact of a user, or of a session if its id is not empty.
func (v *View) ChangeFact(ctx context.Context, m Memory, s *Selection, change FactChange) error {
	list := memory.UserSession(s.User, s.Session)
	if info, err := m.Head(ctx, list); s.Session != "" && (err != nil || info.Version == 0) {
		if err == nil {
			err = fmt.Errorf("memory %s has no session %q", m.ID, list)
		}
		return err
	}
	id, done := change.Edit, "changed"
	var err error
	switch {
	case change.Delete != "":
		id, done = change.Delete, "deleted"
		err = promptcontext.RemoveFact(ctx, m.Memory, list, id)
	case change.Add != "":
		done = "added"
		id, err = promptcontext.PutFact(ctx, m.Memory, list, "", change.Add)
	default:
		_, err = promptcontext.PutFact(ctx, m.Memory, list, id, change.Text)
	}
	var failed *promptcontext.FactError
	switch {
	case errors.As(err, &failed) && failed.ID != "":
		return fmt.Errorf("%w%s", err, diag.DidYouMean(failed.ID, failed.Known))
	case err != nil:
		return err
	}
	return v.printf(m, ": fact %s %s", terminal.Clean(id), done)
}
