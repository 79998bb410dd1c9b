package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/runtime"
)

// memoryBranch is one call of a subcommand that forks or rewinds a session.
type memoryBranch struct {
	memoryCommand
	to string // fork: the new session
}

func newFork(s *streams) *cobra.Command {
	r := &memoryBranch{memoryCommand: memoryCommand{streams: s}}
	c := r.withSession(r.command("fork", "Copy a session, up to a turn, to a new session", r.fork))
	c.Flags().StringVar(&r.to, "to", "", "`ID` of the new session (required)")
	c.Flags().Int64VarP(&r.turn, "turn", "t", 0, "`NUMBER` of the last turn that is copied (default: the newest one)")
	return c
}

func (r *memoryBranch) fork(ctx context.Context, app *runtime.App) error {
	if r.to == "" {
		return usagef("fork needs a new session: pass --to")
	}
	m, err := r.conversation(ctx, app)
	if err != nil {
		return err
	}
	to := r.stored(r.to)
	if err := m.Fork(ctx, r.session, to, r.turn); err != nil {
		return err
	}
	_, err = fmt.Fprintf(r.Out, "memory %s: session %s forked to %s\n", m.ID, terminal.Clean(r.session), terminal.Clean(to))
	return err
}

func newRewind(s *streams) *cobra.Command {
	r := &memoryBranch{memoryCommand: memoryCommand{streams: s}}
	c := r.withSession(r.command("rewind", "Undo the turns of a session after one", r.rewind))
	c.Long = `Undoes the turns after one: the window and the variables become what they were after
it. The messages stay in the history. Edits and deletions of messages are turns, too.`
	c.Flags().Int64VarP(&r.turn, "turn", "t", -1, "`NUMBER` of the last turn that stays, 0 for none (required)")
	return c
}

func (r *memoryBranch) rewind(ctx context.Context, app *runtime.App) error {
	if r.turn < 0 {
		return usagef("rewind needs the last turn that stays: pass --turn, 0 for none")
	}
	m, err := r.conversation(ctx, app)
	if err != nil {
		return err
	}
	if err := m.RewindTo(ctx, r.session, r.turn); err != nil {
		return err
	}
	to := fmt.Sprintf("turn %d", r.turn)
	if r.turn == 0 {
		to = "the beginning"
	}
	_, err = fmt.Fprintf(r.Out, "memory %s: session %s rewound to %s\n", m.ID, terminal.Clean(r.session), to)
	return err
}
