package evalrun

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
)

// passes returns pass@k and pass^k of a rate for each number k of trials that all rows have: the probability that
// one of k trials passes, and that all of them do. For c passes in n trials of a row they are
// 1 - C(n-c, k)/C(n, k) and C(c, k)/C(n, k), which are unbiased; nil for fewer than two trials.
func passes(rows []observation) (at, hat []float64) {
	most := 0
	for i, r := range rows {
		if i == 0 || len(r.values) < most {
			most = len(r.values)
		}
	}
	if most < 2 {
		return nil, nil
	}
	for k := 1; k <= most; k++ {
		one, all := 0.0, 0.0
		for _, r := range rows {
			n, passed := len(r.values), 0
			for _, v := range r.values {
				if v == 1 {
					passed++
				}
			}
			one, all = one+1-chosen(n-passed, n, k), all+chosen(passed, n, k)
		}
		at, hat = append(at, one/float64(len(rows))), append(hat, all/float64(len(rows)))
	}
	return at, hat
}

// chosen returns C(c, k)/C(n, k): the probability that k of n trials are all among c of them.
func chosen(c, n, k int) float64 {
	p := 1.0
	for i := range k {
		p *= float64(max(0, c-i)) / float64(n-i)
	}
	return p
}

// FlakyRow is a row of which some trials pass a metric and others do not.
type FlakyRow struct {
	Variant string `json:"variant"`
	Metric  string `json:"metric"`
	Row     int64  `json:"row"` // the number in the data
	Passed  int    `json:"passed"`
	Trials  int    `json:"trials"` // those with a value
}

// flaky returns the flaky rows of a variant, in the order of the metrics and of the rows.
func (x *execution) flaky(variant int) (all []FlakyRow) {
	for _, m := range x.metrics {
		if !m.rate() {
			continue
		}
		for _, r := range x.observed(variant, m) {
			passed := 0
			for _, v := range r.values {
				passed += int(v)
			}
			if passed > 0 && passed < len(r.values) {
				all = append(all, FlakyRow{x.variants[variant].declared.ID, m.declared.Name(), r.row, passed, len(r.values)})
			}
		}
	}
	return all
}

// observed returns the values of a metric with a variant, by row.
func (x *execution) observed(variant int, m *metric) []observation {
	return observations(x.results[x.index(variant, 0, 0):x.index(variant+1, 0, 0)], m.declared.Name())
}

// observations returns the values of a metric by row, from results in the order of the rows.
func observations(results []*Result, metric string) []observation {
	var all []observation
	for i, r := range results {
		if i == 0 || r.Row != results[i-1].Row {
			all = append(all, observation{row: r.Row, cluster: r.cluster()})
		}
		if s := r.Scores[metric]; s != nil && s.Error == "" {
			last := &all[len(all)-1]
			last.values = append(last.values, s.Value)
		}
	}
	return all
}

// cluster names what the result is not independent of: its session, or its row.
func (r *Result) cluster() string {
	if r.Session != "" {
		return "session " + r.Session
	}
	return "row " + strconv.FormatInt(r.Row, 10)
}

// Run returns what was run: "200 of 1,000 rows, 5 trials of each".
func (r *Report) Run() string {
	text := textfmt.Count(int64(r.Rows), "row")
	if r.Of > 0 {
		text = textfmt.Thousands(r.Rows) + " of " + textfmt.Count(int64(r.Of), "row")
	}
	if r.Trials > 1 {
		text += fmt.Sprintf(", %d trials of each,", r.Trials)
	}
	return text
}

// PassRow is pass@k or pass^k of a metric for each variant.
type PassRow struct {
	Name   string
	Values []string
}

// Passes returns pass@k and pass^k of the rates for the largest number k of trials.
func (r *Report) Passes() (all []PassRow) {
	if r.Trials < 2 {
		return nil
	}
	for _, m := range r.Metrics {
		if !m.Rate {
			continue
		}
		at, hat := PassRow{Name: fmt.Sprintf("%s pass@%d", m.ID, r.Trials)}, PassRow{Name: fmt.Sprintf("%s pass^%d", m.ID, r.Trials)}
		for _, v := range r.Variants {
			at.Values = append(at.Values, lastOf(v.Metrics[m.ID].PassAt, r.Trials))
			hat.Values = append(hat.Values, lastOf(v.Metrics[m.ID].PassHat, r.Trials))
		}
		all = append(all, at, hat)
	}
	return all
}

// lastOf returns the value for k trials, if all rows have as many.
func lastOf(values []float64, k int) string {
	if len(values) < k {
		return "no value"
	}
	return formatValue("", values[k-1])
}

// maxFlaky is the number of flaky rows of a variant and a metric that the text names.
const maxFlaky = 10

// FlakyTexts names the flaky rows, a line for each variant and metric.
func (r *Report) FlakyTexts() (lines []string) {
	for _, v := range r.Variants {
		for _, m := range r.Metrics {
			var named []string
			for _, f := range r.Flaky {
				if f.Variant == v.ID && f.Metric == m.ID {
					named = append(named, fmt.Sprintf("row %d (%d of %d)", f.Row, f.Passed, f.Trials))
				}
			}
			if more := len(named) - maxFlaky; more > 0 {
				named = append(named[:maxFlaky], fmt.Sprintf("%d more", more))
			}
			if len(named) > 0 {
				lines = append(lines, fmt.Sprintf("%s: flaky by %s: %s", v.ID, m.ID, strings.Join(named, ", ")))
			}
		}
	}
	return lines
}

// NoiseTexts says whether rows or trials make the intervals wide, a line for each variant and rate.
func (r *Report) NoiseTexts() (lines []string) {
	for _, v := range r.Variants {
		for _, m := range r.Metrics {
			if s := v.Metrics[m.ID]; r.Trials > 1 && m.Rate && s.Clusters > 1 && s.Low < s.High {
				lines = append(lines, fmt.Sprintf("%s: %.0f %% of the uncertainty of %s is between trials of the same row, the rest between rows", v.ID, 100*s.Noise, m.ID))
			}
		}
	}
	return lines
}

func (r *Report) writeTrials(b *strings.Builder) {
	for i, line := range append(r.FlakyTexts(), r.NoiseTexts()...) {
		if i == 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintln(b, terminal.Clean(line))
	}
}
