// Package runview finds runs of both engines and shows them: `qtype runs`.
package runview

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/qtype-dev/qtype/internal/durable"
	"github.com/qtype-dev/qtype/internal/localruns"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/internal/waves"
)

// Source is where runs are searched.
type Source struct {
	Engine string                         // durable.Local or durable.Temporal; empty for both
	Config func() (durable.Config, error) // the connection to Temporal
	Named  bool                           // the user has named a server of Temporal, which must then answer
}

// usesTemporal reports whether runs on Temporal are included.
func (s *Source) usesTemporal(ctx context.Context) bool {
	return s.Engine == durable.Temporal || s.Engine == "" && (durable.Has(ctx) || s.Named)
}

// Find returns a run by its id, and the configuration for Temporal if it is one of it.
func (s *Source) Find(ctx context.Context, id string) (*durable.Run, durable.Config, error) {
	if s.Engine != durable.Temporal {
		run, err := localruns.Find(id)
		if run != nil || err != nil {
			return run, durable.Config{}, err
		}
	}
	if !s.usesTemporal(ctx) {
		return nil, durable.Config{}, fmt.Errorf("there is no local run %s: qtype runs list has those that were interrupted or wait", id)
	}
	cfg, err := s.Config()
	if err != nil {
		return nil, cfg, err
	}
	engine, err := durable.From(ctx)
	if err != nil {
		return nil, cfg, err
	}
	run, err := engine.Show(ctx, cfg, id)
	return run, cfg, err
}

// List returns the runs that the filter selects, the newest first: local ones of the folders, and
// those of Temporal. It returns what it has together with an error. If Temporal does not answer and
// the user has not named it, warn is called instead.
func (s *Source) List(ctx context.Context, folders []string, filter durable.Filter, warn func(string)) ([]durable.Run, error) {
	var all []durable.Run
	if s.Engine != durable.Temporal {
		local, err := localruns.List(ctx, folders)
		if err != nil {
			return nil, err
		}
		all = slices.DeleteFunc(local, func(run durable.Run) bool { return !filter.Selects(&run) })
	}
	if !s.usesTemporal(ctx) {
		return all, nil
	}
	cfg, err := s.Config()
	if err != nil {
		return nil, err
	}
	remote, err := listRemote(ctx, cfg, filter)
	if err != nil && !s.Named {
		warn("local runs only: " + err.Error())
		err = nil
	}
	all = append(all, remote...)
	slices.SortStableFunc(all, func(a, b durable.Run) int { return b.Started.Compare(a.Started) })
	return all, err
}

// listRemote returns the runs on Temporal.
func listRemote(ctx context.Context, cfg durable.Config, filter durable.Filter) ([]durable.Run, error) {
	engine, err := durable.From(ctx)
	if err != nil {
		return nil, err
	}
	return engine.List(ctx, cfg, filter)
}

// View writes runs.
type View struct {
	Out, Err io.Writer // notes go to Err
	JSON     bool      // one object a line instead of text
}

// List writes runs as a table.
func (v *View) List(all []durable.Run) error {
	if v.JSON {
		return terminal.WriteJSON(v.Out, all...)
	}
	if len(all) == 0 {
		_, err := fmt.Fprintln(v.Err, "there are no runs")
		return err
	}
	rows := [][]string{{"run", "engine", "status", "started", "rows", "failed", "flow"}}
	for i := range all {
		run := &all[i]
		rows = append(rows, []string{run.ID, run.Engine, run.Status, startOf(run), countOf(run.Rows), countOf(run.Failed), run.Flow})
	}
	return writeColumns(v.Out, rows)
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

// maxArguments is the number of characters of arguments that Show writes as text.
const maxArguments = 300

// Show writes a run on one line, and what it waits for on others.
func (v *View) Show(run *durable.Run) error {
	if v.JSON {
		return v.List([]durable.Run{*run})
	}
	line := run.ID + " " + run.Status
	if at := startOf(run); at != "" {
		line += " " + at
	}
	if run.Rows > 0 {
		line += fmt.Sprintf(" %s, %s failed", textfmt.Count(run.Rows, "row"), textfmt.Thousands(run.Failed))
	}
	if run.Repeated > 0 {
		line += fmt.Sprintf(", %s repeated", textfmt.Count(run.Repeated, "call"))
	}
	if run.Reason != "" {
		line += " " + run.Reason
	}
	lines := []string{line}
	for i := range run.Waiting {
		req := &run.Waiting[i]
		wants := "wants to call"
		if req.Kind == durable.ClientTool {
			wants = "needs the result of"
		}
		args := textfmt.Ellipsis(string(req.Arguments), maxArguments)
		if req.InBlobs {
			args = "with arguments that --blobs has"
		}
		lines = append(lines, fmt.Sprintf("%d: row %d, session %s: step %s %s %s %s", req.Number, req.Row, req.Session, req.Step, wants, req.Tool, args))
	}
	lines = append(lines, batchLines(run.Batches)...)
	for i := range lines {
		lines[i] = terminal.Clean(lines[i])
	}
	_, err := fmt.Fprintln(v.Out, strings.Join(lines, "\n  "))
	return errors.Join(err, v.howToAnswer(run))
}

// batchLines returns what a run waits for at providers.
func batchLines(s *waves.Status) (lines []string) {
	if s == nil {
		return nil
	}
	line := fmt.Sprintf("wave %d: %d of %d batches have ended, %s", s.Wave, s.Batches-len(s.Open), s.Batches, textfmt.Count(int64(s.Waiting()), "call")+" left")
	if !s.Expected.IsZero() {
		line += ", expected " + s.Expected.Local().Format(time.DateTime)
	}
	lines = append(lines, line)
	for i := range s.Open {
		b := &s.Open[i]
		lines = append(lines, fmt.Sprintf("batch %s: model %s, %s, %s, since %s", cmp.Or(b.ID, "without an id"), b.Model, cmp.Or(b.State, "not confirmed"), textfmt.Count(int64(b.Calls), "call"), b.Since.Local().Format(time.DateTime)))
	}
	return lines
}

// howToAnswer writes the command that answers the requests of a run.
func (v *View) howToAnswer(run *durable.Run) error {
	if len(run.Waiting) == 0 {
		return nil
	}
	format := "to answer: qtype runs answer %s %d=yes, or =no, or =REASON; for a client tool =RESULT\n"
	if run.Engine == durable.Local {
		format = "to answer, repeat its command with --suspend %s --answer %d=yes, or =no, or =REASON\n"
	}
	_, err := fmt.Fprintf(v.Err, format, terminal.Clean(run.ID), run.Waiting[0].Number)
	return err
}
