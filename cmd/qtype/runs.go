package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"
	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype/internal/durable"
	"github.com/qtype-dev/qtype/internal/localruns"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
)

// runsCommand is one call of a subcommand of qtype runs.
type runsCommand struct {
	*streams
	temporal temporalFlags
	engine   *enumFlag
	format   *enumFlag
	filter   durable.Filter
	folders  []string
}

func newRuns(s *streams) *cobra.Command {
	return commandGroup("runs", "List, show, answer, cancel and retry runs of both engines", newRunsList(s), newRunsShow(s), newRunsAnswer(s), newRunsCancel(s), newRunsRetry(s))
}

func newRunsList(s *streams) *cobra.Command {
	r := &runsCommand{streams: s}
	c := &cobra.Command{
		Use: "list", Short: "List runs, the newest first", Args: arguments(),
		Long: `Lists the runs of both engines, the newest first: those of qtype run --engine temporal, as long as
Temporal has them, and local ones that run, were interrupted or wait for approvals, by their
files in the working directory and the folders in it. A local run that is complete leaves no such file.`,
		Example: `  qtype runs list
  qtype runs list --engine temporal --flow triage --user ada`,
		RunE: func(c *cobra.Command, _ []string) error { return r.list(c.Context()) },
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringArrayVar(&r.folders, "in", nil, "search this `FOLDER` for local runs (repeatable; default: the working directory)")
	f.StringVar(&r.filter.Flow, "flow", "", "only runs of the flow with this `ID`")
	f.StringVar(&r.filter.Session, "session", "", "only runs with the session with this `ID`")
	f.StringVar(&r.filter.User, "user", "", "only runs with a session of this `USER`")
	r.addTo(c)
	r.format = addLineFormat(c)
	return c
}

func newRunsShow(s *streams) *cobra.Command {
	r := &runsCommand{streams: s}
	c := &cobra.Command{
		Use: "show ID", Short: "Show a run: how many rows are finished, and what it waits for", Args: arguments("the id of a run: qtype runs show ID"),
		RunE: func(c *cobra.Command, args []string) error {
			run, _, err := r.find(c.Context(), args[0])
			if err != nil {
				return err
			}
			return r.show(run)
		},
	}
	r.addTo(c)
	r.format = addLineFormat(c)
	return c
}

func newRunsCancel(s *streams) *cobra.Command {
	r := &runsCommand{streams: s}
	c := &cobra.Command{
		Use: "cancel ID", Short: "Cancel a run; qtype runs retry and qtype run --resume continue it", Args: arguments("the id of a run: qtype runs cancel ID"),
		RunE: func(c *cobra.Command, args []string) error {
			run, cfg, err := r.find(c.Context(), args[0])
			if err != nil {
				return err
			}
			if run.Engine == durable.Local {
				return localruns.Cancel(run)
			}
			return durable.Cancel(c.Context(), cfg, run.ID)
		},
	}
	r.addTo(c)
	return c
}

// addTo adds the flags that all subcommands have.
func (r *runsCommand) addTo(c *cobra.Command) {
	r.engine = newEnumFlag("", durable.Local, durable.Temporal)
	r.engine.addTo(c, "engine", "", "local or temporal (default: both, Temporal in a build that has its client)")
	r.temporal.addTo(c.Flags())
}

// isNamed reports whether the user has named a server of Temporal.
func (r *runsCommand) isNamed() bool {
	return r.engine.value == durable.Temporal || os.Getenv("TEMPORAL_ADDRESS") != "" ||
		slices.ContainsFunc(r.temporal.names(), func(name string) bool { return r.temporal.set.Changed(name) })
}

// usesTemporal reports whether runs on Temporal are included.
func (r *runsCommand) usesTemporal() bool {
	return r.engine.value != durable.Local && (durable.HasClient || r.isNamed())
}

// find returns a run by its id, and the configuration for Temporal if it is one of it.
func (r *runsCommand) find(ctx context.Context, id string) (*durable.Run, durable.Config, error) {
	if r.engine.value != durable.Temporal {
		run, err := localruns.Find(id)
		if run != nil || err != nil {
			return run, durable.Config{}, err
		}
	}
	if !r.usesTemporal() {
		return nil, durable.Config{}, fmt.Errorf("there is no local run %s: qtype runs list has those that were interrupted or wait", id)
	}
	cfg, err := r.temporal.security(r.temporal.Config)
	if err != nil {
		return nil, cfg, err
	}
	run, err := durable.Show(ctx, cfg, id)
	return run, cfg, err
}

func (r *runsCommand) list(ctx context.Context) error {
	var all []durable.Run
	if r.engine.value != durable.Temporal {
		if len(r.folders) == 0 {
			r.folders = []string{"."}
		}
		local, err := localruns.List(ctx, r.folders)
		if err != nil {
			return err
		}
		all = slices.DeleteFunc(local, func(run durable.Run) bool { return !r.filter.Selects(&run) })
	}
	var failed error
	if r.usesTemporal() {
		cfg, err := r.temporal.security(r.temporal.Config)
		if err != nil {
			return err
		}
		remote, err := durable.List(ctx, cfg, r.filter)
		if failed = err; err != nil && !r.isNamed() {
			fmt.Fprintf(r.Err, "local runs only: %s\n", terminal.Clean(err.Error()))
			failed = nil
		}
		all = append(all, remote...)
		slices.SortStableFunc(all, func(a, b durable.Run) int { return b.Started.Compare(a.Started) })
	}
	return errors.Join(r.write(all), failed)
}

// write writes runs as a table, or one object a line.
func (r *runsCommand) write(all []durable.Run) error {
	if r.format.value == "json" {
		enc := json.NewEncoder(r.Out)
		enc.SetEscapeHTML(false)
		for i := range all {
			if err := enc.Encode(&all[i]); err != nil {
				return err
			}
		}
		return nil
	}
	if len(all) == 0 {
		_, err := fmt.Fprintln(r.Err, "there are no runs")
		return err
	}
	rows := [][]string{{"run", "engine", "status", "started", "rows", "failed", "flow"}}
	for i := range all {
		run := &all[i]
		rows = append(rows, []string{run.ID, run.Engine, run.Status, startOf(run), countOf(run.Rows), countOf(run.Failed), run.Flow})
	}
	return writeColumns(r.Out, rows)
}

// writeColumns writes rows whose cells are aligned to the left.
func writeColumns(out io.Writer, rows [][]string) error {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i := range row {
			row[i] = terminal.Clean(row[i])
			widths[i] = max(widths[i], runewidth.StringWidth(row[i]))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(terminal.Pad(cell, widths[i]) + "  ")
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// startOf returns when a run began; nothing if that is not known.
func startOf(run *durable.Run) string {
	if run.Started.IsZero() {
		return ""
	}
	return run.Started.Local().Format(time.DateTime)
}

// countOf returns a number of rows; nothing if there are none, or they are not known.
func countOf(n int64) string {
	if n == 0 {
		return ""
	}
	return textfmt.Thousands(n)
}

// show writes a run on one line, and what it waits for on others.
func (r *runsCommand) show(run *durable.Run) error {
	if r.format.value == "json" {
		return r.write([]durable.Run{*run})
	}
	line := run.ID + " " + run.Status
	if at := startOf(run); at != "" {
		line += " " + at
	}
	if run.Rows > 0 {
		line += fmt.Sprintf(" %s, %s failed", textfmt.Count(run.Rows, "row"), textfmt.Thousands(run.Failed))
	}
	if run.Reason != "" {
		line += " " + run.Reason
	}
	if _, err := io.WriteString(r.Out, terminal.Clean(line)+"\n"); err != nil {
		return err
	}
	return r.writeRequests(run)
}
