package chatui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec/chat"
)

// newest is the newest turn of a memory that a message of the user began.
type newest struct {
	memory *memory.Memory
	turn   int64
	entry  memory.Entry
}

// newestTurns returns the newest turn of each memory of the flow. Memories that do not have
// the newest message of the conversation are left out: they took no part in that turn.
func (c *Chat) newestTurns(ctx context.Context) ([]newest, error) {
	all := c.memories()
	if len(all) == 0 {
		return nil, c.errNoMemory()
	}
	var turns []newest
	for _, m := range all {
		one := newest{memory: m.Memory}
		for e, err := range m.Messages(ctx, c.Session) {
			if err != nil {
				return nil, err
			}
			if e.Message.Role == chat.User && e.Status != store.Failed && e.Turn != one.turn {
				one.turn, one.entry = e.Turn, e
			}
		}
		switch {
		case one.turn == 0:
		case len(turns) == 0 || one.entry.Message.Text() == turns[0].entry.Message.Text():
			turns = append(turns, one)
		case one.entry.Time.After(turns[0].entry.Time):
			turns = []newest{one}
		}
	}
	if len(turns) == 0 {
		return nil, errors.New("the conversation has no messages yet")
	}
	return turns, nil
}

// grown returns a function that reports whether the conversation has got messages since.
func (c *Chat) grown(ctx context.Context) func() bool {
	before := map[string]int64{}
	for _, m := range c.memories() {
		info, err := m.Info(ctx, c.Session)
		if err != nil {
			return func() bool { return false } // the turn fails
		}
		before[m.ID] = info.Messages
	}
	return func() bool {
		for _, m := range c.memories() {
			for e, err := range m.HistoryRange(ctx, c.Session, before[m.ID]+1, math.MaxInt64) {
				if err == nil && e.Status != store.Failed {
					return true
				}
			}
		}
		return false
	}
}

// undo takes back the last message and its answer.
func (c *Chat) undo(ctx context.Context, _ string) error {
	if c.last != nil && c.last.failed {
		c.last = nil
		return errors.New("the last turn has failed, or was stopped before an answer: the conversation goes on without it, so nothing was undone")
	}
	turns, err := c.newestTurns(ctx)
	if err != nil {
		return err
	}
	kept, err := c.effects(ctx, turns)
	if err != nil {
		return err
	}
	for _, t := range turns {
		if err := t.memory.Rewind(ctx, c.Session, t.turn); err != nil {
			return err
		}
	}
	c.last = nil
	c.printf("undone: %s\n", firstLine(turns[0].entry.Message.Text()))
	c.showEffects(kept)
	c.showStatus(ctx)
	return nil
}

// effects returns the calls of tools in turns that undoing the turns does not undo.
func (c *Chat) effects(ctx context.Context, turns []newest) ([]runtime.Effect, error) {
	var all []runtime.Effect
	for _, t := range turns {
		found, err := c.App.Effects(ctx, t.memory, c.Session, t.turn)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// showEffects writes the calls that are not undone.
func (c *Chat) showEffects(kept []runtime.Effect) {
	for _, e := range kept {
		c.printf("not undone: %s\n", terminal.Clean(e.String()))
	}
}

// takeBack takes back the last message, to send it again, and returns it.
func (c *Chat) takeBack(ctx context.Context, sure func(chat.Message) (chat.Message, error)) (chat.Message, error) {
	var message chat.Message
	var turns []newest
	switch {
	case c.last != nil && (c.last.failed || len(c.memories()) == 0):
		message = c.last.message
	default:
		var err error
		if turns, err = c.newestTurns(ctx); err != nil {
			return message, err
		}
		message = turns[0].entry.Message
		if c.last != nil {
			message = c.last.message // without what steps have added to it
		}
	}
	message, err := sure(message)
	if err != nil {
		return message, err
	}
	kept, err := c.effects(ctx, turns)
	if err != nil {
		return message, err
	}
	for _, t := range turns {
		if err := t.memory.Regenerate(ctx, c.Session, t.turn); err != nil {
			return message, err
		}
	}
	c.showEffects(kept)
	return message, nil
}

// retry requests another answer to the last message.
func (c *Chat) retry(ctx context.Context, _ string) error {
	message, err := c.takeBack(ctx, func(m chat.Message) (chat.Message, error) { return m, nil })
	if err != nil {
		return err
	}
	message.ID = chat.NewID()
	c.printf("again: %s\n", firstLine(message.Text()))
	return c.send(ctx, message)
}

// edit changes the last message and sends it again. Without a text, the user edits it.
func (c *Chat) edit(ctx context.Context, text string) error {
	message, err := c.takeBack(ctx, func(m chat.Message) (chat.Message, error) {
		var err error
		if text == "" {
			text, err = c.Screen.Read(ctx, "edit> ", m.Text())
		}
		return withText(m, text), err
	})
	if errors.Is(err, io.EOF) {
		return errQuit
	} else if err != nil {
		return err
	}
	return c.send(ctx, message)
}

// withText returns a new message with another text and the media of m.
func withText(m chat.Message, text string) chat.Message {
	changed := chat.Text(chat.User, text)
	for _, b := range m.Blocks {
		if b.Media() {
			changed.Blocks = append(changed.Blocks, b)
		}
	}
	return changed
}

// firstLine returns the beginning of a text, in quotes.
func firstLine(text string) string {
	const most = 60
	r := []rune(text)
	if len(r) > most {
		text = string(r[:most]) + "…"
	}
	return fmt.Sprintf("%q", text)
}
