package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/user"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/memoryview"
	"github.com/qtype-dev/qtype/internal/memoryview/explain"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
)

// memoryCommand is one call of a subcommand of qtype memory.
type memoryCommand struct {
	*streams
	memory  string // the memory's id; may be empty if the document has only one
	session string
	user    string
	all     bool
	turn    int64
	full    bool
	page    memoryview.Page // show, history: the messages
	format  *enumFlag
	store   storeFlag
}

func newMemory(s *streams) *cobra.Command {
	r := func() *memoryCommand { return &memoryCommand{streams: s} }
	return commandGroup("memory", "Inspect and manage stored conversations",
		newList(s), r().newShow(), r().newHistory(), r().newExplain(), newExport(s), newFacts(s), newForget(s), newImport(s), newMemorySearch(s), newFork(s), newCopy(s), newReencrypt(s), newRewind(s), newEditMessage(s), newDeleteMessage(s), newPin(s), newUnpin(s), r().newClear(), r().newPrune(), newReplay(s))
}

// command makes a subcommand for the memories of a document.
func (r *memoryCommand) command(use, short string, run func(context.Context, *runtime.App) error) *cobra.Command {
	c := &cobra.Command{
		Use: use + " APP", Short: short,
		Args: arguments("a document: qtype memory " + use + " APP"), ValidArgsFunction: yamlFiles,
		RunE: func(c *cobra.Command, args []string) (err error) {
			if err := checkUser(c.Flags()); err != nil {
				return err
			}
			// Without WithStrict: unset environment variables matter only to runs.
			p, list := qtype.Check(c.Context(), args[0])
			if err := list.Err(); err != nil {
				return err
			}
			opts, err := r.store.options(false)
			if err != nil {
				return err
			}
			app, err := qtype.New(p, append(opts, qtype.WithWarnings(r.Logger("warning: ")))...)
			if err != nil {
				return err
			}
			defer closeApp(c.Context(), app, &err)
			return run(memory.WithActor(c.Context(), actor()), app)
		},
	}
	r.withMemory(c)
	r.store.addTo(c.Flags())
	return c
}

// actor returns the name of the user of the system, for audit logs.
func actor() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return ""
}

func (r *memoryCommand) withMemory(c *cobra.Command) {
	c.Flags().StringVarP(&r.memory, "memory", "m", "", "`ID` of the memory (default: the only one)")
}

func (r *memoryCommand) withFormat(c *cobra.Command) *cobra.Command {
	r.format = addLineFormat(c)
	return c
}

func (r *memoryCommand) withSession(c *cobra.Command) *cobra.Command {
	c.Flags().StringVarP(&r.session, "session", "s", "", "`ID` of the session (default: the only one)")
	c.Flags().StringVar(&r.user, "user", "", "`USER` to whom the session belongs")
	return c
}

func (r *memoryCommand) newShow() *cobra.Command {
	c := r.withFormat(r.withSession(r.command("show", "Show the context that the next model call would receive", func(ctx context.Context, app *runtime.App) error {
		m, err := r.conversation(ctx, app)
		if err != nil {
			return err
		}
		return r.view().Window(ctx, m, r.session, r.page)
	})))
	return r.withPage(c)
}

func (r *memoryCommand) newHistory() *cobra.Command {
	c := r.withFormat(r.withSession(r.command("history", "Show all messages of a session", func(ctx context.Context, app *runtime.App) error {
		m, err := r.conversation(ctx, app)
		if err != nil {
			return err
		}
		return r.view().History(ctx, m, r.session, r.page)
	})))
	c.Flags().BoolVar(&r.full, "full", false, "all lines of the messages, instead of one line for each")
	return r.withPage(c)
}

func (r *memoryCommand) newExplain() *cobra.Command {
	c := r.withFormat(r.withSession(r.command("explain", "Explain what a past turn sent to the model", r.explain)))
	c.Flags().Int64VarP(&r.turn, "turn", "t", 0, "`NUMBER` of the turn (default: the newest one)")
	r.withPage(c)
	c.Flags().Lookup("limit").Usage = "the most `MESSAGES` that were sent, and the most ranges that were not (default: all)"
	return c
}

func (r *memoryCommand) explain(ctx context.Context, app *runtime.App) error {
	if r.turn < 0 {
		return usagef("--turn must be positive, not %d", r.turn)
	}
	m, err := r.conversation(ctx, app)
	if err != nil {
		return err
	}
	report, err := explain.Turn(ctx, m.Memory, r.session, r.turn)
	if err != nil {
		return err
	}
	if r.page != (memoryview.Page{}) {
		report.Select(r.page.From, r.page.Limit)
	}
	if r.format.value == "json" {
		enc := json.NewEncoder(r.Out)
		enc.SetEscapeHTML(false)
		return enc.Encode(report)
	}
	return report.Write(r.Out)
}

func (r *memoryCommand) newClear() *cobra.Command {
	c := r.withSession(r.command("clear", "Delete a session: its window, its history and its context", r.clear))
	c.Flags().Lookup("session").Usage = "`ID` of the session"
	c.Flags().BoolVar(&r.all, "all", false, "delete all sessions")
	return c
}

func (r *memoryCommand) clear(ctx context.Context, app *runtime.App) error {
	declared, err := r.one(app.Spec())
	if err != nil {
		return err
	}
	m := memoryview.Of(app, declared.ID)
	switch {
	case r.all && (r.session != "" || r.user != ""):
		return usagef("--all excludes --session and --user")
	case r.all:
		return r.view().ClearAll(ctx, m)
	case r.session == "":
		return usagef("which session? pass --session or --all")
	}
	r.session = r.stored(r.session)
	if _, err := memoryview.FindSession(ctx, m, r.session); err != nil {
		return err
	}
	if err := r.view().Clear(ctx, m, r.session); err != nil {
		return err
	}
	for _, session := range app.SessionsOf(r.session)[1:] { // those of its FlowTools
		if _, err := memoryview.FindSession(ctx, m, session); err != nil {
			continue
		}
		if err := r.view().Clear(ctx, m, session); err != nil {
			return err
		}
	}
	return nil
}

func (r *memoryCommand) newPrune() *cobra.Command {
	return r.command("prune", "Delete expired sessions", func(ctx context.Context, app *runtime.App) error {
		declared, err := r.declared(app.Spec())
		if err != nil {
			return err
		}
		for _, m := range declared {
			if m.TTL == 0 {
				fmt.Fprintf(r.Out, "memory %s has no ttl: its sessions do not expire\n", m.ID)
				continue
			}
			n, err := app.Memory(m.ID).Prune(ctx)
			if err != nil {
				return err
			}
			fmt.Fprintf(r.Out, "memory %s: %s deleted\n", m.ID, textfmt.Count(n, "session"))
		}
		return nil
	})
}

// view returns a view as wide as the terminal.
func (r *memoryCommand) view() *memoryview.View {
	v := &memoryview.View{Out: r.Out, Full: r.full, JSON: r.format != nil && r.format.value == "json"}
	if r.OutTerminal {
		v.Width = r.Width
	}
	return v
}

// declared returns the memory of --memory, or all.
func (r *memoryCommand) declared(app *spec.Application) ([]*spec.Memory, error) {
	ids := memoryIDs(app.Memories)
	for _, m := range app.Memories {
		if m.ID == r.memory {
			return []*spec.Memory{m}, nil
		}
	}
	switch {
	case r.memory != "":
		return nil, usagef("no memory has the id %q; there are: %s%s", r.memory, textfmt.List(ids), diag.DidYouMean(r.memory, ids))
	case len(ids) == 0:
		return nil, fmt.Errorf("application %s declares no memory", app.ID)
	}
	return app.Memories, nil
}

func memoryIDs(memories []*spec.Memory) []string {
	var ids []string
	for _, m := range memories {
		ids = append(ids, m.ID)
	}
	return ids
}

// one returns the memory of --memory, or the only one.
func (r *memoryCommand) one(app *spec.Application) (*spec.Memory, error) {
	all, err := r.declared(app)
	if err != nil {
		return nil, err
	}
	if len(all) > 1 {
		return nil, usagef("which memory? --memory is one of %s", textfmt.List(memoryIDs(all)))
	}
	return all[0], nil
}

func (r *memoryCommand) memories(app *runtime.App) ([]memoryview.Memory, error) {
	declared, err := r.declared(app.Spec())
	var all []memoryview.Memory
	for _, m := range declared {
		all = append(all, memoryview.Of(app, m.ID))
	}
	return all, err
}

// conversation returns the memory of the call and sets its session.
func (r *memoryCommand) conversation(ctx context.Context, app *runtime.App) (memoryview.Memory, error) {
	declared, err := r.one(app.Spec())
	if err != nil {
		return memoryview.Memory{}, err
	}
	m := memoryview.Of(app, declared.ID)
	r.session, err = r.findSession(ctx, m)
	if ambiguous := (*memoryview.AmbiguousSessionError)(nil); errors.As(err, &ambiguous) {
		err = usagef("%s", ambiguous)
	}
	return m, err
}
