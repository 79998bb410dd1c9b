package evalrun

import (
	"fmt"
	"io"
	"strings"

	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
)

// JSON writes the report for machines and as a baseline.
func (r *Report) JSON(w io.Writer) error {
	return textfmt.WriteJSON(w, r)
}

// Text writes the report for a terminal.
func (r *Report) Text(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s · flow %s · %s from %s\n\n", r.App, r.Flow, r.Run(), terminal.Clean(r.Data))
	lines := r.table("metric")
	writeColumns(&b, lines)
	r.writeTrials(&b)
	r.writeComparisons(&b)
	r.writeChanges(&b)
	b.WriteByte('\n')
	for _, v := range r.Variants {
		fmt.Fprintf(&b, "%s: %s done, %s failed, tokens %s in, %s out%s\n", terminal.Clean(v.ID), textfmt.Thousands(r.Rows*max(r.Trials, 1)-v.Failed), textfmt.Thousands(v.Failed),
			textfmt.Thousands(v.Usage.Input), textfmt.Thousands(v.Usage.Output), money(v.Usage)+scoring(v))
	}
	for _, w := range r.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", terminal.Clean(w))
	}
	for _, v := range r.Violations {
		fmt.Fprintf(&b, "failed: %s\n", terminal.Clean(v))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// scoring returns what judges and simulated users have cost.
func scoring(v VariantReport) string {
	if v.Scoring == 0 {
		return ""
	}
	return ", scoring " + formatValue("money", v.Scoring)
}

func money(u Usage) string {
	switch {
	case len(u.Unpriced) > 0:
		return ", cost unknown: " + textfmt.List(u.Unpriced) + " has no prices"
	case u.Money > 0:
		return ", cost " + formatValue("money", u.Money)
	}
	return ""
}

// cell returns a mean with its interval.
func (m MetricReport) cell(s Summary) string {
	switch {
	case s.Count == 0:
		return "no value"
	case s.Clusters == 1 && m.Unit != "": // a single one has no interval; reports of earlier versions have no number
		return formatValue(m.Unit, s.Mean)
	}
	return fmt.Sprintf("%s (%s to %s)", formatValue(m.Unit, s.Mean), formatValue(m.Unit, s.Low), formatValue(m.Unit, s.High))
}

func writeColumns(b *strings.Builder, lines [][]string) {
	for _, line := range lines {
		for i := range line {
			line[i] = terminal.Clean(line[i])
		}
	}
	widths := make([]int, len(lines[0]))
	for _, line := range lines {
		for i, cell := range line {
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	for _, line := range lines {
		var padded []string
		for i, cell := range line {
			padded = append(padded, cell+strings.Repeat(" ", widths[i]-len([]rune(cell))))
		}
		fmt.Fprintln(b, strings.TrimRight(strings.Join(padded, "  "), " "))
	}
}

func (r *Report) writeComparisons(b *strings.Builder) {
	if len(r.Comparisons) == 0 {
		return
	}
	lines := [][]string{{"difference", "variants", "mean", "better", "worse", ""}}
	for _, c := range r.Comparisons {
		lines = append(lines, []string{c.Metric, c.From + " → " + c.To, r.difference(c), fmt.Sprint(c.Better), fmt.Sprint(c.Worse), r.verdict(c)})
	}
	b.WriteByte('\n')
	writeColumns(b, lines)
}

// verdict returns whether a difference is significant, and, if not, which one would be found.
func (r *Report) verdict(c Comparison) string {
	switch {
	case c.Significant():
		return fmt.Sprintf("significant (p = %.3f)", c.P)
	case c.Detectable > 0 && (c.Detectable <= 1 || r.unit(c.Metric) != ""):
		return fmt.Sprintf("not significant (p = %.2f; from %s on it would be found)", c.P, formatValue(r.unit(c.Metric), c.Detectable))
	}
	return fmt.Sprintf("not significant (p = %.2f)", c.P)
}

func (r *Report) difference(c Comparison) string {
	unit, sign := r.unit(c.Metric), ""
	if c.Difference > 0 {
		sign = "+"
	}
	return fmt.Sprintf("%s%s (%s to %s)", sign, formatValue(unit, c.Difference), formatValue(unit, c.Low), formatValue(unit, c.High))
}

func (r *Report) unit(metric string) string {
	for _, m := range r.Metrics {
		if m.ID == metric {
			return m.Unit
		}
	}
	return ""
}

func (r *Report) writeChanges(b *strings.Builder) {
	if len(r.Baseline) == 0 {
		return
	}
	lines := [][]string{{"baseline", "variant", "before", "now", ""}}
	for _, c := range r.Baseline {
		lines = append(lines, []string{c.Metric, c.Variant, formatValue(r.unit(c.Metric), c.Before), formatValue(r.unit(c.Metric), c.Now), c.verdict()})
	}
	b.WriteByte('\n')
	writeColumns(b, lines)
}

func (c *Change) verdict() string {
	switch {
	case c.Regression:
		return "regression"
	case c.Note != "":
		return c.Note
	}
	return "ok"
}

// table returns the names of the variants after a heading, and a line for each metric and rate.
func (r *Report) table(heading string) [][]string {
	lines := [][]string{{heading}}
	for _, v := range r.Variants {
		lines[0] = append(lines[0], v.ID)
	}
	for _, m := range r.Metrics {
		line := []string{m.ID}
		for _, v := range r.Variants {
			line = append(line, m.cell(v.Metrics[m.ID]))
		}
		lines = append(append(lines, line), r.categoryLines(m)...)
	}
	for _, p := range r.Passes() {
		lines = append(lines, append([]string{p.Name}, p.Values...))
	}
	return lines
}
