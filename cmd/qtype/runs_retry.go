package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype/internal/durable"
	"github.com/qtype-dev/qtype/internal/localruns"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
)

func newRunsRetry(s *streams) *cobra.Command {
	r := &runsCommand{streams: s}
	c := &cobra.Command{
		Use: "retry ID", Short: "Continue a run that was interrupted, canceled or has failed", Args: arguments("the id of a run: qtype runs retry ID"),
		Long: `Continues a run that was interrupted, canceled or has failed. Finished rows are kept.

A local run is continued by this command, as by the command of the run with --resume. A run on Temporal is
continued by the workers; the command of the run with --resume writes its output.`,
		Example: `  qtype runs retry replies.parquet
  qtype runs retry qtype-shop-triage-5d41402abc4b2a76b971`,
		RunE: func(c *cobra.Command, args []string) error { return r.retry(c.Context(), args[0]) },
	}
	r.addTo(c)
	return c
}

func (r *runsCommand) retry(ctx context.Context, id string) error {
	run, cfg, err := r.find(ctx, id)
	if err != nil {
		return err
	}
	if run.Engine == durable.Local {
		return r.repeat(ctx, run)
	}
	if err := durable.Retry(ctx, cfg, run.ID); err != nil {
		return err
	}
	_, err = fmt.Fprintf(r.Err, "%s continues; the command of the run with --resume writes its output\n", terminal.Clean(run.ID))
	return err
}

// repeat runs the command of a local run again, in its folder.
func (r *runsCommand) repeat(ctx context.Context, run *durable.Run) error {
	args, folder, err := localruns.RetryCommand(run)
	if err != nil {
		return err
	}
	if err := os.Chdir(folder); err != nil {
		return fmt.Errorf("the folder of the run cannot be used: %w", err)
	}
	line := "qtype"
	for _, a := range args {
		line += " " + textfmt.ShellQuote(a)
	}
	fmt.Fprintln(r.Err, terminal.Clean(line))
	r.args = args
	root := newRoot(r.streams)
	root.SetArgs(joinTrace(joinShorts(args)))
	return root.ExecuteContext(ctx)
}
