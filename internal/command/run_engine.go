package command

import (
	"context"

	"github.com/qtype-dev/qtype/internal/durable"
	"github.com/qtype-dev/qtype/internal/terminal"
)

// checkEngine rejects flags that an engine does not have.
func (r *runCommand) checkEngine() error {
	isTemporal := r.engine.Value == "temporal"
	if err := r.temporal.Check(isTemporal); err != nil || !isTemporal {
		return err
	}
	if r.batch.Value != "" {
		return terminal.Usagef("--batch is not available with --engine temporal")
	}
	if r.suspend.file != "" {
		return terminal.Usagef("--suspend is not available with --engine temporal")
	}
	if r.clients.User.Deny {
		return terminal.Usagef("--deny is not available with --engine temporal: rows wait for qtype runs answer")
	}
	for _, name := range []string{"client-tool", "approve", "store"} {
		if r.flags.Lookup(name).Changed {
			return terminal.Usagef("--%s is a flag of qtype worker with --engine temporal: workers run the rows", name)
		}
	}
	return nil
}

// openEngine sets the engine of the run; that of this process needs none.
func (r *runCommand) openEngine(ctx context.Context, document string) error {
	if r.engine.Value != "temporal" {
		return nil
	}
	engine, err := durable.From(ctx)
	if err != nil {
		return err
	}
	cfg, err := r.temporal.At(document)
	if err != nil {
		return err
	}
	r.Engine = engine.Batch(cfg)
	return nil
}
