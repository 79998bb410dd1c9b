package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype/internal/durable"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
)

// runsCommand is one call of a subcommand of qtype runs.
type runsCommand struct {
	*streams
	temporal temporalFlags
	format   *enumFlag
}

func newRuns(s *streams) *cobra.Command {
	list := &runsCommand{streams: s}
	l := &cobra.Command{
		Use: "list", Short: "List the runs of qtype run --engine temporal, the newest first", Args: arguments(),
		RunE: func(c *cobra.Command, _ []string) error { return list.list(c.Context()) },
	}
	list.temporal.addTo(l.Flags())
	list.format = addLineFormat(l)
	show := &runsCommand{streams: s}
	w := &cobra.Command{
		Use: "show ID", Short: "Show a run and how many rows are finished", Args: arguments("the id of a run: qtype runs show ID"),
		RunE: func(c *cobra.Command, args []string) error { return show.show(c.Context(), args[0]) },
	}
	show.temporal.addTo(w.Flags())
	show.format = addLineFormat(w)
	cancel := &runsCommand{streams: s}
	k := &cobra.Command{
		Use: "cancel ID", Short: "Cancel a run; qtype run --resume continues it", Args: arguments("the id of a run: qtype runs cancel ID"),
		RunE: func(c *cobra.Command, args []string) error {
			cfg, err := cancel.temporal.security(cancel.temporal.Config)
			if err != nil {
				return err
			}
			return durable.Cancel(c.Context(), cfg, args[0])
		},
	}
	cancel.temporal.addTo(k.Flags())
	return commandGroup("runs", "List, show, answer and cancel runs on Temporal", l, w, newRunsAnswer(s), k)
}

func (r *runsCommand) list(ctx context.Context) error {
	cfg, err := r.temporal.security(r.temporal.Config)
	if err != nil {
		return err
	}
	all, err := durable.List(ctx, cfg)
	if err != nil {
		return err
	}
	for i := range all {
		if err := r.write(&all[i]); err != nil {
			return err
		}
	}
	return nil
}

func (r *runsCommand) show(ctx context.Context, id string) error {
	cfg, err := r.temporal.security(r.temporal.Config)
	if err != nil {
		return err
	}
	run, err := durable.Show(ctx, cfg, id)
	if err != nil {
		return err
	}
	return r.write(run)
}

// write writes a run on one line.
func (r *runsCommand) write(run *durable.Run) error {
	if r.format.value == "json" {
		return json.NewEncoder(r.Out).Encode(run)
	}
	line := fmt.Sprintf("%s  %s  %s", run.ID, run.Status, run.Started.Local().Format(time.DateTime))
	if run.Rows > 0 {
		line += fmt.Sprintf("  %s, %s failed", textfmt.Count(run.Rows, "row"), textfmt.Thousands(run.Failed))
	}
	if run.Reason != "" {
		line += "  " + run.Reason
	}
	if _, err := io.WriteString(r.Out, terminal.Clean(line)+"\n"); err != nil {
		return err
	}
	return r.writeRequests(run)
}
