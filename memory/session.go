package memory

import (
	"context"
	"errors"
	"slices"

	"github.com/qtype-dev/qtype/spec/chat"
)

// Session is one session of a memory in the hands of a caller who comes back to
// it: what can be known of it beforehand is. It costs nothing to make and
// nothing to let go of. Unlike a Memory it is for one goroutine at a time;
// several goroutines take a Session each.
type Session struct {
	memory *Memory
	id     string
	at     *sessionData // where it stands, if its store is in this process and was found before
}

// Session is the session with this id, whether it has said anything or not.
func (m *Memory) Session(id string) *Session { return &Session{memory: m, id: id} }

// ID is the session's id.
func (s *Session) ID() string { return s.id }

// Append is Memory.Append.
func (s *Session) Append(ctx context.Context, msgs ...chat.Message) error {
	if s.memory.local != nil && len(msgs) <= spareCapacity {
		on := s.memory.newTransition()
		err := s.append(ctx, on, msgs)
		s.memory.recycle(on)
		if !errors.Is(err, errSlowPath) {
			return err
		}
	}
	return s.memory.appendSlow(ctx, s.id, slices.Clone(msgs))
}

// AppendText is Append of one message that is a text and nothing else.
func (s *Session) AppendText(ctx context.Context, role chat.Role, text string) error {
	if m := s.memory; m.local != nil {
		on := m.newTransition()
		on.text[0].Text = text // nothing else is kept
		msgs := [1]chat.Message{{Role: role, Blocks: on.text[:]}}
		err := s.append(ctx, on, msgs[:])
		m.recycle(on)
		if !errors.Is(err, errSlowPath) {
			return err
		}
	}
	return s.Append(ctx, chat.Message{Role: role, Blocks: []chat.Block{{Type: "text", Text: text}}})
}

// Window is Memory.Window.
func (s *Session) Window(ctx context.Context) (Window, error) {
	w, err := s.window(ctx)
	if errors.Is(err, errSlowPath) {
		return s.memory.readFromStore(ctx, s.id, ReadOptions{})
	}
	return w, err
}

// window is Window where the session stands.
func (s *Session) window(ctx context.Context) (Window, error) {
	if err := ctx.Err(); err != nil {
		return Window{}, err
	}
	at, p, err := s.lockLocal(false)
	if err != nil {
		return Window{}, err
	}
	defer at.mu.Unlock()
	v := at.viewOf(s.memory)
	if v == nil {
		return Window{}, errSlowPath
	}
	if r, ok := p.(*rounds); ok && !r.covers(v) {
		return Window{}, errSlowPath
	}
	return s.memory.buildWindow(p, v), nil
}

// WindowBuffer holds messages that are read again and again. The zero value is ready.
type WindowBuffer struct {
	messages []chat.Message
	blocks   []chat.Block
}

// Messages are what the next call of a model is sent: Window.Messages, without
// making anything anew. They are the buffer's and good until its next use. Where
// the store keeps nothing but windows (NewInProcessWithoutHistory), a message that was
// said without an id has none here.
func (s *Session) Messages(ctx context.Context, b *WindowBuffer) ([]chat.Message, error) {
	err := s.fill(ctx, b)
	if errors.Is(err, errSlowPath) {
		w, err := s.Window(ctx)
		if err != nil {
			return nil, err
		}
		b.messages = w.appendTo(b.messages[:0])
		return b.messages, nil
	}
	return b.messages, err
}

// fill is Messages where the session stands and only windows are kept.
func (s *Session) fill(ctx context.Context, b *WindowBuffer) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	at, p, err := s.lockLocal(false)
	if err != nil {
		return err
	}
	defer at.mu.Unlock()
	if at.long != nil {
		return errSlowPath
	}
	if at.window.fitted == p && at.window.system == nil {
		b.take(&at.window, 0, nil, 0)
		return nil
	}
	m := s.memory
	on := m.newTransition()
	defer m.recycle(on)
	if !at.skeletonView(m, on) {
		return errSlowPath
	}
	sel := p.selectForCall(&on.own)
	w := m.window(&on.own, sel.entries(&on.own))
	b.take(&at.window, sel.from, w.System, w.SystemAt)
	return nil
}

// take makes the messages those of a window from its line from on, with the
// system message, if there is one, behind the first at of them.
func (b *WindowBuffer) take(w *ringWindow, from int, system *Entry, at int) {
	n := w.n - from
	b.messages, b.blocks = slices.Grow(b.messages[:0], n+1)[:n], slices.Grow(b.blocks[:0], n)[:n]
	messages, blocks := b.messages, b.blocks
	for _, lines := range w.all(from) {
		for i := range lines {
			if l := &lines[i]; l.isEntry() {
				messages[i] = w.whole[l.seq].Message
			} else {
				l.write(&messages[i], blocks[i:i+1:i+1])
			}
		}
		messages, blocks = messages[len(lines):], blocks[len(lines):]
	}
	if system != nil {
		b.messages = slices.Insert(b.messages, min(at, n), system.Message)
	}
}

// write makes msg the line's message, whose text is to stand in block. While the
// garbage is collected, every pointer that is stored on the heap costs as much as
// all the rest, so what stands there already, as it mostly does, is left as it is.
func (l *packedMessage) write(msg *chat.Message, block []chat.Block) {
	b := &block[0]
	b.Text = l.text
	if b.Type != "text" || b.Data != nil || b.MimeType != "" {
		b.Type, b.Data, b.MimeType = "text", nil, ""
	}
	if role := roleAt(l.role()); msg.Role != role {
		msg.Role = role
	}
	if len(msg.Blocks) != 1 || &msg.Blocks[0] != b {
		msg.Blocks = block
	}
	if msg.ID != "" || msg.Name != "" || msg.ToolCalls != nil || msg.ToolCallID != "" {
		msg.ID, msg.Name, msg.ToolCalls, msg.ToolCallID = "", "", nil, ""
	}
}
