package optimize

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/eval/evalrun"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
)

// Report is the result of an optimization.
type Report struct {
	Version    int                    `json:"version"`
	App        string                 `json:"app"`        // the id of the application
	Flow       string                 `json:"flow"`       // the id of the flow
	Data       string                 `json:"data"`       // the file with the rows
	Metric     string                 `json:"metric"`     // that is improved
	Training   int                    `json:"training"`   // rows that the model sees
	Validation int                    `json:"validation"` // rows by which candidates are selected
	HeldOut    int                    `json:"held_out"`   // rows that decide
	Found      bool                   `json:"found"`      // the best candidate is significantly better with held-out rows
	Best       string                 `json:"best"`       // the id of the best candidate with validation rows; base for the document
	Results    []Change               `json:"results,omitempty"`
	Before     Used                   `json:"before"` // held-out rows with the document
	After      Used                   `json:"after"`  // and with the best candidate
	Changes    []File                 `json:"changes,omitempty"`
	Stopped    string                 `json:"stopped"` // why the search has ended
	Runs       int                    `json:"runs"`    // of rows
	Proposals  int                    `json:"proposals"`
	Money      float64                `json:"money"`      // of all models, by their prices
	Candidates []*Candidate           `json:"candidates"` // in the order in which they were tried
	Metrics    []evalrun.MetricReport `json:"metrics"`

	took time.Duration
}

// Change is a metric of the held-out rows.
type Change struct {
	Before     evalrun.Summary    `json:"before"`
	After      evalrun.Summary    `json:"after"`
	Comparison evalrun.Comparison `json:"comparison"`
}

// Used is what a row uses on average.
type Used struct {
	Seconds float64 `json:"seconds"`
	Tokens  float64 `json:"tokens"`
	Money   float64 `json:"money"` // 0 if a model has no prices
}

// File is a changed file.
type File struct {
	Path  string `json:"path"`
	Patch string `json:"patch"` // a unified diff

	old, text []byte
}

// line describes a candidate for the log.
func (s *search) line(c *Candidate) string {
	var b strings.Builder
	switch {
	case c.ID != "" && c.ID != "base":
		fmt.Fprintf(&b, "%s from %s", c.ID, c.Parent)
	default:
		b.WriteString(c.ID + c.Parent)
	}
	if c.MergedWith != "" {
		b.WriteString(" and " + c.MergedWith)
	}
	for i, address := range c.Changed {
		b.WriteString([]string{": ", ", "}[min(i, 1)] + address)
		if s.text(address) == nil {
			fmt.Fprintf(&b, " = %s", valueText(c.Values[address]))
		}
	}
	if c.Before != nil {
		fmt.Fprintf(&b, "; training %s to %s", s.metric.Format(*c.Before), s.metric.Format(*c.Training))
	} else if c.Training != nil {
		fmt.Fprintf(&b, "; training %s", s.metric.Format(*c.Training))
	}
	if c.Validation != nil {
		fmt.Fprintf(&b, "; validation %s", s.metric.Format(*c.Validation))
	}
	if c.P != nil && *c.P < 1 {
		fmt.Fprintf(&b, ", p = %.2g", *c.P)
	}
	return b.String() + "; " + c.Verdict
}

// Text writes the report for people.
func (r *Report) Text(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s · flow %s · %s, from %s\n\n", r.App, r.Flow, r.Metric, r.Data)
	fmt.Fprintf(&b, "%s for training, %d for validation, %d held out\n", textfmt.Count(int64(r.Training), "row"), r.Validation, r.HeldOut)
	fmt.Fprintf(&b, "%s, %s of rows, money %s%s; ended by: %s\n", textfmt.Count(int64(r.Proposals), "proposal"),
		textfmt.Count(int64(r.Runs), "run"), textfmt.Amount(r.Money), textfmt.Took(r.took), r.Stopped)
	if len(r.Results) > 0 {
		r.table(&b)
	}
	switch {
	case r.Found:
		fmt.Fprintf(&b, "\nfound: candidate %s is better with held-out rows\n", r.Best)
	case len(r.Results) > 0:
		fmt.Fprintf(&b, "\nnothing significant was found: candidate %s is better with validation rows, and not with held-out rows\n", r.Best)
	default:
		b.WriteString("\nnothing significant was found: no candidate is significantly better with validation rows, and held-out rows were not run\n")
	}
	_, err := io.WriteString(terminal.EscapeAll(w), b.String())
	return err
}

// table writes the metrics of the held-out rows.
func (r *Report) table(b *strings.Builder) {
	rows := [][]string{{"held-out rows", "before", "after", "difference", "p"}}
	for i, c := range r.Results {
		m := r.Metrics[i]
		sign := func(v float64) string {
			if v > 0 {
				return "+" + m.Format(v)
			}
			return m.Format(v)
		}
		d := c.Comparison
		rows = append(rows, []string{m.ID, m.Format(c.Before.Mean), m.Format(c.After.Mean), fmt.Sprintf("%s (%s to %s)", sign(d.Difference), sign(d.Low), sign(d.High)), fmt.Sprintf("%.2g", d.P)})
	}
	rows = append(rows, []string{"seconds per row", fmt.Sprintf("%.3f", r.Before.Seconds), fmt.Sprintf("%.3f", r.After.Seconds)},
		[]string{"tokens per row", fmt.Sprintf("%.1f", r.Before.Tokens), fmt.Sprintf("%.1f", r.After.Tokens)})
	if r.Before.Money > 0 || r.After.Money > 0 {
		rows = append(rows, []string{"money per row", textfmt.Amount(r.Before.Money), textfmt.Amount(r.After.Money)})
	}
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	b.WriteByte('\n')
	for _, row := range rows {
		line := ""
		for i, cell := range row {
			line += cell + strings.Repeat(" ", widths[i]-len([]rune(cell))+2)
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// Patch returns the changes as a unified diff for patch -p1 and git apply; empty if nothing was found.
func (r *Report) Patch() string {
	var b strings.Builder
	for _, f := range r.Changes {
		b.WriteString(f.Patch)
	}
	return b.String()
}

// JSON writes the report.
func (r *Report) JSON(w io.Writer) error { return textfmt.WriteJSON(w, r) }

// write writes the patch to a file; an empty name is for none.
func (r *Report) write(path string) error {
	if path == "" {
		return nil
	}
	if err := os.WriteFile(path, []byte(r.Patch()), 0o644); err != nil {
		return fmt.Errorf("%s: %w: %w", path, evalrun.ErrNotWritten, terminal.Cause(err))
	}
	return nil
}

// Apply writes the changed files. It changes none if one is not any more as it was read.
func (r *Report) Apply() error {
	for _, f := range r.Changes {
		now, err := os.ReadFile(f.Path)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", f.Path, terminal.Cause(err))
		case !bytes.Equal(now, f.old):
			return fmt.Errorf("%s has changed during the optimization: apply the patch", f.Path)
		}
	}
	for _, f := range slices.Clone(r.Changes) {
		if err := os.WriteFile(f.Path, f.text, 0o644); err != nil {
			return fmt.Errorf("%s: %w: %w", f.Path, evalrun.ErrNotWritten, terminal.Cause(err))
		}
	}
	return nil
}
