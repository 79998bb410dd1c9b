package command

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/chatui"
	"github.com/qtype-dev/qtype/internal/chatui/screen"
	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/cli/appflags"
	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
)

// defaultSession is the session of qtype chat without --session.
const defaultSession = "default"

// chatCommand is one call of qtype chat.
type chatCommand struct {
	*cli.Streams
	flow      string
	session   string
	user      string
	input     string
	ephemeral bool
	clients   *appflags.Clients
	store     appflags.Store
	trace     traceFlag
	log       appflags.LogLevel
	access    appflags.Access
}

func newChat(s *cli.Streams) *cobra.Command {
	c := &chatCommand{Streams: s, clients: appflags.NewClients(s)}
	cmd := &cobra.Command{
		Use:   "chat APP",
		Short: "Chat with a conversational flow",
		Long: `Chat with a conversational flow in the terminal.

Enter sends a message; Alt-Enter, or a backslash before Enter, begins a new line, and
what is pasted is one message. Ctrl-C stops the current answer, twice ends the
conversation, as Ctrl-D does. Up recalls what was typed, Ctrl-R searches it, Tab
completes commands and sessions, /help lists the commands. If standard input is not a
terminal, each line is answered on standard output.`,
		Example: `  qtype chat app.qtype.yaml --session me
  qtype chat app.qtype.yaml -f support -i '{"customer": "c-014"}'
  printf 'Hello\nWhat can you do?\n' | qtype chat app.qtype.yaml --ephemeral`,
		Args: cli.Arguments("a document: qtype chat APP"), ValidArgsFunction: cli.YAMLFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.trace.check(); err != nil {
				return err
			}
			if err := c.log.Check(cmd); err != nil {
				return err
			}
			return c.run(c.log.Context(cmd.Context(), c.Streams), args[0])
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	cli.AddFlags(f, "Input", func() {
		f.StringVarP(&c.flow, "flow", "f", "", "`ID` of the flow (default: the first conversational one)")
		f.StringVarP(&c.input, "input", "i", "", "the flow's other inputs, the same for every turn: a `JSON` object")
	})
	cli.AddFlags(f, "Conversation", func() {
		f.StringVarP(&c.session, "session", "s", defaultSession, "`ID` of the session")
		f.StringVar(&c.user, "user", "", "`USER` to whom the session belongs")
		f.BoolVar(&c.ephemeral, "ephemeral", false, "keep memories in RAM only")
		c.store.AddTo(f)
	})
	cli.AddFlags(f, "Tools and approvals", func() { c.clients.AddTo(f) })
	cli.AddFlags(f, "Access", func() { c.access.AddTo(f) })
	cli.AddFlags(f, "Messages", func() {
		c.trace.addTo(f)
		c.log.AddTo(cmd, "print answers and prompts only")
	})
	cli.GroupHelp(cmd)
	return cmd
}

func (c *chatCommand) run(ctx context.Context, path string) (err error) {
	p, list := qtype.Check(ctx, path, c.access.Options(qtype.WithStrict())...)
	if err := list.Err(); err != nil {
		return err
	}
	target, err := chatui.NewTarget(p.Document.Application, c.flow, c.input)
	if err != nil {
		return err
	}
	lines := terminal.NewLines(c.In)
	defer lines.Close()
	c.clients.Prompt(lines)
	chat := &chatui.Chat{Streams: &c.Streams.Streams, Lines: lines, Target: target, User: c.user, Session: memory.UserSession(c.user, c.session), Quiet: c.log.Quiet}
	if c.Editing {
		c.editLines(p, chat)
	}
	app, err := newApp(c.Streams, p, c.clients, &c.store, c.ephemeral, &c.log)
	if err != nil {
		return err
	}
	chat.App = app
	defer func() { appflags.CloseApp(ctx, chat.App, &err) }() // perhaps another one by then
	ctx, sendTraces := startTraces(ctx, c.Streams, app, &c.log)
	defer sendTraces()
	ctx, _, closeTrace, err := c.trace.start(ctx, c.Streams, app, "turn")
	if err != nil {
		return err
	}
	defer closeTrace(&err)
	chat.Reopen = func(ctx context.Context, model string) (*runtime.App, *chatui.Target, error) {
		return c.reopen(ctx, path, target.Flow(), model)
	}
	if err = chat.Run(c.clients.Audit.Context(ctx)); errors.Is(err, chatui.ErrTurnFailed) {
		err = cli.ErrSilent
	}
	return err
}

// reopen makes the application again, with another model.
func (c *chatCommand) reopen(ctx context.Context, path, flow, model string) (*runtime.App, *chatui.Target, error) {
	p, list := qtype.Check(ctx, path, c.access.Options(qtype.WithStrict(), qtype.WithFlowModel(flow, model))...)
	if err := list.Err(); err != nil {
		return nil, nil, fmt.Errorf("the document cannot be used with model %s: %w", model, err)
	}
	target, err := chatui.NewTarget(p.Document.Application, flow, c.input)
	if err != nil {
		return nil, nil, err
	}
	app, err := newApp(c.Streams, p, c.clients, &c.store, c.ephemeral, &c.log)
	return app, target, err
}

// editLines lets the user edit lines. Everything that is written goes through the screen.
func (c *chatCommand) editLines(p *qtype.Program, chat *chatui.Chat) {
	history, err := screen.OpenHistory(c.historyFile(p), func(text string) string { return chat.App.Redactor().String(text) })
	if err != nil {
		fmt.Fprintf(c.Err, "warning: the history of messages cannot be read: %s\n", terminal.Clean(err.Error()))
	}
	// The screen draws on the terminal itself; what is printed is redacted before.
	s := screen.New(screen.Options{In: c.In, Out: redact.Unwrap(c.Err), Color: c.Color, Width: c.Width, History: history, Complete: chat.Complete})
	c.Out, c.Err = redact.Rewrap(c.Out, s.Writer), redact.Rewrap(c.Err, s.Writer)
	chat.Lines.ReadWith(s.Ask)
	chat.Screen = s
}

// historyFile returns where the messages that the user types are kept: next to the sessions. It
// is empty if they must not be kept in a file: --ephemeral, a user whose data must be
// erasable, and sessions that are encrypted.
func (c *chatCommand) historyFile(p *qtype.Program) string {
	app := p.Document.Application
	if c.ephemeral || c.user != "" || slices.ContainsFunc(app.Stores, func(s *spec.Store) bool { return s.Encryption != nil }) {
		return ""
	}
	file, err := qtype.DefaultStoreFile(p)
	if err != nil {
		return ""
	}
	return filepath.Join(filepath.Dir(file), "chat_history")
}
