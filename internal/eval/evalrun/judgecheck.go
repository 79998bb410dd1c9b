package evalrun

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/internal/apptest/testrun"
	"github.com/qtype-dev/qtype/internal/recording"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// labelled is a row with what people say, and the votes of each judge.
type labelled struct {
	people string
	length int      // of the output; of a preference less that of the expected one
	votes  [][]vote // by judge: the last ones are only asked to compare them
	err    error
}

// judgeCheck is a running check of a metric.
type judgeCheck struct {
	x      *execution
	metric *metric
	labels map[string]float64 // the verdicts with their scores
	counts int                // how many votes of each judge count
}

// CheckJudges measures the judges of the metrics that have a key check, or of one of them by its name. An error means that
// there is no measurement.
func (e *Evaluation) CheckJudges(ctx context.Context, name string) (reports []*JudgeReport, err error) {
	var ids []string
	x := &execution{Evaluation: e}
	for _, m := range e.metrics {
		if m.labelled == "" {
			continue
		}
		ids = append(ids, m.declared.Name())
	}
	switch {
	case len(ids) == 0:
		return nil, &UsageError{"no metric has a key check with results that people have labelled"}
	case name != "" && !slices.Contains(ids, name):
		return nil, &UsageError{fmt.Sprintf("no metric %q has a key check; there are: %s", name, textfmt.List(ids))}
	}
	base, err := x.base.New(Replacement{})
	if err != nil {
		return nil, err
	}
	x.judges = &judges{base}
	defer func() { err = errors.Join(err, x.close()) }()
	var sessions []string
	for _, m := range e.metrics {
		if m.labelled == "" || name != "" && m.declared.Name() != name {
			continue
		}
		c := &judgeCheck{x: x, metric: m, labels: m.verdicts(), counts: max(m.declared.Votes, 1)}
		r, err := c.run(ctx, &sessions)
		if err != nil {
			return nil, err
		}
		reports = append(reports, r)
	}
	if x.recorded != nil && x.config.Record != recording.Replay {
		err = x.recorded.Save(sessions)
	}
	return reports, err
}

// verdicts returns what judges of a metric and people can say, with the scores.
func (m *metric) verdicts() map[string]float64 {
	switch {
	case m.row.Name == "preference":
		return map[string]float64{pairOutput: 1, pairTie: 0.5, pairExpected: 0}
	case m.declared.Labels != nil:
		return m.declared.Labels
	}
	return map[string]float64{"pass": 1, "fail": 0}
}

// run asks the judges about all rows.
func (c *judgeCheck) run(ctx context.Context, sessions *[]string) (*JudgeReport, error) {
	data, err := readData(ctx, &Config{}, c.metric.labelled, c.x.flow.Table)
	if err != nil {
		return nil, err
	}
	if err := c.checkColumns(data); err != nil {
		return nil, err
	}
	rows := make([]*labelled, len(data.rows))
	work := make(chan int)
	var workers sync.WaitGroup
	for range max(c.x.config.Workers, 1) {
		workers.Go(func() {
			for i := range work {
				rows[i] = c.row(ctx, data, &data.rows[i])
			}
		})
	}
	for i := range data.rows {
		*sessions = append(*sessions, c.session(&data.rows[i]))
		work <- i
	}
	close(work)
	workers.Wait()
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	return c.report(data, rows)
}

// outputColumn returns the column with the output that is judged.
func (c *judgeCheck) outputColumn(r *dataRow) string {
	if _, ok := r.Get(c.metric.output.ID); ok {
		return c.metric.output.ID
	}
	return "output"
}

// checkColumns reports columns that the data lacks, and labels that the judge does not have.
func (c *judgeCheck) checkColumns(d *dataset) error {
	first, label := &d.rows[0], c.metric.declared.Check.Label
	if _, ok := first.Get(c.outputColumn(first)); !ok {
		return lacksColumn(d, c.metric.output.ID, "or \"output\", with the output that people have labelled", first.Columns)
	}
	if _, ok := first.Get(label); !ok {
		return lacksColumn(d, label, "with what people say: label under check of metric "+c.metric.declared.Name()+" names it", first.Columns)
	}
	for i := range d.rows {
		if people, ok := c.label(&d.rows[i]); !ok {
			return fmt.Errorf("%s: row %d: the label %q is not one of %s", d.path, d.rows[i].Number, people, textfmt.List(slices.Sorted(maps.Keys(c.labels))))
		}
	}
	return nil
}

// label returns what people say of a row.
func (c *judgeCheck) label(r *dataRow) (label string, known bool) {
	v, _ := r.Get(c.metric.declared.Check.Label)
	label = strings.TrimSpace(value.Text(v))
	if _, known := c.labels[label]; known {
		return label, true
	}
	if _, passes := c.labels["pass"]; passes {
		switch strings.ToLower(label) {
		case "true", "1", "yes":
			return "pass", true
		case "false", "0", "no":
			return "fail", true
		}
	}
	return label, false
}

// session names the recordings of a row.
func (c *judgeCheck) session(r *dataRow) string {
	return fmt.Sprintf("judge %s, row %d", c.metric.declared.Name(), r.Number)
}

// row asks the judges about a row.
func (c *judgeCheck) row(ctx context.Context, d *dataset, r *dataRow) *labelled {
	m := c.metric
	made := &labelled{err: r.err}
	if made.err != nil {
		return made
	}
	made.people, _ = c.label(r)
	s := &sample{judges: c.x.judges, metric: m, variable: m.output, inputs: map[string]any{}}
	s.output, _ = r.Get(c.outputColumn(r))
	s.expected, s.known = m.expected(d, r)
	made.length = len([]rune(value.Text(s.output)))
	for _, ref := range c.x.flow.Inputs {
		if v, ok := r.Get(ref.To.ID); ok {
			s.inputs[ref.To.ID] = v
		}
	}
	if c.x.recorded != nil {
		c.x.mu.Lock()
		s.recorded = recording.Start(c.x.recorded, c.session(r), c.x.config.Record)
		c.x.mu.Unlock()
		testrun.HideSecrets(s.recorded, c.x.judges.app)
	}
	for _, judge := range m.judges {
		votes, err := c.votes(ctx, judge, s)
		if made.err = err; err != nil {
			return made
		}
		made.votes = append(made.votes, votes)
	}
	if m.row.Name == "preference" {
		made.length -= len([]rune(value.Text(s.expected)))
	}
	if s.recorded != nil && c.x.config.Record != recording.Replay {
		c.x.mu.Lock()
		s.recorded.Commit(false)
		c.x.mu.Unlock()
	}
	return made
}

// votes returns the votes of a judge: those that count, and of labels at least one in the other order and two in the same.
func (c *judgeCheck) votes(ctx context.Context, judge *spec.Model, s *sample) (votes []vote, err error) {
	m := c.metric.declared
	if c.metric.row.Name == "preference" {
		if err := s.lacksExpected(m); err != nil {
			return nil, err
		}
		first, second, _, err := c.x.judges.comparePair(ctx, judge, m, s)
		return []vote{{score: c.labels[first], label: first}, {score: c.labels[second], label: second}}, err
	}
	q, labels, count := questionOf(s), m.Labels, c.counts
	q.Rubric = m.Rubric
	if c.metric.row.Name == "relevance" {
		q.Rubric, labels = relevance, relevanceLabels()
	} else if s.known {
		q.Expected = value.Text(s.expected)
	}
	if labels != nil {
		const compared = 3 // in one order, in the other one, and in the first one again
		count = max(count, compared)
	}
	for i := range count {
		v, err := c.x.judges.vote(ctx, judge, s, q, labels, i%2 == 1)
		if err != nil {
			return nil, err
		}
		votes = append(votes, v)
	}
	return votes, nil
}

// verdict returns the label of votes, and whether they do not decide it.
func (c *judgeCheck) verdict(votes []vote) (label string, tie bool) {
	m := c.metric.declared
	switch {
	case c.metric.row.Name == "preference":
		first, second := 0.0, 0.0
		for i := 0; i < len(votes); i += 2 {
			if a, b := votes[i], votes[i+1]; a.label == b.label {
				first, second = first+a.score, second+1-a.score
			} else {
				tie = true
			}
		}
		switch {
		case first > second:
			return pairOutput, tie
		case first < second:
			return pairExpected, tie
		}
		return pairTie, tie
	case m.Labels != nil:
		s := counted(votes, m.Labels)
		return s.Label, s.Tie
	}
	labels := map[string]float64(nil)
	if c.metric.row.Name == "relevance" {
		labels = relevanceLabels()
	}
	s := counted(votes, labels)
	if s.Value >= *m.Threshold {
		return "pass", s.Tie
	}
	return "fail", s.Tie
}

// counting returns the votes of a judge that count.
func (c *judgeCheck) counting(votes []vote) []vote {
	if c.metric.row.Name == "preference" {
		return votes
	}
	return votes[:c.counts]
}

// report computes the agreement.
func (c *judgeCheck) report(d *dataset, rows []*labelled) (*JudgeReport, error) {
	m := c.metric
	r := &JudgeReport{Metric: m.declared.Name(), Data: d.path, Rows: len(rows)}
	all := func(l *labelled) (votes []vote) {
		for _, own := range l.votes {
			votes = append(votes, c.counting(own)...)
		}
		return votes
	}
	name := "all"
	if len(m.judges) == 1 {
		name = m.judges[0].ID
	}
	r.Judges = append(r.Judges, c.result(name, rows, all))
	for i, judge := range m.judges {
		result := c.result(judge.ID, rows, func(l *labelled) []vote { return c.counting(l.votes[i]) })
		c.addOrder(&result, rows, i)
		if len(m.judges) == 1 {
			r.Judges[0] = result
			break
		}
		r.Judges = append(r.Judges, result)
	}
	c.decide(r, rows)
	return r, nil
}

// result computes the agreement of the verdicts of some votes.
func (c *judgeCheck) result(name string, rows []*labelled, votes func(*labelled) []vote) JudgeResult {
	order := slices.Sorted(maps.Keys(c.labels))
	out := JudgeResult{Judge: name, Verdicts: map[string]map[string]int{}}
	var pairs [][2]int
	var lengths []int
	var excess []float64
	equal := 0
	for _, l := range rows {
		if l.err != nil {
			out.Errors++
			continue
		}
		label, tie := c.verdict(votes(l))
		if tie {
			out.Ties++
		}
		if label == l.people {
			equal++
		}
		if out.Verdicts[l.people] == nil {
			out.Verdicts[l.people] = map[string]int{}
		}
		out.Verdicts[l.people][label]++
		pairs = append(pairs, [2]int{slices.Index(order, l.people), slices.Index(order, label)})
		lengths, excess = append(lengths, l.length), append(excess, c.labels[label]-c.labels[l.people])
	}
	out.Accuracy, out.Kappa = rateOf(equal, len(pairs)), kappa(pairs, len(order))
	if b, ok := lengthBias(lengths, excess); ok {
		out.Length = &b
	}
	if len(order) == 2 {
		high := order[0]
		low := order[1]
		if c.labels[low] > c.labels[high] {
			high, low = low, high
		}
		for _, side := range []struct {
			label string
			to    **Interval
		}{{high, &out.Sensitivity}, {low, &out.Specificity}} {
			own := out.Verdicts[side.label]
			sum := 0
			for _, n := range own {
				sum += n
			}
			rate := rateOf(own[side.label], sum)
			*side.to = &rate
		}
	}
	return out
}

// addOrder adds how the verdicts of a judge change with the order.
func (c *judgeCheck) addOrder(out *JudgeResult, rows []*labelled, judge int) {
	asked, changed, again, repeated, first := 0, 0, 0, 0, 0
	for _, l := range rows {
		if l.err != nil || len(l.votes[judge]) < 2 || l.votes[judge][0].label == "" {
			continue
		}
		v := l.votes[judge]
		asked++
		if v[0].label != v[1].label {
			changed++
			if v[0].score > v[1].score { // the output was the first answer of the first vote
				first++
			}
		}
		if len(v) > 2 {
			again++
			if v[0].label != v[2].label {
				repeated++
			}
		}
	}
	if asked == 0 {
		return
	}
	order := rateOf(changed, asked)
	out.Order = &order
	if again > 0 {
		repeat := rateOf(repeated, again)
		out.Repeat = &repeat
	}
	if c.metric.row.Name == "preference" && changed > 0 {
		share := rateOf(first, changed)
		out.First = &share
	}
}

// decide refuses a judge that does not agree as the file says.
func (c *judgeCheck) decide(r *JudgeReport, rows []*labelled) {
	check, result := c.metric.declared.Check, r.Judges[0]
	var reasons []string
	for _, l := range rows {
		if l.err != nil {
			reasons = append(reasons, textfmt.OneLine(l.err.Error()))
		}
	}
	if len(reasons) > 0 {
		r.Violations = append(r.Violations, fmt.Sprintf("no verdict on %s: %s", textfmt.Count(len(reasons), "row"), frequent(reasons)))
	}
	for _, limit := range []struct {
		name  string
		least *float64
		got   Interval
	}{{"accuracy", check.MinAccuracy, result.Accuracy}, {"kappa", check.MinKappa, result.Kappa}} {
		switch {
		case limit.least == nil:
		case limit.got.Count == 0:
			r.Violations = append(r.Violations, fmt.Sprintf("there is no %s: judge and people always give the same label, or no row has a verdict", limit.name))
		case limit.got.Value < *limit.least:
			r.Violations = append(r.Violations, fmt.Sprintf("the %s is %.3f, less than %v", limit.name, limit.got.Value, *limit.least))
		case limit.got.Low < *limit.least:
			r.Warnings = append(r.Warnings, fmt.Sprintf("the %s could be less than %v: the interval begins at %.3f; more labelled rows would tell", limit.name, *limit.least, limit.got.Low))
		}
	}
	if result.Length != nil && result.Length.P <= alpha {
		r.Warnings = append(r.Warnings, "the judge likes longer outputs "+map[bool]string{true: "more", false: "less"}[result.Length.Difference > 0]+" than people do")
	}
	if writer := c.writes(); writer != "" {
		r.Warnings = append(r.Warnings, fmt.Sprintf("model %s judges what it has written: judges like their own texts", writer))
	}
}

// writes returns a judge that also answers in the flow; empty for none.
func (c *judgeCheck) writes() string {
	for s := range c.x.flow.Plan().All() {
		for _, m := range s.Models() {
			for _, judge := range c.metric.judges {
				if m.EntityID() == judge.ID {
					return judge.ID
				}
			}
		}
	}
	return ""
}
