package evalrun

import (
	"fmt"
	"slices"
)

// addChanges compares the report with the baseline, and decides which means have regressed.
func (x *execution) addChanges(r *Report) {
	base := x.config.Baseline
	if base == nil {
		return
	}
	same := x.sameRows(base, r)
	var p []float64 // of the changes that are compared
	for v := range x.variants {
		for _, m := range x.metrics {
			c := x.change(base, v, m, same)
			if c.Note == "" {
				p = append(p, c.P)
			}
			r.Baseline = append(r.Baseline, c)
		}
	}
	p = holm(p)
	for i := range r.Baseline {
		c := &r.Baseline[i]
		if c.Note != "" {
			continue
		}
		c.P, p = p[0], p[1:]
		const rounding = 1e-9
		switch {
		case c.Worse <= c.Limit+rounding:
		case c.P <= alpha || x.config.Gate == GateMean:
			c.Regression = true
		default:
			c.Note = "worse, maybe by chance"
			r.Warnings = append(r.Warnings, fmt.Sprintf("%s: %s is worse than the baseline by more than %v, but chance can be the reason (p = %.2f): more rows or trials would tell", c.Variant, c.Metric, c.Limit, c.P))
		}
	}
}

// sameRows returns the numbers of the rows that are those of the baseline.
func (x *execution) sameRows(base *Report, r *Report) map[int64]bool {
	same, before := map[int64]bool{}, base.digestsByRow()
	for i := range x.data.rows {
		number := x.data.rows[i].Number
		same[number] = len(before) == 0 || before[number] == r.Digests[i]
	}
	return same
}

// change compares a metric of a variant with the baseline.
func (x *execution) change(base *Report, variant int, m *metric, same map[int64]bool) Change {
	id, name := x.variants[variant].declared.ID, m.declared.Name()
	c := Change{Variant: id, Metric: name, Limit: x.config.MaxRegression, P: 1}
	if own := m.declared.MaxRegression; own != nil {
		c.Limit = *own
	} else if m.row.Noisy {
		c.Note = "not limited: max_regression is not set"
	}
	var earlier []*Result
	for _, r := range base.Results {
		if r.Variant == id {
			earlier = append(earlier, r)
		}
	}
	known := slices.ContainsFunc(base.Metrics, func(b MetricReport) bool { return b.ID == name })
	var before, now []observation
	pairs(observations(earlier, name), x.observed(variant, m), func(a, b observation) {
		if same[a.row] {
			before, now = append(before, a), append(now, b)
		}
	})
	switch {
	case len(earlier) == 0:
		c.Note = "the baseline has no such variant"
	case !known:
		c.Note = "the baseline has no such metric"
	case len(before) == 0:
		c.Note = "the baseline has no such rows"
	default:
		x.worsen(&c, m, before, now)
	}
	return c
}

// worsen computes how much worse the same rows are than before.
func (x *execution) worsen(c *Change, m *metric, before, now []observation) {
	c.Rows, c.Before, c.Now = len(before), estimateOf(before).mean, estimateOf(now).mean
	c.Worse = c.Before - c.Now
	if m.row.Lower {
		c.Worse = -c.Worse
		before, now = now, before
	}
	c.P, _ = permute(unitsOf(now, before))
	switch {
	case m.row.Unit != "" && c.Before != 0:
		c.Worse /= c.Before
	case m.row.Unit != "" && c.Worse > 0:
		c.Worse = 1 // from nothing
	}
}

// unitsOf returns the values of the same rows from two evaluations. If nothing has changed, a trial of a row could
// be of either evaluation, and so could all rows of a session.
func unitsOf(from, to []observation) []unit {
	count := map[string]int{}
	for _, r := range from {
		count[r.cluster]++
	}
	var units []unit
	at := map[string]int{}
	for i := range from {
		id := from[i].cluster
		if count[id] == 1 {
			units = append(units, unit{from[i].values, to[i].values})
			continue
		}
		n, known := at[id]
		if !known {
			n = len(units)
			at[id], units = n, append(units, unit{[]float64{0}, []float64{0}})
		}
		units[n].from[0] += mean(from[i].values)
		units[n].to[0] += mean(to[i].values)
	}
	return units
}
