package evalrun

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec"
)

// reportVersion is the version of the form of a report.
const reportVersion = 1

// Report is the result of an evaluation. It is also the file of a baseline.
type Report struct {
	Version     int             `json:"version"`
	App         string          `json:"app"`                   // the id of the application
	Flow        string          `json:"flow"`                  // the id of the flow
	Data        string          `json:"data"`                  // the file with the rows
	Time        string          `json:"time,omitempty"`        // when the evaluation ended, in UTC as in RFC 3339
	Rows        int             `json:"rows"`                  // of the data
	Of          int             `json:"of,omitempty"`          // rows of the data, if the evaluation has ended before all were run
	Trials      int             `json:"trials,omitempty"`      // of each row, if there are several
	Digests     []string        `json:"digests,omitempty"`     // of the rows, in the order of the results of a variant
	Metrics     []MetricReport  `json:"metrics"`               // in the order of the evaluation
	Variants    []VariantReport `json:"variants"`              // in the order of the evaluation
	Comparisons []Comparison    `json:"comparisons,omitempty"` // of the first variant with each other
	Baseline    []Change        `json:"baseline,omitempty"`    // the differences from the baseline
	Flaky       []FlakyRow      `json:"flaky,omitempty"`       // by variant, then by metric
	Warnings    []string        `json:"warnings,omitempty"`    // about the evaluation file, and what an earlier report does not have in common with this one
	Violations  []string        `json:"violations,omitempty"`  // why the evaluation does not succeed
	Results     []*Result       `json:"results"`               // by variant, then by row, then by trial
	Texts       []string        `json:"texts,omitempty"`       // that traces repeat

	took   time.Duration
	path   string  // of the file; empty for one that was not read
	before *Report // the baseline; nil for none
}

// MetricReport describes a metric.
type MetricReport struct {
	ID    string `json:"id"`
	Type  string `json:"type"`
	Unit  string `json:"unit,omitempty"`
	Lower bool   `json:"lower,omitempty"` // lower values are better
	Rate  bool   `json:"rate,omitempty"`  // the mean is the share of the results that pass
}

// VariantReport is the result of a variant.
type VariantReport struct {
	ID      string             `json:"id"`
	Failed  int                `json:"failed"` // rows, or trials of rows, that failed
	Usage   Usage              `json:"usage"`
	Scoring float64            `json:"scoring,omitempty"` // money for the models of metrics and of simulated users
	Metrics map[string]Summary `json:"metrics"`           // by the names of the metrics

	Categories map[string]Summary `json:"categories,omitempty"` // of attacks: the share that was resisted
}

// Change is the difference of a metric from the baseline.
type Change struct {
	Variant    string  `json:"variant"`
	Metric     string  `json:"metric"`
	Rows       int     `json:"rows"`           // rows of both with a value of both
	Before     float64 `json:"before"`         // the mean of these rows in the baseline
	Now        float64 `json:"now"`            // their mean in this evaluation
	Worse      float64 `json:"worse"`          // how much worse: a difference for scores, a share of the baseline for other units; negative if better
	Limit      float64 `json:"limit"`          // how much worse it may be
	P          float64 `json:"p"`              // the probability of a mean that is as much worse if nothing has changed, corrected for the number of means
	Regression bool    `json:"regression"`     // it is worse than allowed, and the gate does not take this for chance
	Note       string  `json:"note,omitempty"` // why it was not compared
}

// Failed reports whether the evaluation does not succeed.
func (r *Report) Failed() bool { return len(r.Violations) > 0 }

// ReadReport reads a report, such as a baseline.
func ReadReport(path string) (*Report, error) {
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: no such file: write a baseline with -o", path)
	case err != nil:
		return nil, err
	}
	r := &Report{}
	if err := json.Unmarshal(text, r); err != nil || r.Version == 0 || len(r.Variants) == 0 {
		return nil, fmt.Errorf("%s is not a report of an evaluation: write one with -o", path)
	}
	if r.Version != reportVersion {
		return nil, fmt.Errorf("%s has version %d, not %d: evaluate again", path, r.Version, reportVersion)
	}
	if slices.Contains(r.Results, nil) {
		return nil, fmt.Errorf("%s is not a report of an evaluation: a result is null", path)
	}
	r.path = path
	return r, nil
}

// failedRows returns the numbers of the rows that failed, or whose result does not pass a metric or
// has no value for one, with any variant.
func (r *Report) failedRows() map[int64]bool {
	if r == nil {
		return nil
	}
	failed := map[int64]bool{}
	for _, result := range r.Results {
		if r.failed(result) {
			failed[result.Row] = true
		}
	}
	return failed
}

// failed reports whether a row failed, or its result does not pass a metric or has no value for one.
func (r *Report) failed(result *Result) bool {
	return result.Error != "" || slices.ContainsFunc(r.Metrics, func(m MetricReport) bool {
		s := result.Scores[m.ID]
		return s != nil && (s.Error != "" || m.Rate && s.Value == 0)
	})
}

// report summarizes the results.
func (x *execution) report(took time.Duration) *Report {
	r := &Report{Version: reportVersion, App: x.base.App.ID, Flow: x.flow.ID, Data: x.data.path, Rows: len(x.data.rows), Digests: x.data.digests(), Results: x.results, took: took, before: x.config.Baseline, Time: time.Now().UTC().Format(time.RFC3339)}
	r.share()
	if len(x.data.rows) < x.all {
		r.Of = x.all
	}
	if x.trials > 1 {
		r.Trials = x.trials
	}
	for _, m := range x.metrics {
		r.Metrics = append(r.Metrics, MetricReport{m.declared.Name(), m.row.Name, m.row.Unit, m.row.Lower, m.rate()})
	}
	for i, v := range x.variants {
		r.Variants = append(r.Variants, x.variantReport(i, v.declared))
		r.Flaky = append(r.Flaky, x.flaky(i)...)
	}
	for i := 1; i < len(x.variants); i++ {
		for _, m := range x.metrics {
			c := x.compareVariants(m, 0, i)
			c.Metric, c.From, c.To = m.declared.Name(), x.variants[0].declared.ID, x.variants[i].declared.ID
			r.Comparisons = append(r.Comparisons, c)
		}
	}
	x.addWarnings(r)
	x.addChanges(r)
	x.addViolations(r)
	return r
}

func (x *execution) variantReport(variant int, v *spec.Variant) VariantReport {
	out := VariantReport{ID: v.ID, Metrics: map[string]Summary{}}
	for _, r := range x.results[x.index(variant, 0, 0):x.index(variant+1, 0, 0)] {
		if r.Error != "" {
			out.Failed++
		}
		out.Usage.Input += r.Usage.Input
		out.Usage.Output += r.Usage.Output
		out.Usage.Money += r.Usage.Money
		out.Scoring += r.Scoring
		for _, m := range r.Usage.Unpriced {
			if !slices.Contains(out.Usage.Unpriced, m) {
				out.Usage.Unpriced = append(out.Usage.Unpriced, m)
			}
		}
	}
	for _, m := range x.metrics {
		out.Metrics[m.declared.Name()] = x.summary(variant, m)
	}
	out.Categories = x.categories(variant)
	return out
}

// summary returns the mean of a metric with a variant.
func (x *execution) summary(variant int, m *metric) Summary {
	s := summarize(x.observed(variant, m), m.rate(), m.row.Unit == "", x.miss)
	for _, r := range x.results[x.index(variant, 0, 0):x.index(variant+1, 0, 0)] {
		if score := r.Scores[m.declared.Name()]; r.Error == "" && score != nil && score.Error != "" {
			s.Errors++
		}
	}
	return s
}

// compareVariants compares the values of a metric of two variants row by row.
func (x *execution) compareVariants(m *metric, from, to int) Comparison {
	return compare(x.observed(from, m), x.observed(to, m), m.row, len(x.variants)-1, x.miss)
}

// addViolations collects why the evaluation does not succeed.
func (x *execution) addViolations(r *Report) {
	add := func(format string, args ...any) { r.Violations = append(r.Violations, fmt.Sprintf(format, args...)) }
	for _, v := range r.Variants {
		if v.Failed > 0 {
			add("%s: %d of %s failed: %s", v.ID, v.Failed, r.results(), frequent(x.errors(v.ID, func(r *Result) string { return r.Error })))
		}
		for _, m := range x.metrics {
			name, s := m.declared.Name(), v.Metrics[m.declared.Name()]
			switch {
			case s.Errors > 0:
				add("%s: %s has no value for %d of %s: %s", v.ID, name, s.Errors, r.results(), frequent(x.errors(v.ID, func(r *Result) string {
					if r.Error != "" || r.Scores[name] == nil {
						return "" // reported above, or not scored
					}
					return r.Scores[name].Error
				})))
			case m.declared.Min != nil && s.Mean < *m.declared.Min:
				add("%s: %s is %s, less than %s%s", v.ID, name, m.format(s.Mean), m.format(*m.declared.Min), x.unmet(v.ID, m))
			case m.declared.Max != nil && s.Mean > *m.declared.Max:
				add("%s: %s is %s, more than %s", v.ID, name, m.format(s.Mean), m.format(*m.declared.Max))
			}
		}
	}
	for _, c := range r.Baseline {
		if c.Regression {
			i := slices.IndexFunc(x.metrics, func(m *metric) bool { return m.declared.Name() == c.Metric })
			add("%s: %s is %s, was %s: a regression beyond %v", c.Variant, c.Metric, x.metrics[i].format(c.Now), x.metrics[i].format(c.Before), c.Limit)
		}
	}
}

// unmet returns the checks that users of a variant do not meet most often, or what attacks have reached, after a colon; nothing for another metric.
func (x *execution) unmet(variant string, m *metric) string {
	if len(x.users) == 0 || m.declared.Type != "checks" && m.declared.Type != "safe" {
		return ""
	}
	return ": " + frequent(x.errors(variant, func(r *Result) string {
		if s := r.Scores[m.declared.Name()]; r.Error == "" && s != nil {
			return s.Reason
		}
		return ""
	}))
}

// results returns the number of results of a variant: "3 rows", or "6 trials".
func (r *Report) results() string {
	if r.Trials > 1 {
		return textfmt.Count(int64(r.Rows*r.Trials), "trial")
	}
	return textfmt.Count(int64(r.Rows), "row")
}

// errors returns the errors of the results of a variant.
func (x *execution) errors(variant string, of func(*Result) string) []string {
	var all []string
	for _, r := range x.results {
		if text := of(r); r.Variant == variant && text != "" {
			all = append(all, textfmt.OneLine(text))
		}
	}
	return all
}

// maxErrors is how many different errors a report names.
const maxErrors = 3

// frequent returns the most frequent texts with the numbers of those that are more than one.
func frequent(texts []string) string {
	counts := map[string]int{}
	var distinct []string
	for _, t := range texts {
		if counts[t]++; counts[t] == 1 {
			distinct = append(distinct, t)
		}
	}
	slices.SortStableFunc(distinct, func(a, b string) int { return counts[b] - counts[a] })
	shown := distinct[:min(len(distinct), maxErrors)]
	for i, t := range shown {
		shown[i] = textfmt.Ellipsis(t, maxReason)
		if counts[t] > 1 && len(distinct) > 1 {
			shown[i] += fmt.Sprintf(" (%d times)", counts[t])
		}
	}
	text := strings.Join(shown, "; ")
	if more := len(distinct) - len(shown); more > 0 {
		text += fmt.Sprintf("; and %s", textfmt.Count(more, "other error"))
	}
	return text
}

func (m *metric) format(v float64) string { return formatValue(m.row.Unit, v) }

// formatValue formats a value of a metric.
func formatValue(unit string, v float64) string {
	switch unit {
	case "tokens":
		return fmt.Sprintf("%.1f", v)
	case "s":
		return fmt.Sprintf("%.3f s", v)
	case "money":
		return textfmt.Amount(v)
	}
	return fmt.Sprintf("%.3f", v)
}
