package state

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/cli/appflags"
	"github.com/qtype-dev/qtype/internal/memoryview"
	"github.com/qtype-dev/qtype/internal/memoryview/explain"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
)

// memoryCommand is a subcommand of qtype memory.
type memoryCommand struct {
	*cli.Streams
	cmd *cobra.Command
	memoryview.Selection
	store  appflags.Store
	format *cli.EnumFlag
	page   memoryview.Page // the messages that are shown
}

// NewMemory returns qtype memory.
func NewMemory(s *cli.Streams) *cobra.Command {
	return cli.CommandGroup("memory", "Inspect and manage stored conversations",
		newList(s), newShow(s), newHistory(s), newExplainTurn(s), newExport(s), newFacts(s), newForget(s), newImport(s), newMemorySearch(s), newFork(s), newCopy(s),
		newReencrypt(s), newRewind(s), newEditMessage(s), newDeleteMessage(s), newPin(s), newUnpin(s), newClear(s), newPrune(s), newReplay(s))
}

// memoryFlags are flags that several subcommands have.
type memoryFlags uint8

const (
	withSession memoryFlags = 1 << iota // --session and --user
	withFormat                          // --format
	withPage                            // --from and --limit
)

// newMemoryCommand returns a subcommand for the memories of a document, which do makes run.
// further describes arguments after the document.
func newMemoryCommand(s *cli.Streams, use, short string, flags memoryFlags, further ...string) *memoryCommand {
	use += " APP"
	for _, argument := range further {
		name, _, _ := strings.Cut(argument, ":")
		use += " " + strings.ToUpper(strings.TrimPrefix(name, "a "))
	}
	needed := []string{"a document: qtype memory " + use}
	for _, argument := range further {
		needed = append(needed, argument+": qtype memory "+use)
	}
	r := &memoryCommand{Streams: s, cmd: &cobra.Command{Use: use, Short: short, Args: cli.Arguments(needed...), ValidArgsFunction: cli.YAMLFiles}}
	f := r.cmd.Flags()
	f.StringVarP(&r.Memory, "memory", "m", "", "`ID` of the memory (default: the only one)")
	if flags&withSession != 0 {
		f.StringVarP(&r.Session, "session", "s", "", "`ID` of the session (default: the only one)")
		f.StringVar(&r.User, "user", "", "`USER` to whom the session belongs")
	}
	if flags&withFormat != 0 {
		r.format = cli.AddLineFormat(r.cmd)
	}
	if flags&withPage != 0 {
		f.Int64Var(&r.page.From, "from", 0, "only messages from this `POSITION` on (default: all)")
		f.IntVar(&r.page.Limit, "limit", 0, "the most `MESSAGES` (default: all)")
		r.check(func() error {
			if r.page.From < 0 || r.page.Limit < 0 {
				return terminal.Usagef("--from and --limit must be positive")
			}
			return nil
		})
	}
	return r
}

// check makes the command reject wrong flags, before the document is read. It may be called
// several times.
func (r *memoryCommand) check(check func() error) {
	before := r.cmd.PreRunE
	r.cmd.PreRunE = func(c *cobra.Command, args []string) error {
		if before != nil {
			if err := before(c, args); err != nil {
				return err
			}
		}
		return check()
	}
}

// do makes the command run with the application of a document.
func (r *memoryCommand) do(run func(context.Context, *runtime.App) error) *cobra.Command {
	r.store.AddTo(r.cmd.Flags())
	r.cmd.RunE = func(c *cobra.Command, args []string) error {
		return withStored(c.Context(), r.Streams, args[0], &r.store, run)
	}
	return r.cmd
}

// inSession makes the command run with the session that its flags select, by its stored id.
func (r *memoryCommand) inSession(run func(context.Context, memoryview.Memory, string) error) *cobra.Command {
	return r.do(func(ctx context.Context, app *runtime.App) error {
		m, session, err := r.Conversation(ctx, app)
		if err != nil {
			return err
		}
		return run(ctx, m, session)
	})
}

// view returns a view as wide as the terminal.
func (r *memoryCommand) view() *memoryview.View {
	v := &memoryview.View{Out: r.Out, JSON: r.format != nil && r.format.Value == "json"}
	if r.OutTerminal {
		v.Width = r.Width
	}
	return v
}

func newShow(s *cli.Streams) *cobra.Command {
	r := newMemoryCommand(s, "show", "Show the context that the next model call would receive", withSession|withFormat|withPage)
	raw := r.cmd.Flags().Bool("raw", false, "also what providers sent with answers and want back, such as signatures of reasoning: field, origin, size and JSON")
	return r.inSession(func(ctx context.Context, m memoryview.Memory, session string) error {
		v := r.view()
		v.Raw = *raw
		return v.Window(ctx, m, session, r.page)
	})
}

func newHistory(s *cli.Streams) *cobra.Command {
	r := newMemoryCommand(s, "history", "Show all messages of a session", withSession|withFormat|withPage)
	full := r.cmd.Flags().Bool("full", false, "all lines of the messages, instead of one line for each")
	return r.inSession(func(ctx context.Context, m memoryview.Memory, session string) error {
		v := r.view()
		v.Full = *full
		return v.History(ctx, m, session, r.page)
	})
}

func newExplainTurn(s *cli.Streams) *cobra.Command {
	r := newMemoryCommand(s, "explain", "Explain what a past turn sent to the model", withSession|withFormat|withPage)
	turn := r.cmd.Flags().Int64P("turn", "t", 0, "`NUMBER` of the turn (default: the newest one)")
	r.cmd.Flags().Lookup("limit").Usage = "the most `MESSAGES` that were sent, and the most ranges that were not (default: all)"
	r.check(func() error { return checkTurn(r.cmd.Flags(), *turn) })
	return r.do(func(ctx context.Context, app *runtime.App) error {
		m, session, err := r.Conversation(ctx, app)
		if err != nil {
			return err
		}
		report, err := explain.Turn(ctx, m.Memory, session, *turn)
		if err != nil {
			return err
		}
		report.AddPrices(func(model string) *catalogue.Prices { return pricesOf(app.Spec(), model) })
		if r.page != (memoryview.Page{}) {
			report.Select(r.page.From, r.page.Limit)
		}
		if r.format.Value == "json" {
			return terminal.WriteJSON(r.Out, report)
		}
		return report.Write(r.Out)
	})
}

// pricesOf returns the prices of the model that a provider names so; nil if they are unknown.
func pricesOf(app *spec.Application, model string) *catalogue.Prices {
	for _, m := range app.Models {
		if base := m.Base(); base.Name() == model {
			return base.CallPrices()
		}
	}
	return nil
}

// checkTurn returns an error if --turn is given and is not the number of a turn.
func checkTurn(f *pflag.FlagSet, turn int64) error {
	if f.Changed("turn") && turn < 1 {
		return terminal.Usagef("--turn must be 1 or more, not %d: turns are numbered from 1", turn)
	}
	return nil
}

func newFork(s *cli.Streams) *cobra.Command {
	r := newMemoryCommand(s, "fork", "Copy a session, up to a turn, to a new session", withSession)
	to := r.cmd.Flags().String("to", "", "`ID` of the new session (required)")
	turn := r.cmd.Flags().Int64P("turn", "t", 0, "`NUMBER` of the last turn that is copied (default: the newest one)")
	r.check(func() error {
		if *to == "" {
			return terminal.Usagef("fork needs a new session: pass --to")
		}
		return checkTurn(r.cmd.Flags(), *turn)
	})
	return r.inSession(func(ctx context.Context, m memoryview.Memory, session string) error {
		return r.view().Fork(ctx, m, session, r.Stored(*to), *turn)
	})
}

func newRewind(s *cli.Streams) *cobra.Command {
	r := newMemoryCommand(s, "rewind", "Undo the turns of a session after one", withSession)
	r.cmd.Long = `Undoes the turns after one: the window and the variables become what they were after
it. The messages stay in the history. Edits and deletions of messages are turns, too.
Calls of tools are not undone: they are listed, except those that only read.`
	turn := r.cmd.Flags().Int64P("turn", "t", -1, "`NUMBER` of the last turn that stays, 0 for none (required)")
	r.check(func() error {
		switch {
		case !r.cmd.Flags().Changed("turn"):
			return terminal.Usagef("rewind needs the last turn that stays: pass --turn, 0 for none")
		case *turn < 0:
			return terminal.Usagef("--turn must be 0 or more, not %d", *turn)
		}
		return nil
	})
	return r.do(func(ctx context.Context, app *runtime.App) error {
		m, session, err := r.Conversation(ctx, app)
		if err != nil {
			return err
		}
		kept, err := app.Effects(ctx, m.Memory, session, *turn+1)
		if err != nil {
			return err
		}
		if err := r.view().Rewind(ctx, m, session, *turn); err != nil {
			return err
		}
		for _, e := range kept {
			fmt.Fprintf(r.Out, "not undone: %s\n", terminal.Clean(e.String()))
		}
		return nil
	})
}

func newClear(s *cli.Streams) *cobra.Command {
	r := newMemoryCommand(s, "clear", "Delete a session: its window, its history and its context", withSession)
	r.cmd.Flags().Lookup("session").Usage = "`ID` of the session"
	all := r.cmd.Flags().Bool("all", false, "delete all sessions")
	c := confirmation{Streams: s}
	c.addTo(r.cmd.Flags())
	return r.do(func(ctx context.Context, app *runtime.App) error {
		m, err := r.Open(app)
		switch {
		case err != nil:
			return err
		case *all && (r.Session != "" || r.User != ""):
			return terminal.Usagef("--all excludes --session and --user")
		case *all:
			return r.view().ClearAll(ctx, m, func(what string) error { return c.ask("clear", what) })
		case r.Session == "":
			return terminal.Usagef("which session? pass --session or --all")
		}
		sessions := app.SessionsOf(r.Stored(r.Session)) // also those of its FlowTools
		if _, err := memoryview.FindSession(ctx, m, sessions[0]); err != nil {
			return err
		}
		if err := c.ask("clear", fmt.Sprintf("session %s of memory %s", terminal.Clean(r.Session), m.ID)); err != nil {
			return err
		}
		return r.view().Clear(ctx, m, sessions...)
	})
}

func newPrune(s *cli.Streams) *cobra.Command {
	r := newMemoryCommand(s, "prune", "Delete expired sessions", 0)
	return r.do(func(ctx context.Context, app *runtime.App) error {
		declared, err := r.Declared(app.Spec())
		if err != nil {
			return err
		}
		return r.view().Prune(ctx, app, declared)
	})
}
