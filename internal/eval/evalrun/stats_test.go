package evalrun

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/qtype-dev/qtype/internal/records"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/spec"
)

// TestQuantiles compares with published tables.
func TestQuantiles(t *testing.T) {
	for _, c := range []struct {
		p       float64
		degrees int
		want    float64
	}{
		{0.975, 1, 12.706}, {0.975, 2, 4.303}, {0.975, 5, 2.571}, {0.975, 10, 2.228}, {0.995, 10, 3.169}, {0.95, 29, 1.699}, {0.975, 120, 1.980},
		{0.995, 3, 5.841}, {0.975, maxDegrees, 1.960}, {0.975, maxDegrees + 1, 1.960},
	} {
		if got := tQuantile(c.p, c.degrees); math.Abs(got-c.want) > 0.0005 {
			t.Errorf("t(%v, %d) is %.4f, want %v", c.p, c.degrees, got, c.want)
		}
	}
}

// TestWilson compares with the intervals of Newcombe (1998, Statistics in Medicine 17, table I, method 3).
func TestWilson(t *testing.T) {
	for _, c := range []struct{ passed, of, low, high float64 }{{81, 263, 0.2553, 0.3662}, {15, 148, 0.0624, 0.1605}, {0, 20, 0, 0.1611}, {1, 29, 0.0061, 0.1718}} {
		low, high := wilson(c.passed/c.of, c.of, normalQuantile(0.975))
		if math.Abs(low-c.low) > 0.00005 || math.Abs(high-c.high) > 0.00005 {
			t.Errorf("%v of %v: %.4f to %.4f", c.passed, c.of, low, high)
		}
	}
}

// TestPasses compares with values that are counted by hand: of 5 trials, 3 pass.
func TestPasses(t *testing.T) {
	at, hat := passes([]observation{{values: []float64{1, 0, 1, 0, 1}}, {values: []float64{1, 1, 1, 1, 1}}})
	for k, want := range [][2]float64{{0.6, 0.6}, {0.9, 0.3}, {1, 0.1}, {1, 0}, {1, 0}} {
		if math.Abs(at[k]-(want[0]+1)/2) > 1e-12 || math.Abs(hat[k]-(want[1]+1)/2) > 1e-12 {
			t.Errorf("k = %d: pass@k %v, pass^k %v", k+1, at[k], hat[k])
		}
	}
}

// simulation makes evaluations whose true means are known. Rows of a session have the same chance.
type simulation struct {
	rows, sessions, trials int
	chances                []float64 // of rows, with the same probability each
	scores                 bool      // between 0 and 1, in place of passed and failed
}

func (s *simulation) mean() float64 { return mean(s.chances) }

// run makes an evaluation of other rows.
func (s *simulation) run(random *rand.Rand) []observation { return s.evaluate(random, s.draw(random)) }

// pair makes two evaluations of the same rows.
func (s *simulation) pair(random *rand.Rand) (from, to []observation) {
	of := s.draw(random)
	return s.evaluate(random, of), s.evaluate(random, of)
}

// draw returns the chances of sessions.
func (s *simulation) draw(random *rand.Rand) []float64 {
	of := make([]float64, s.sessions)
	for i := range of {
		of[i] = s.chances[random.IntN(len(s.chances))]
	}
	return of
}

func (s *simulation) evaluate(random *rand.Rand, of []float64) []observation {
	rows := make([]observation, s.rows)
	for i := range rows {
		n := i % s.sessions
		rows[i] = observation{row: int64(i + 1), cluster: fmt.Sprint(n), values: make([]float64, s.trials)}
		for k := range rows[i].values {
			switch {
			case s.scores:
				rows[i].values[k] = of[n] * (0.5 + random.Float64())
			case random.Float64() < of[n]:
				rows[i].values[k] = 1
			}
		}
	}
	return rows
}

// simulated is the number of evaluations of a simulation.
const simulated = 2000

// TestSummarize_Coverage checks that the intervals have the true mean in 94 to 96 % of evaluations, and that
// intervals of independent results would not.
func TestSummarize_Coverage(t *testing.T) {
	testkit.SkipWithRace(t)
	mixed, scores := []float64{0.05, 0.5, 0.7, 0.9, 1}, []float64{0.1, 0.3, 0.6, 0.65}
	naive := 0
	for _, s := range []simulation{
		{rows: 40, sessions: 40, trials: 1, chances: mixed},
		{rows: 40, sessions: 40, trials: 5, chances: mixed},
		{rows: 40, sessions: 40, trials: 10, chances: mixed},
		{rows: 200, sessions: 200, trials: 3, chances: []float64{0.8, 0.95, 1}},
		{rows: 160, sessions: 40, trials: 1, chances: mixed},
		{rows: 160, sessions: 40, trials: 5, chances: mixed},
		{rows: 30, sessions: 30, trials: 4, chances: scores, scores: true},
		{rows: 120, sessions: 40, trials: 2, chances: scores, scores: true},
	} {
		random, covered := rand.New(rand.NewPCG(1, 1)), 0
		for range simulated {
			rows := s.run(random)
			m := summarize(rows, !s.scores, true, alpha)
			if m.Low <= s.mean() && s.mean() <= m.High {
				covered++
			}
			if low, high := wilson(m.Mean, float64(m.Count), normalQuantile(0.975)); s.trials == 10 && low <= s.mean() && s.mean() <= high {
				naive++
			}
		}
		if share := float64(covered) / simulated; share < 0.94 || share > 0.96 {
			t.Errorf("%+v: covered %.4f", s, share)
		}
	}
	if share := float64(naive) / simulated; share > 0.8 {
		t.Errorf("intervals of independent results cover %.3f", share)
	}
}

// TestSummarize_Units checks the coverage of means with a unit, such as tokens, and that one row has no interval.
func TestSummarize_Units(t *testing.T) {
	random, covered := rand.New(rand.NewPCG(1, 1)), 0
	for range simulated {
		rows := make([]observation, 25)
		for i := range rows {
			base := 100 + 20*random.NormFloat64()
			rows[i] = observation{cluster: fmt.Sprint(i), values: []float64{base + 5*random.NormFloat64(), base + 5*random.NormFloat64()}}
		}
		if m := summarize(rows, false, false, alpha); m.Low <= 100 && 100 <= m.High {
			covered++
		}
	}
	if share := float64(covered) / simulated; share < 0.94 || share > 0.96 {
		t.Errorf("covered %.4f", share)
	}
	if m := summarize([]observation{{values: []float64{3, 5}}}, false, false, alpha); m.Mean != 4 || m.Low != 4 || m.High != 4 || m.Clusters != 1 {
		t.Errorf("one row: %+v", m)
	}
}

// TestUntil_Coverage checks that an interval whose narrowness ended the evaluation has the true mean in at least
// 95 % of evaluations.
func TestUntil_Coverage(t *testing.T) {
	testkit.SkipWithRace(t)
	for _, s := range []simulation{
		{rows: 800, sessions: 800, trials: 1, chances: []float64{0.05, 0.5, 0.9, 1}},
		{rows: 800, sessions: 800, trials: 3, chances: []float64{0.9, 0.95, 1}},
	} {
		random, covered, early := rand.New(rand.NewPCG(3, 4)), 0, 0
		planned := looks(s.rows)
		for range simulated {
			rows := s.run(random)
			for _, n := range planned {
				m := summarize(rows[:n], true, true, alpha/float64(len(planned)))
				if (m.High-m.Low)/2 > 0.06 && n < s.rows {
					continue
				}
				if m.Low <= s.mean() && s.mean() <= m.High {
					covered++
				}
				if n < s.rows {
					early++
				}
				break
			}
		}
		if share := float64(covered) / simulated; share < 0.95 {
			t.Errorf("%+v: covered %.4f", s, share)
		}
		if early == 0 {
			t.Errorf("%+v: no evaluation ended early", s)
		}
	}
}

// TestComparison_FewRows checks that a few rows which all differ are not significant.
func TestComparison_FewRows(t *testing.T) {
	for rows, want := range map[int]bool{1: false, 5: false, 6: true, 20: true} {
		var from, to []observation
		for i := range rows {
			from = append(from, observation{int64(i), fmt.Sprint(i), []float64{0, 0}})
			to = append(to, observation{int64(i), fmt.Sprint(i), []float64{1, 1}})
		}
		if c := compare(from, to, spec.MetricRow{}, 1, alpha); c.Significant() != want || c.Better != rows || c.Difference != 1 {
			t.Errorf("%d rows: %+v", rows, c)
		}
		if c := compare(from, to, spec.MetricRow{}, 3, alpha); rows == 6 && c.Significant() {
			t.Errorf("6 rows are significant for one of 3 variants: %+v", c)
		}
	}
}

// TestComparison_FalseAlarms checks that equal variants differ significantly in at most 5 % of evaluations, and
// that the interval of the difference has 0 in about 95 %.
func TestComparison_FalseAlarms(t *testing.T) {
	testkit.SkipWithRace(t)
	for _, s := range []simulation{
		{rows: 25, sessions: 25, trials: 1, chances: []float64{0.5, 0.7, 0.9}},
		{rows: 25, sessions: 25, trials: 4, chances: []float64{0.5, 0.7, 0.9}},
		{rows: 60, sessions: 20, trials: 2, chances: []float64{0.5, 0.7, 0.9}},
	} {
		random, alarms, covered := rand.New(rand.NewPCG(5, 6)), 0, 0
		for range simulated / 4 {
			from, to := s.pair(random)
			c := compare(from, to, spec.MetricRow{}, 1, alpha)
			if c.Significant() {
				alarms++
			}
			if c.Low <= 0 && 0 <= c.High {
				covered++
			}
		}
		if share := float64(alarms) / (simulated / 4); share > 0.05 {
			t.Errorf("%+v: %.3f are significant", s, share)
		}
		if share := float64(covered) / (simulated / 4); share < 0.93 || share > 0.98 {
			t.Errorf("%+v: covered %.3f", s, share)
		}
	}
}

// gated compares an evaluation of one or two metrics with a baseline.
func gated(before, now [][]observation, gate Gate) *Report {
	x := &execution{Evaluation: &Evaluation{config: Config{Gate: gate, MaxRegression: 0.05}, variants: []*variant{{declared: &spec.Variant{ID: "base"}}}, trials: len(now[0][0].values)}, data: &dataset{}}
	reports := [2]*Report{{}, {}}
	for i, side := range [][][]observation{before, now} {
		results := make([]*Result, 0, len(side[0]))
		for j, row := range side[0] {
			for k := range row.values {
				r := &Result{Variant: "base", Row: row.row, Scores: map[string]*Score{}}
				for m := range side {
					r.Scores[fmt.Sprint(m)] = &Score{Value: side[m][j].values[k]}
				}
				results = append(results, r)
			}
			if i == 0 {
				x.data.rows = append(x.data.rows, dataRow{Record: records.Record{Number: row.row}})
			}
		}
		reports[i].Results = results
	}
	for m := range before {
		row, _ := spec.LookupMetric("exact")
		x.metrics = append(x.metrics, &metric{declared: &spec.Metric{ID: fmt.Sprint(m), Type: "exact"}, row: row})
		reports[0].Metrics = append(reports[0].Metrics, MetricReport{ID: fmt.Sprint(m)})
	}
	x.config.Baseline, x.results = reports[0], reports[1].Results
	x.addChanges(reports[1])
	return reports[1]
}

// TestGate_FalseAlarms checks that an unchanged application fails in at most 5 % of evaluations, and that the mean
// alone fails it more often.
func TestGate_FalseAlarms(t *testing.T) {
	testkit.SkipWithRace(t)
	for _, s := range []simulation{
		{rows: 20, sessions: 20, trials: 1, chances: []float64{0.3, 0.7, 0.9}},
		{rows: 20, sessions: 20, trials: 4, chances: []float64{0.3, 0.7, 0.9}},
	} {
		random, alarms, byMean := rand.New(rand.NewPCG(7, 8)), 0, 0
		for range simulated / 4 {
			one, again := s.pair(random)
			two, twice := s.pair(random)
			before, now := [][]observation{one, two}, [][]observation{again, twice}
			failed := func(gate Gate) bool {
				return slices.ContainsFunc(gated(before, now, gate).Baseline, func(c Change) bool { return c.Regression })
			}
			if failed(GateProven) {
				alarms++
			}
			if failed(GateMean) {
				byMean++
			}
		}
		if share := float64(alarms) / (simulated / 4); share > 0.05 {
			t.Errorf("%+v: %.3f fail", s, share)
		}
		if share := float64(byMean) / (simulated / 4); share < 0.2 {
			t.Errorf("%+v: %.3f fail by the mean", s, share)
		}
	}
}

// TestGate_BrokenRows checks that trials tell a row that is broken from one that fails by chance.
func TestGate_BrokenRows(t *testing.T) {
	for _, c := range []struct {
		broken, trials int
		gate           Gate
		want           bool
	}{{2, 1, GateProven, false}, {2, 1, GateMean, true}, {4, 1, GateProven, false}, {6, 1, GateProven, true}, {2, 3, GateProven, true}, {1, 5, GateProven, true}, {0, 5, GateMean, false}} {
		var before, now []observation
		for i := range 10 {
			o := observation{row: int64(i + 1), values: slices.Repeat([]float64{1}, c.trials)}
			before = append(before, o)
			if i < c.broken {
				o.values = make([]float64, c.trials)
			}
			now = append(now, o)
		}
		r := gated([][]observation{before}, [][]observation{now}, c.gate)
		if r.Baseline[0].Regression != c.want || (len(r.Warnings) == 1) != (c.broken > 0 && !c.want) {
			t.Errorf("%+v: %+v, warnings %q", c, r.Baseline[0], r.Warnings)
		}
	}
}
