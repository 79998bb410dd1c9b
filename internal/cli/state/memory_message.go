package state

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/memoryview"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/spec/chat"
)

// onMessage returns a subcommand that changes a message of a session. check rejects wrong flags;
// it may be nil.
func onMessage(s *cli.Streams, use, short, long string, check func() error, run func(*memoryview.View, context.Context, memoryview.Message) error) *cobra.Command {
	r := newMemoryCommand(s, use, short, withSession)
	r.cmd.Long = long
	message := r.cmd.Flags().String("message", "", "`ID` of the message, or its position in the history (required)")
	r.check(func() error {
		if check != nil {
			if err := check(); err != nil {
				return err
			}
		}
		if *message == "" {
			return terminal.Usagef("which message? pass --message with its id or its position")
		}
		return nil
	})
	return r.inSession(func(ctx context.Context, m memoryview.Memory, session string) error {
		return run(r.view(), ctx, memoryview.Message{Memory: m, Session: session, ID: *message})
	})
}

func newEditMessage(s *cli.Streams) *cobra.Command {
	var text, input string
	var c *cobra.Command
	c = onMessage(s, "edit", "Give a message of a session another text", `Gives a message another text; the former text stays in the history. The message keeps its
place and its role. qtype memory history --format json shows positions and ids.`, func() error {
		if c.Flags().Changed("text") == (input != "") {
			return terminal.Usagef("edit needs the new text: pass --text or --in")
		}
		return nil
	}, func(v *memoryview.View, ctx context.Context, m memoryview.Message) error {
		return v.Edit(ctx, m, func(old chat.Message) (chat.Message, error) {
			if input != "" {
				return readMessage(s, input)
			}
			return old.WithText(text), nil
		})
	})
	c.Example = `  qtype memory edit app.qtype.yaml --session c-1 --message 12 --text "a ticket to Basel"
  qtype memory edit app.qtype.yaml --session c-1 --message 12 --in message.json`
	c.Flags().StringVar(&text, "text", "", "the new `TEXT`")
	c.Flags().StringVar(&input, "in", "", "`FILE` with the new message as JSON, in OpenAI's format; - is standard input")
	return c
}

// readMessage reads a message of a file.
func readMessage(s *cli.Streams, path string) (chat.Message, error) {
	in, name, err := s.Open(path)
	if err != nil {
		return chat.Message{}, err
	}
	defer func() { _ = in.Close() }() // only read
	raw, err := io.ReadAll(in)
	if err == nil && strings.TrimSpace(string(raw)) == "" {
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

func newDeleteMessage(s *cli.Streams) *cobra.Command {
	return onMessage(s, "delete", "Remove a message from the conversation of a session", `Removes a message from the conversation, a tool call together with its results. The
message stays in the history; qtype memory clear deletes a session for good.`, nil, (*memoryview.View).Delete)
}

func newPin(s *cli.Streams) *cobra.Command {
	return onMessage(s, "pin", "Keep a message of a session in the window", `Keeps a message in the window, a tool call together with its results: other messages leave
in its place. It counts towards the limits of the memory.`, nil, (*memoryview.View).Pin)
}

func newUnpin(s *cli.Streams) *cobra.Command {
	return onMessage(s, "unpin", "Undo qtype memory pin", `The policy of the memory may evict the message again.`, nil, (*memoryview.View).Unpin)
}
