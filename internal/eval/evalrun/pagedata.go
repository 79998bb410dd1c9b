package evalrun

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/qtype-dev/qtype/internal/textfmt"
)

// chunkRows is the number of rows of a part of the page, which reads a part when one of its rows is shown.
const chunkRows = 100

// maxMasked is the number of metrics by which the page filters: numbers of scripts have 53 bits.
const maxMasked = 50

// pageIndex is what the page knows of all rows before one is read. Its lists are in the order of the rows of the page: those on which variants, trials
// and the earlier evaluation differ most first.
type pageIndex struct {
	App      string       `json:"app"`
	Variants []string     `json:"variants"`
	Metrics  []string     `json:"metrics"`
	Labels   []string     `json:"labels"` // that annotations can have
	Texts    []string     `json:"texts"`  // that traces repeat
	Before   string       `json:"before"` // the name of the earlier report whose answers are compared; empty for none
	Token    string       `json:"token"`  // that saves annotations; empty in a file
	Saved    []Annotation `json:"saved"`
	Columns  []string     `json:"columns"` // of an annotation, in place of which no inputs and outputs are written
	Chunk    int          `json:"chunk"`
	Numbers  []int64      `json:"numbers"`
	Apart    []float64    `json:"apart"` // the largest difference of a score
	Flags    []uint64     `json:"flags"` // bits: an error, a verdict that differs from the earlier report, then not passed by metric
}

// pageRow is a row of the matrix.
type pageRow struct {
	Row     int64         `json:"n"`
	Session string        `json:"k,omitempty"`
	Inputs  [][2]string   `json:"i"` // name and text
	Cells   []pageVariant `json:"c"` // by variant

	apart float64
	flags uint64
}

// pageVariant has the trials of a row with a variant.
type pageVariant struct {
	Scores [][2]string `json:"s"` // of all trials, by metric: class and text
	Trials []pageCell  `json:"t"`
}

// pageCell is a result.
type pageCell struct {
	Outputs [][2]string `json:"o"`
	Before  [][2]string `json:"b,omitempty"` // outputs in the earlier report, if they differ
	Error   string      `json:"e,omitempty"`
	Scores  [][3]string `json:"s"` // by metric: class, text and reason
	Used    string      `json:"u"`
	Said    []Message   `json:"d,omitempty"`
	Trace   []pageCall  `json:"x,omitempty"`
}

// pageCall is a call of a trace with its use as a text.
type pageCall struct {
	*Traced
	Used string `json:"used"`
}

// matrix has the results of a report by row.
type matrix struct {
	report *Report
	before map[string]*Result // of the earlier report, by resultKey with the digest of the row
	sums   map[int64]string   // digests by row
}

// resultKey identifies a result in reports of the same rows.
func resultKey(digest, variant string, trial int) string {
	return fmt.Sprintf("%s %d %s", digest, trial, variant)
}

// newMatrix compares a report with an earlier one, which may be nil.
func newMatrix(r, earlier *Report) *matrix {
	m := &matrix{report: r, before: map[string]*Result{}}
	if earlier == nil {
		return m
	}
	m.sums = r.digestsByRow()
	sums := earlier.digestsByRow()
	for _, result := range earlier.Results {
		if sum := sums[result.Row]; sum != "" {
			m.before[resultKey(sum, result.Variant, result.Trial)] = result
		}
	}
	return m
}

// rows returns the rows in the order of the page.
func (m *matrix) rows() []*pageRow {
	variants := map[string]int{}
	for i, v := range m.report.Variants {
		variants[v.ID] = i
	}
	byNumber := map[int64][][]*Result{}
	var numbers []int64
	for _, result := range m.report.Results {
		v, known := variants[result.Variant]
		if !known {
			continue
		}
		if byNumber[result.Row] == nil {
			numbers, byNumber[result.Row] = append(numbers, result.Row), make([][]*Result, len(variants))
		}
		byNumber[result.Row][v] = append(byNumber[result.Row][v], result)
	}
	rows := make([]*pageRow, len(numbers))
	for i, n := range numbers {
		rows[i] = m.row(n, byNumber[n])
	}
	slices.SortStableFunc(rows, func(a, b *pageRow) int {
		return cmp.Or(cmp.Compare(b.apart, a.apart), cmp.Compare(min(b.flags, 1<<2), min(a.flags, 1<<2)))
	})
	return rows
}

// row makes a row of its results by variant.
func (m *matrix) row(number int64, byVariant [][]*Result) *pageRow {
	r := &pageRow{Row: number, Inputs: [][2]string{}}
	values := make([][]float64, len(m.report.Metrics))
	for _, results := range byVariant {
		v := pageVariant{Trials: []pageCell{}}
		for _, result := range results {
			if len(r.Inputs) == 0 {
				r.Inputs, r.Session = texts(result.Inputs), result.Session
			}
			before := m.before[resultKey(m.sums[number], result.Variant, result.Trial)]
			v.Trials = append(v.Trials, m.cell(result, before))
			m.mark(r, values, result, before)
		}
		v.Scores = m.scores(results)
		r.Cells = append(r.Cells, v)
	}
	for _, of := range values {
		if len(of) > 1 {
			r.apart = max(r.apart, slices.Max(of)-slices.Min(of))
		}
	}
	return r
}

// mark adds the flags of a result to its row, and its scores to the values by metric.
func (m *matrix) mark(r *pageRow, values [][]float64, result, before *Result) {
	if result.Error != "" {
		r.flags |= 1
	}
	for i, metric := range m.report.Metrics {
		s := result.Scores[metric.ID]
		if s == nil || metric.Unit != "" {
			continue
		}
		if (s.Error != "" || metric.Rate && s.Value == 0) && i < maxMasked {
			r.flags |= 1 << (2 + i)
		}
		if s.Error == "" {
			values[i] = append(values[i], s.Value)
		}
		if before == nil {
			continue
		}
		if then := before.Scores[metric.ID]; then != nil && then.Error == "" {
			values[i] = append(values[i], then.Value)
			if metric.Rate && then.Value != s.Value {
				r.flags |= 1 << 1
			}
		}
	}
}

// cell makes a cell of a result.
func (m *matrix) cell(result, before *Result) pageCell {
	c := pageCell{Outputs: texts(result.Outputs), Error: result.Error, Scores: [][3]string{}, Said: result.Said,
		Used: fmt.Sprintf("tokens %s in, %s out%s, %s", textfmt.Thousands(result.Usage.Input), textfmt.Thousands(result.Usage.Output), money(result.Usage), formatValue("s", result.Seconds))}
	for _, metric := range m.report.Metrics {
		s := scoreCell(metric, result)
		c.Scores = append(c.Scores, [3]string{s.Class, s.Text, s.Reason})
	}
	if before != nil {
		if then := texts(before.Outputs); !slices.Equal(then, c.Outputs) {
			c.Before = then
		}
	}
	for _, call := range result.Trace {
		used := formatValue("s", call.Seconds)
		if call.Model != "" {
			used = fmt.Sprintf("tokens %s in, %s out%s, %s", textfmt.Thousands(call.Input), textfmt.Thousands(call.Output), money(Usage{Money: call.Money}), used)
		}
		c.Trace = append(c.Trace, pageCall{call, used})
	}
	return c
}

// scores returns the scores of all trials: the score of one, how many pass, or the mean.
func (m *matrix) scores(results []*Result) [][2]string {
	all := [][2]string{}
	for _, metric := range m.report.Metrics {
		if len(results) == 1 {
			s := scoreCell(metric, results[0])
			all = append(all, [2]string{s.Class, s.Text})
			continue
		}
		sum, count := 0.0, 0
		for _, result := range results {
			if s := result.Scores[metric.ID]; s != nil && s.Error == "" {
				sum, count = sum+s.Value, count+1
			}
		}
		switch {
		case count == 0:
			all = append(all, [2]string{"fail", "no value"})
		case !metric.Rate:
			all = append(all, [2]string{"number", formatValue(metric.Unit, sum/float64(count))})
		case sum == float64(count):
			all = append(all, [2]string{"pass", fmt.Sprintf("%d of %d", count, count)})
		default:
			all = append(all, [2]string{"fail", fmt.Sprintf("%.0f of %d", sum, count)})
		}
	}
	return all
}

// texts returns values as they read, by name.
func texts(values map[string]json.RawMessage) [][2]string {
	all := [][2]string{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		all = append(all, [2]string{name, readableText(values[name])})
	}
	return all
}

// labels returns the labels that annotations can have: pass and fail, and those that judges have given.
func (r *Report) labels() []string {
	given := map[string]bool{}
	for _, result := range r.Results {
		for _, s := range result.Scores {
			if s != nil && s.Label != "" {
				given[s.Label] = true
			}
		}
	}
	delete(given, "pass")
	delete(given, "fail")
	return append([]string{"pass", "fail"}, slices.Sorted(maps.Keys(given))...)
}
