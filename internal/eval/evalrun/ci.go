package evalrun

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/qtype-dev/qtype/internal/apptest/testrun"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
)

// maxListed is the number of rows that reports for CI list for each metric.
const maxListed = 10

// JUnit writes the report for CI systems: a suite for each variant, with a case for its rows and one for each metric, which
// fails for the reasons for which the evaluation does.
func (r *Report) JUnit(w io.Writer) error {
	var suites []testrun.JUnitSuite
	for i := range r.Variants {
		v := &r.Variants[i]
		seconds, cases := 0.0, map[string]*testrun.JUnitCase{}
		for _, result := range r.Results {
			if result.Variant == v.ID {
				seconds += result.Seconds
			}
		}
		s := testrun.JUnitSuite{Name: v.ID, Time: fmt.Sprintf("%.3f", seconds)}
		for _, name := range append([]string{""}, r.metricIDs()...) {
			c := testrun.JUnitCase{Name: "rows", Class: r.App + "." + r.Flow, Time: "0.000"}
			if name != "" {
				c.Name = name
			}
			s.Cases = append(s.Cases, c)
		}
		for j := range s.Cases {
			cases[s.Cases[j].Name] = &s.Cases[j]
		}
		for _, violation := range r.Violations {
			if why, of := strings.CutPrefix(violation, v.ID+": "); of {
				metric := r.metricOf(why)
				c := &s.Cases[0]
				if metric != "" {
					c = cases[metric]
				}
				c.Failure = &testrun.JUnitFailure{Message: why, Type: "evaluation", Text: strings.Join(r.reasons(v.ID, metric), "\n")}
			}
		}
		suites = append(suites, s)
	}
	return testrun.WriteJUnit(w, r.took, suites...)
}

func (r *Report) metricIDs() (ids []string) {
	for _, m := range r.Metrics {
		ids = append(ids, m.ID)
	}
	return ids
}

// metricOf returns the metric that a violation is about; empty for one of the rows.
func (r *Report) metricOf(violation string) string {
	for _, id := range r.metricIDs() {
		if strings.HasPrefix(violation, id+" is ") || strings.HasPrefix(violation, id+" has no value ") {
			return id
		}
	}
	return ""
}

// reasons lists the rows of a variant that do not pass a metric, or that failed for an empty one, with the reasons.
func (r *Report) reasons(variant, metric string) (lines []string) {
	more := 0
	for _, result := range r.Results {
		why := ""
		switch s := result.Scores[metric]; {
		case metric == "":
			why = result.Error
		case result.Error == "" && s != nil && (s.Error != "" || s.Value < 1 && r.unit(metric) == ""):
			why = s.Error + s.Reason
		}
		if result.Variant != variant || why == "" {
			continue
		}
		if len(lines) == maxListed {
			more++
			continue
		}
		trial := ""
		if result.Trial > 0 {
			trial = fmt.Sprintf(", trial %d", result.Trial)
		}
		row := fmt.Sprintf("row %d", result.Row)
		if name := ""; result.Category != "" && json.Unmarshal(result.Inputs["attack"], &name) == nil {
			row = "attack " + name
		} else if user := ""; result.Said != nil && json.Unmarshal(result.Inputs["user"], &user) == nil {
			row = "user " + user
		}
		lines = append(lines, fmt.Sprintf("%s%s: %s", row, trial, textfmt.Ellipsis(textfmt.OneLine(why), maxReason)))
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("and %s", textfmt.Count(more, "other")))
	}
	return lines
}

// Markdown writes the report as a comment of a change.
func (r *Report) Markdown(w io.Writer) error {
	var b strings.Builder
	verdict := "passed"
	if r.Failed() {
		verdict = "failed"
	}
	fmt.Fprintf(&b, "### Evaluation of %s: %s\n\nFlow %s, %s from %s\n\n", cell(r.App), verdict, cell(r.Flow), r.Run(), cell(r.Data))
	lines := r.table("Metric")
	cost, priced := []string{"cost"}, false
	for _, v := range r.Variants {
		text := strings.TrimPrefix(strings.TrimPrefix(money(v.Usage)+scoring(v), ", "), "cost ")
		cost, priced = append(cost, text), priced || text != ""
	}
	if priced {
		lines = append(lines, cost)
	}
	markdownTable(&b, lines)
	if len(r.Comparisons) > 0 {
		lines = [][]string{{"Difference", "Variants", "Mean", "Better", "Worse", ""}}
		for _, c := range r.Comparisons {
			lines = append(lines, []string{c.Metric, c.From + " → " + c.To, r.difference(c), fmt.Sprint(c.Better), fmt.Sprint(c.Worse), r.verdict(c)})
		}
		markdownTable(&b, lines)
	}
	if len(r.Baseline) > 0 {
		lines = [][]string{{"Baseline", "Variant", "Before", "Now", ""}}
		for _, c := range r.Baseline {
			lines = append(lines, []string{c.Metric, c.Variant, formatValue(r.unit(c.Metric), c.Before), formatValue(r.unit(c.Metric), c.Now), c.verdict()})
		}
		markdownTable(&b, lines)
	}
	r.markdownReasons(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

// markdownReasons writes why the evaluation fails, and folded, which rows do not pass.
func (r *Report) markdownReasons(b *strings.Builder) {
	for _, list := range []struct {
		noun  string
		lines []string
	}{{"Failed", r.Violations}, {"Warning", r.Warnings}, {"Flaky", r.FlakyTexts()}} {
		for _, line := range list.lines {
			fmt.Fprintf(b, "- %s: %s\n", list.noun, cell(line))
		}
	}
	for _, v := range r.Variants {
		for _, metric := range append([]string{""}, r.metricIDs()...) {
			reasons := r.reasons(v.ID, metric)
			if len(reasons) == 0 {
				continue
			}
			title := v.ID + ": rows that failed"
			if metric != "" {
				title = v.ID + ": rows that do not pass " + metric
			}
			fmt.Fprintf(b, "\n<details><summary>%s</summary>\n\n", cell(title))
			for _, line := range reasons {
				fmt.Fprintf(b, "- %s\n", cell(line))
			}
			b.WriteString("\n</details>\n")
		}
	}
}

// markdownTable writes lines of cells, the first one as the header.
func markdownTable(b *strings.Builder, lines [][]string) {
	for i, line := range lines {
		for j := range line {
			line[j] = cell(line[j])
		}
		fmt.Fprintf(b, "| %s |\n", strings.Join(line, " | "))
		if i == 0 {
			fmt.Fprintf(b, "|%s\n", strings.Repeat(" --- |", len(line)))
		}
	}
	b.WriteByte('\n')
}

// cell returns a text in which nothing is Markdown or HTML: it can be that of a model, and stands in the comment of a change.
func cell(text string) string {
	text = textfmt.OneLine(terminal.Clean(text))
	return markdownSigns.Replace(text)
}

var markdownSigns = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "|", "\\|", "*", "\\*", "_", "\\_", "`", "\\`", "[", "\\[", "]", "\\]", "!", "\\!", "#", "\\#", "@", "@\u200b", "://", ":\u200b//", "\\", "\\\\")
