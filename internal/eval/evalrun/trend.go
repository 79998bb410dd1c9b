package evalrun

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Path returns the file that the report was read from; empty for none.
func (r *Report) Path() string { return r.path }

// name returns the name of the file of a report.
func (r *Report) name() string {
	if r.path == "" {
		return "this evaluation"
	}
	return filepath.Base(r.path)
}

// SortByTime sorts reports by the time of their evaluation, those of versions without a time first.
func SortByTime(reports []*Report) {
	slices.SortStableFunc(reports, func(a, b *Report) int { return strings.Compare(a.Time, b.Time) })
}

// trendLine is a variant of a report in the table of the trend.
type trendLine struct {
	Report, Time, Variant string
	Means                 []string // by metric, as in the terminal
}

// Trend returns the means of all reports, the newest first; nil without an earlier one.
func (p *Page) Trend() (lines []trendLine) {
	if len(p.Earlier) == 0 {
		return nil
	}
	newest := append(slices.Clone(p.Earlier), p.Report)
	slices.Reverse(newest)
	for _, r := range newest {
		for _, v := range r.Variants {
			line := trendLine{Report: r.name(), Time: strings.NewReplacer("T", " ", "Z", "").Replace(r.Time), Variant: v.ID}
			for _, m := range p.Metrics {
				mean := "no value"
				if s, ok := v.Metrics[m.ID]; ok {
					mean = m.cell(s)
				}
				line.Means = append(line.Means, mean)
			}
			lines = append(lines, line)
		}
	}
	return lines
}

// trendChart is a metric over the reports.
type trendChart struct {
	Metric string
	Lines  []trendCurve
}

// trendCurve is a variant in a chart: points of a line from the left to the right, of 100 by 40.
type trendCurve struct{ Variant, Points string }

// Charts returns a chart for each metric.
func (p *Page) Charts() (charts []trendChart) {
	reports := append(slices.Clone(p.Earlier), p.Report)
	for _, m := range p.Metrics {
		chart, most := trendChart{Metric: m.ID}, 1.0
		if m.Unit != "" {
			most = 0
			for _, r := range reports {
				for _, v := range r.Variants {
					most = max(most, v.Metrics[m.ID].Mean)
				}
			}
		}
		for _, variant := range p.Variants {
			var points []string
			for i, r := range reports {
				for _, v := range r.Variants {
					if s, ok := v.Metrics[m.ID]; ok && v.ID == variant.ID && s.Count > 0 && most > 0 {
						points = append(points, fmt.Sprintf("%.1f,%.1f", 100*float64(i)/float64(len(reports)-1), 38-36*s.Mean/most))
					}
				}
			}
			chart.Lines = append(chart.Lines, trendCurve{variant.ID, strings.Join(points, " ")})
		}
		charts = append(charts, chart)
	}
	return charts
}
