package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	memoryexplain "github.com/qtype-dev/qtype/internal/memoryview/explain"
	"github.com/qtype-dev/qtype/internal/memoryview/replay"
	"github.com/qtype-dev/qtype/runtime"
)

// memoryExplainCommand is one call of qtype memory explain or export.
type memoryExplainCommand struct {
	memoryCommand
	turn   int64
	failed bool
	values bool
}

func newExplainTurn(s *streams) *cobra.Command {
	r := &memoryExplainCommand{memoryCommand: memoryCommand{streams: s}}
	c := r.withFormat(r.withSession(r.command("explain", "Tell what a past turn sent to the model, and why the rest was left out", r.explain)))
	c.Flags().Int64VarP(&r.turn, "turn", "t", 0, "the turn's `NUMBER`; the newest one where it is left out")
	return c
}

func (r *memoryExplainCommand) explain(ctx context.Context, app *runtime.App) error {
	if r.turn < 0 {
		return usagef("--turn must be positive, not %d", r.turn)
	}
	m, err := r.conversation(ctx, app)
	if err != nil {
		return err
	}
	report, err := memoryexplain.Turn(ctx, m, r.session, r.turn)
	if err != nil {
		return err
	}
	if r.format.value == "json" {
		enc := json.NewEncoder(r.out)
		enc.SetEscapeHTML(false)
		return enc.Encode(report)
	}
	return report.Write(r.out)
}

func newExport(s *streams) *cobra.Command {
	r := &memoryExplainCommand{memoryCommand: memoryCommand{streams: s}}
	c := r.withSession(r.command("export", "Write what was said in a session as JSON lines, as OpenAI writes messages", r.export))
	c.Flags().BoolVar(&r.failed, "failed", false, "also what was said in turns that failed")
	c.Flags().BoolVar(&r.values, "variables", false, "also the session's named values, as the operation that sets them in qtype memory replay")
	return c
}

func (r *memoryExplainCommand) export(ctx context.Context, app *runtime.App) error {
	m, err := r.conversation(ctx, app)
	if err != nil {
		return err
	}
	if err := replay.Export(ctx, m, r.session, r.out, r.failed); err != nil || !r.values {
		return err
	}
	return replay.ExportVariables(ctx, m, r.session, r.out)
}

func newPrune(s *streams) *cobra.Command {
	r := &memoryCommand{streams: s}
	return r.command("prune", "Delete the sessions that nobody touched for longer than the ttl", r.prune)
}

func (r *memoryCommand) prune(ctx context.Context, app *runtime.App) error {
	declared, err := r.declared(app.Spec())
	if err != nil {
		return err
	}
	for _, m := range declared {
		if m.TTL == 0 {
			fmt.Fprintf(r.out, "memory %s has no ttl: its sessions are kept\n", m.ID)
			continue
		}
		n, err := app.Memory(m.ID).Prune(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintf(r.out, "memory %s: %s deleted\n", m.ID, count(n, "session"))
	}
	return nil
}
