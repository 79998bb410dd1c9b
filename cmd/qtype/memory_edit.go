package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype/internal/memoryview"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec/chat"
)

// memoryEdit is one call of a subcommand that changes a message.
type memoryEdit struct {
	memoryCommand
	message string  // its id or position
	text    *string // edit: the new text; nil for input
	input   string  // edit: the file with the new message
}

func newEditMessage(s *streams) *cobra.Command {
	r := &memoryEdit{memoryCommand: memoryCommand{streams: s}}
	c := r.withMessage(r.command("edit", "Give a message of a session another text", r.edit))
	c.Long = `Gives a message another text; the former text stays in the history. The message keeps its
place and its role. qtype memory history --format json shows positions and ids.`
	c.Example = `  qtype memory edit app.qtype.yaml --session c-1 --message 12 --text "a ticket to Basel"
  qtype memory edit app.qtype.yaml --session c-1 --message 12 --in message.json`
	text := c.Flags().String("text", "", "the new `TEXT`")
	c.Flags().StringVar(&r.input, "in", "", "`FILE` with the new message as JSON, in OpenAI's format; - is standard input")
	run := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if c.Flags().Changed("text") {
			r.text = text
		}
		if (r.text == nil) == (r.input == "") {
			return usagef("edit needs the new text: pass --text or --in")
		}
		return run(c, args)
	}
	return c
}

func newDeleteMessage(s *streams) *cobra.Command {
	r := &memoryEdit{memoryCommand: memoryCommand{streams: s}}
	c := r.withMessage(r.command("delete", "Remove a message from the conversation of a session", r.delete))
	c.Long = `Removes a message from the conversation, a tool call together with its results. The
message stays in the history; qtype memory clear deletes a session for good.`
	return c
}

func newPin(s *streams) *cobra.Command {
	r := &memoryEdit{memoryCommand: memoryCommand{streams: s}}
	c := r.withMessage(r.command("pin", "Keep a message of a session in the window", r.pin))
	c.Long = `Keeps a message in the window, a tool call together with its results: other messages leave
in its place. It counts towards the limits of the memory.`
	return c
}

func newUnpin(s *streams) *cobra.Command {
	r := &memoryEdit{memoryCommand: memoryCommand{streams: s}}
	c := r.withMessage(r.command("unpin", "Undo qtype memory pin", r.unpin))
	c.Long = `The policy of the memory may evict the message again.`
	return c
}

func (r *memoryEdit) pin(ctx context.Context, app *runtime.App) error {
	m, e, err := r.find(ctx, app)
	if err != nil {
		return err
	}
	if err := m.Pin(ctx, r.session, e.Seq); err != nil {
		return err
	}
	return r.report(m, e, "pinned")
}

func (r *memoryEdit) unpin(ctx context.Context, app *runtime.App) error {
	m, e, err := r.find(ctx, app)
	if err != nil {
		return err
	}
	if err := m.Unpin(ctx, r.session, e.Seq); err != nil {
		return err
	}
	return r.report(m, e, "unpinned")
}

func (r *memoryEdit) withMessage(c *cobra.Command) *cobra.Command {
	c.Flags().StringVar(&r.message, "message", "", "`ID` of the message, or its position in the history (required)")
	return r.withSession(c)
}

// find returns the message of the call.
func (r *memoryEdit) find(ctx context.Context, app *runtime.App) (memoryview.Memory, memory.Entry, error) {
	if r.message == "" {
		return memoryview.Memory{}, memory.Entry{}, usagef("which message? pass --message with its id or its position")
	}
	m, err := r.conversation(ctx, app)
	if err != nil {
		return memoryview.Memory{}, memory.Entry{}, err
	}
	e, err := m.Find(ctx, r.session, r.message)
	return m, e, err
}

func (r *memoryEdit) edit(ctx context.Context, app *runtime.App) error {
	m, e, err := r.find(ctx, app)
	if err != nil {
		return err
	}
	msg := e.Message
	if r.text != nil {
		msg.Blocks = chat.Text(msg.Role, *r.text).Blocks
	} else if msg, err = r.read(); err != nil {
		return err
	}
	if err := m.Edit(ctx, r.session, e.Seq, msg); err != nil {
		return err
	}
	return r.report(m, e, "edited")
}

// read reads the message of --in.
func (r *memoryEdit) read() (chat.Message, error) {
	in, name, err := openInput(r.streams, r.input)
	if err != nil {
		return chat.Message{}, err
	}
	defer func() { _ = in.Close() }() // only read
	raw, err := io.ReadAll(in)
	if err == nil && len(bytes.TrimSpace(raw)) == 0 {
		err = errors.New("it is empty")
	}
	var msg chat.Message
	if err == nil {
		msg, err = chat.ParseOpenAI(raw)
	}
	if err != nil {
		return msg, fmt.Errorf("%s: %w", name, err)
	}
	return msg, nil
}

func (r *memoryEdit) delete(ctx context.Context, app *runtime.App) error {
	m, e, err := r.find(ctx, app)
	if err != nil {
		return err
	}
	if err := m.Delete(ctx, r.session, e.Seq); err != nil {
		return err
	}
	return r.report(m, e, "deleted")
}

func (r *memoryEdit) report(m memoryview.Memory, e memory.Entry, done string) error {
	_, err := fmt.Fprintf(r.Out, "memory %s, session %s: message %d %s\n", m.ID, terminal.Clean(r.session), e.Seq, done)
	return err
}
