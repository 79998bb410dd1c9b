package optimize

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/eval"
	"github.com/qtype-dev/qtype/internal/eval/evalrun"
	"github.com/qtype-dev/qtype/spec"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// landscape is a task whose scores follow from the texts of a candidate.
type landscape struct {
	score   func(texts []string, row int) float64
	rewrite func(c *Candidate, text string, n, row int) string // the n-th proposal, for a text whose first failing row is given
	keep    []string
	shows   func(row int) (text, expected string)

	search   *search
	proposed int
}

func (l *landscape) prepare(_ context.Context, c *Candidate) error {
	for _, v := range c.Values {
		if v == "invalid" {
			return errors.New("not a valid document")
		}
	}
	return nil
}

func (l *landscape) run(_ context.Context, c *Candidate, rows []int) (all []*evalrun.Result, err error) {
	var texts []string
	for _, t := range l.search.texts {
		texts = append(texts, c.textOf(t))
	}
	for _, choice := range l.search.choices {
		texts = append(texts, fmt.Sprint(c.Values[choice.Address]))
	}
	for _, row := range rows {
		all = append(all, &evalrun.Result{Row: int64(row + 1), Scores: map[string]*evalrun.Score{"m": {Value: l.score(texts, row)}}})
	}
	return all, nil
}

func (l *landscape) propose(_ context.Context, c *Candidate, t *eval.Text, rows []int) (string, float64, error) {
	l.proposed++
	return l.rewrite(c, c.textOf(t), l.proposed, rows[0]), 0, nil
}

func (l *landscape) example(row int) (string, string) { return l.shows(row) }

func (l *landscape) check(c *Candidate, t *eval.Text, text string) error {
	return checkText(t, c.textOf(t), text, l.keep, []string{"the quick brown fox jumps over the lazy dog"})
}

// searchOf makes the search of a landscape of n rows with some texts.
func searchOf(l *landscape, n, seed int, texts ...string) *search {
	s := &search{task: l, trials: 1, patience: patience, metrics: []evalrun.MetricReport{{ID: "m", Rate: true}}, bounds: func(string) (float64, float64) { return math.Inf(-1), math.Inf(1) }}
	s.metric, l.search = s.metrics[0], s
	s.declared = &spec.Optimization{Train: 0.4, Validation: 0.4, Batch: 4, Proposals: 20, Runs: 5000, Seed: seed}
	for _, address := range texts {
		s.texts = append(s.texts, &eval.Text{Place: &eval.Place{Address: address}, Now: "start {order}"})
	}
	for i := range n {
		s.rows = append(s.rows, evalrun.BenchRow{Number: int64(i + 1), Cluster: fmt.Sprintf("row %d of %d", i, seed)})
	}
	return s
}

// explore searches a landscape of n rows with some texts.
func explore(t *testing.T, l *landscape, n, seed int, texts ...string) (*search, *Report) {
	t.Helper()
	return finished(t, searchOf(l, n, seed, texts...))
}

func finished(t *testing.T, s *search) (*search, *Report) {
	t.Helper()
	best, err := s.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.finish(t.Context(), best)
	if err != nil {
		t.Fatal(err)
	}
	return s, r
}

func is(ok bool) float64 {
	if ok {
		return 1
	}
	return 0
}

// hash returns a number that is random, and always the same.
func hash(parts ...any) uint32 {
	h := fnv.New32a()
	fmt.Fprint(h, parts...)
	return h.Sum32() >> 4
}

// TestSearch_Separable finds three rules, each of which a third of the rows needs, and stops when nothing can be better.
func TestSearch_Separable(t *testing.T) {
	for seed := range 5 {
		l := &landscape{
			score: func(texts []string, row int) float64 {
				return is(strings.Contains(texts[0], fmt.Sprintf("R%d", row%3)))
			},
			rewrite: func(_ *Candidate, text string, _, row int) string { return fmt.Sprintf("%s R%d", text, row%3) },
		}
		s, r := explore(t, l, 120, seed, "a.text")
		if r.Proposals != 3 || !r.Found || r.Results[0].After.Mean != 1 || s.stopped != "no validation row can be better" {
			t.Errorf("seed %d: %d proposals, found %v, %q, %+v", seed, r.Proposals, r.Found, s.stopped, r.Results)
		}
	}
}

// TestSearch_Deceptive does not take a text that helps the rows of a batch and hurts others.
func TestSearch_Deceptive(t *testing.T) {
	for seed := range 5 {
		l := &landscape{score: func(texts []string, row int) float64 {
			hard := row%10 < 3
			switch {
			case strings.Contains(texts[0], "trap"):
				return is(hard)
			case strings.Contains(texts[0], "good"):
				return 1
			}
			return is(!hard)
		}, rewrite: func(_ *Candidate, text string, n, _ int) string {
			if n < 6 {
				return fmt.Sprintf("%s trap%d", text, n)
			}
			return "{order} good"
		}}
		s, r := explore(t, l, 200, seed, "a.text")
		best := s.known[r.Best]
		if !r.Found || strings.Contains(best.textOf(s.texts[0]), "trap") {
			t.Errorf("seed %d: found %v, %v, %v", seed, r.Found, best.Values, s.stopped)
		}
	}
}

// TestSearch_Pareto merges two candidates, of which each solves other rows.
func TestSearch_Pareto(t *testing.T) {
	for seed := range 5 {
		l := &landscape{score: func(texts []string, row int) float64 {
			a, b := strings.Contains(texts[0], "A"), strings.Contains(texts[1], "B")
			switch row % 5 {
			case 0, 1:
				return is(a)
			case 2, 3:
				return is(b)
			}
			return is(a == b)
		}}
		l.rewrite = func(c *Candidate, text string, n, _ int) string {
			if c.ID != "base" {
				return fmt.Sprintf("{order} junk %d", n)
			}
			if c.turn%2 == 1 {
				return text + " A"
			}
			return text + " B"
		}
		s := searchOf(l, 200, seed, "x.text", "y.text")
		s.patience, s.declared.Proposals = 90, 90
		s, r := finished(t, s)
		if best := s.known[r.Best]; !r.Found || best.MergedWith == "" || r.Results[0].After.Mean != 1 {
			t.Errorf("seed %d: found %v, best %+v, %s", seed, r.Found, best.Values, s.stopped)
		}
	}
}

// TestSearch_MustPass takes no text that makes a row worse that must pass, however much better it is, and one that keeps the row.
// What the document fails may stay as it is.
func TestSearch_MustPass(t *testing.T) {
	for _, good := range []bool{false, true} {
		l := &landscape{score: func(texts []string, row int) float64 {
			switch row {
			case 3: // it passes with the document
				return is(!strings.Contains(texts[0], "greedy"))
			case 5:
				return 0
			}
			return is(strings.Contains(texts[0], "greedy") || strings.Contains(texts[0], "careful"))
		}, rewrite: func(_ *Candidate, text string, n, _ int) string {
			if good && n == 4 {
				return "{order} careful"
			}
			return fmt.Sprintf("%s greedy %d", text, n)
		}}
		s := searchOf(l, 120, 1, "a.text")
		s.rows[3].MustPass, s.rows[5].MustPass = true, true
		s, r := finished(t, s)
		if best := s.known[r.Best]; r.Found != good || strings.Contains(best.textOf(s.texts[0]), "greedy") || good != (r.Best != "base") {
			t.Errorf("found %v, best %+v, %s", r.Found, best.Values, s.stopped)
		}
		if !slices.ContainsFunc(r.Candidates, func(c *Candidate) bool { return c.Verdict == "row 4, which must pass, is worse" }) {
			t.Error("no candidate is rejected because of the row")
		}
	}
}

// TestSearch_Examples finds that examples help, with rows that show none of the validation and held-out rows, and nothing where they do not.
func TestSearch_Examples(t *testing.T) {
	for seed := range 5 {
		for _, helps := range []bool{true, false} {
			kind := func(row int) string { return fmt.Sprintf("kind%d", row%4) }
			l := &landscape{shows: func(row int) (string, string) { return fmt.Sprintf("row %d is %s", row, kind(row)), kind(row) },
				score: func(texts []string, row int) float64 {
					if !helps {
						return is(hash(seed, texts[0], row)%2 == 0)
					}
					return is(strings.Contains(texts[0], kind(row)))
				},
				rewrite: func(_ *Candidate, text string, n, _ int) string { return fmt.Sprintf("%s %d", text, n) }}
			s := searchOf(l, 120, seed, "a.text")
			s.examples = s.texts
			s, r := finished(t, s)
			if best := s.known[r.Best]; r.Found != helps || helps && (len(best.Examples) < 4 || r.Results[0].After.Mean != 1) {
				t.Errorf("seed %d: found %v, best %+v, %s", seed, r.Found, best, s.stopped)
			}
			for _, c := range r.Candidates {
				for _, row := range slices.Concat(slices.Concat(s.validation, s.test)...) {
					if slices.Contains(c.Examples, int64(row+1)) || strings.Contains(fmt.Sprint(c.Values), fmt.Sprintf("row %d is", row)) {
						t.Errorf("seed %d: %s shows row %d, by which it is judged", seed, c.ID, row)
					}
				}
			}
		}
	}
}

// TestSearch_Noise finds nothing where scores do not depend on the text, in at least 95 % of searches.
func TestSearch_Noise(t *testing.T) {
	found, accepted := 0, 0
	const seeds = 200
	for seed := range seeds {
		l := &landscape{
			score:   func(texts []string, row int) float64 { return is(hash(seed, texts[0], "|", row)%2 == 0) },
			rewrite: func(_ *Candidate, _ string, n, _ int) string { return fmt.Sprintf("{order} %d", n) },
		}
		s := searchOf(l, 100, seed, "a.text")
		s.declared.Proposals = 12
		s, r := finished(t, s)
		if r.Found {
			found++
		}
		if s.best() != s.pool[0] {
			accepted++
		}
	}
	t.Logf("found in %d, accepted with validation rows in %d of %d", found, accepted, seeds)
	if found > seeds/20 || accepted > seeds/10 {
		t.Errorf("found in %d, accepted in %d of %d", found, accepted, seeds)
	}
}

// TestSearch_Rejects counts proposals that are not tried, and goes on.
func TestSearch_Rejects(t *testing.T) {
	bad := []string{"", "start {order}", "R without its place", `{"order": 1}`, strings.Repeat("{order} long ", 4000), "{order} ${SECRET}",
		"{order} as the quick brown fox jumps over the hedge", "invalid"}
	l := &landscape{
		score: func(texts []string, _ int) float64 { return is(strings.Contains(texts[0], "R")) },
		rewrite: func(_ *Candidate, _ string, n, _ int) string {
			if n < patience {
				return bad[n-1]
			}
			return "{order} R"
		},
	}
	s, r := explore(t, l, 100, 1, "a.text")
	if !r.Found || r.Proposals != patience {
		t.Errorf("found %v, %d proposals, %s", r.Found, r.Proposals, s.stopped)
	}
	l.rewrite, l.proposed = func(_ *Candidate, _ string, n, _ int) string { return bad[n%len(bad)] }, 0
	if s, r = explore(t, l, 100, 1, "a.text"); r.Found || s.stopped != fmt.Sprintf("nothing better in %d proposals", patience) {
		t.Errorf("found %v, %s", r.Found, s.stopped)
	}
}

// TestSearch_Limits never runs more rows than allowed, held-out ones included.
func TestSearch_Limits(t *testing.T) {
	for _, runs := range []int{60, 120, 200, 300} {
		l := &landscape{
			score: func(texts []string, row int) float64 {
				return is(strings.Contains(texts[0], fmt.Sprintf("R%d", row%9)))
			},
			rewrite: func(_ *Candidate, text string, _, row int) string { return fmt.Sprintf("%s R%d", text, row%9) },
		}
		s := searchOf(l, 100, 1, "a.text")
		s.declared.Runs = runs
		best, err := s.run(t.Context())
		var usage *evalrun.UsageError
		if errors.As(err, &usage) && runs < 100 {
			continue
		}
		if err != nil {
			t.Fatal(runs, err)
		}
		if r, err := s.finish(t.Context(), best); err != nil || r.Runs > runs {
			t.Errorf("%d runs of %d, %v", r.Runs, runs, err)
		}
	}
}

// TestSearch_Values finds the one of many values that is better, and does not run all rows with each of them.
func TestSearch_Values(t *testing.T) {
	l := &landscape{score: func(texts []string, row int) float64 {
		switch texts[0] {
		case "7":
			return is(row%10 > 0)
		case "3":
			return is(row%10 > 5)
		}
		return is(row%2 == 0)
	}}
	s := searchOf(l, 200, 1)
	choice := &eval.Choice{Place: &eval.Place{Address: "search.top_k"}}
	for v := range 20 {
		choice.Values = append(choice.Values, v)
	}
	s.choices = []*eval.Choice{choice}
	best, err := s.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if best.Values["search.top_k"] != 7 || s.runs > 1400 {
		t.Errorf("best is %v after %d runs", best.Values, s.runs)
	}
	if !slices.ContainsFunc(s.log, func(c *Candidate) bool { return strings.HasPrefix(c.Verdict, "others are better") }) {
		t.Error("all values have run the validation rows")
	}
}

// TestAnswered takes the text between the outermost marks.
func TestAnswered(t *testing.T) {
	for answer, want := range map[string]string{"": "", "no marks": "", "Here:\n<text>\nBe kind.\n</text> Done.": "Be kind.", "</text><text>": "", "<text>a <text>b</text> c</text>": "a <text>b</text> c"} {
		if got := answered(answer); got != want {
			t.Errorf("%q: got %q, want %q", answer, got, want)
		}
	}
}
