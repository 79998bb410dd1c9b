package optimize

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/qtype-dev/qtype/internal/eval"
	"github.com/qtype-dev/qtype/internal/eval/evalrun"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec"
)

// task is what a search needs of the application.
type task interface {
	// prepare reports why a document with the values of a candidate is not valid.
	prepare(ctx context.Context, c *Candidate) error
	// run runs rows with a candidate. The results are in the order of the rows, then of the trials.
	run(ctx context.Context, c *Candidate, rows []int) ([]*evalrun.Result, error)
	// propose asks the model for another text. rows are training rows with results of the candidate.
	propose(ctx context.Context, c *Candidate, t *eval.Text, rows []int) (text string, money float64, err error)
	// check reports why a proposed text is not tried.
	check(c *Candidate, t *eval.Text, text string) error
	// example writes a training row and what is expected of it for a system message; empty if that cannot be.
	example(row int) (text, expected string)
}

// search looks for a candidate that is better than the document.
type search struct {
	task
	declared *spec.Optimization
	metrics  []evalrun.MetricReport
	metric   evalrun.MetricReport // that is improved
	bounds   func(metric string) (low, high float64)
	texts    []*eval.Text
	examples []*eval.Text // to which examples may be added
	choices  []*eval.Choice
	rows     []evalrun.BenchRow
	trials   int
	progress func(string) // called with a line for each candidate; may be nil

	train, validation, test [][]int // sessions: the places of their rows
	random                  *rand.Rand
	pool                    []*Candidate // with results of all validation rows; base is the first one
	known                   map[string]*Candidate
	log                     []*Candidate
	proposals, merges       int
	unchanged               int // proposals since the best mean has changed
	runs                    int
	money                   float64
	patience                int // proposals without a better mean, after which the search ends
	begin                   time.Time
	stopped                 string // why the search has ended
}

// The limits of a search.
const (
	minSessions = 6 // in which candidates must differ to be significantly different
	patience    = 8 // see search.patience
	maxMerges   = 5
	finalists   = 3 // combinations of values that are compared with validation rows
	firstRows   = 4 // sessions with which combinations are compared first
)

// errStopped ends the search; search.stopped says why.
var errStopped = errors.New("the search has ended")

// run searches and returns the best candidate, which is the first of the pool if nothing was better.
func (s *search) run(ctx context.Context) (*Candidate, error) {
	s.begin, s.known = time.Now(), map[string]*Candidate{}
	s.random = rand.New(rand.NewPCG(uint64(s.declared.Seed), 0x6f7074696d697365))
	if err := s.split(); err != nil {
		return nil, err
	}
	base := &Candidate{ID: "base", Verdict: "the document"}
	s.known[base.ID] = base
	err := s.prepare(ctx, base)
	if err == nil {
		err = s.validate(ctx, base)
	}
	if err == nil {
		err = s.chooseValues(ctx, base)
	}
	if err == nil {
		err = s.addExamples(ctx)
	}
	if err == nil && len(s.texts) > 0 {
		err = s.rewriteTexts(ctx)
	}
	switch {
	case errors.Is(err, errStopped) && len(s.pool) == 0:
		return nil, &evalrun.UsageError{Reason: s.stopped + " before the document itself is evaluated: it needs more"}
	case err != nil && !errors.Is(err, errStopped):
		return nil, err
	}
	return s.best(), nil
}

// split puts sessions into parts by a hash, so that new rows do not move others.
func (s *search) split() error {
	index := map[string]int{}
	var sessions [][]int
	for i, r := range s.rows {
		n, known := index[r.Cluster]
		if !known {
			n = len(sessions)
			index[r.Cluster], sessions = n, append(sessions, nil)
		}
		sessions[n] = append(sessions[n], i)
	}
	for _, rows := range sessions {
		sum := sha256.Sum256([]byte(s.rows[rows[0]].Cluster))
		mustPass := slices.ContainsFunc(rows, func(i int) bool { return s.rows[i].MustPass })
		switch at := float64(binary.BigEndian.Uint32(sum[:4])) / (1 << 32); {
		case !mustPass && at < s.declared.Train:
			s.train = append(s.train, rows)
		case mustPass, at < s.declared.Train+s.declared.Validation: // all candidates that can be taken run these
			s.validation = append(s.validation, rows)
		default:
			s.test = append(s.test, rows)
		}
	}
	if len(s.train) == 0 || len(s.validation) < minSessions || len(s.test) < minSessions {
		return &evalrun.UsageError{Reason: fmt.Sprintf("%s: %d for training, %d for validation and %d held out: no difference can be proven "+
			"with less than %d for validation and as many held out: add rows, or change train and validation",
			textfmt.Count(len(sessions), "row or session"), len(s.train), len(s.validation), len(s.test), minSessions)}
	}
	return nil
}

// stop ends the search.
func (s *search) stop(format string, args ...any) error {
	s.stopped = fmt.Sprintf(format, args...)
	return errStopped
}

// measure runs sessions that have no results of a candidate. Runs of held-out rows are reserved.
func (s *search) measure(ctx context.Context, c *Candidate, sessions [][]int) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	var rows []int
	for _, session := range sessions {
		if _, done := c.results[session[0]]; !done {
			rows = append(rows, session...)
		}
	}
	if len(rows) == 0 {
		return nil
	}
	reserved := 0
	for _, session := range s.test {
		reserved += 2 * len(session) * s.trials
	}
	switch n := len(rows) * s.trials; {
	case s.runs+n+reserved > s.declared.Runs:
		return s.stop("the limit of %s", textfmt.Count(int64(s.declared.Runs), "run"))
	case s.declared.Money > 0 && s.money+s.money/float64(max(s.runs, 1))*float64(n+reserved) > s.declared.Money:
		return s.stop("the limit of money, %v", s.declared.Money)
	case s.declared.Time > 0 && time.Since(s.begin) > time.Duration(s.declared.Time):
		return s.stop("the limit of time, %s", time.Duration(s.declared.Time))
	}
	return s.execute(ctx, c, rows)
}

// execute runs rows with a candidate.
func (s *search) execute(ctx context.Context, c *Candidate, rows []int) error {
	results, err := s.task.run(ctx, c, rows)
	if err != nil {
		return err
	}
	if c.results == nil {
		c.results = map[int][]*evalrun.Result{}
	}
	for i, row := range rows {
		c.results[row] = results[i*s.trials : (i+1)*s.trials]
	}
	for _, r := range results {
		s.money += r.Usage.Money + r.Scoring
	}
	s.runs += len(results)
	return nil
}

// validate runs the validation rows of a candidate, compares it with the best one and adds it to the pool.
func (s *search) validate(ctx context.Context, c *Candidate) error {
	if err := s.measure(ctx, c, s.validation); err != nil {
		return err
	}
	mean := s.mean(c, s.validation)
	c.Validation = &mean
	if len(s.pool) > 0 {
		best, top := s.best(), s.gain(slices.MaxFunc(s.pool, func(a, b *Candidate) int { return cmp.Compare(s.gain(a), s.gain(b)) }))
		if s.unchanged++; s.gain(c) > top {
			s.unchanged = 0
		}
		comparison := s.metric.Compare(best.of(s.validation), c.of(s.validation), len(s.pool))
		c.P = &comparison.P
		switch reason := s.outOfBounds(c); {
		case reason != "":
			c.Verdict = reason
		case !s.metric.Better(comparison.Difference):
			c.Verdict = "not better with validation rows"
		case !comparison.Significant():
			c.Verdict = "better by chance, perhaps: kept for the search"
		default:
			c.Verdict = "better than " + best.ID
		}
	}
	s.pool = append(s.pool, c)
	s.note(c)
	if s.isPerfect(c) {
		return s.stop("no validation row can be better")
	}
	return nil
}

func (s *search) isPerfect(c *Candidate) bool {
	return !slices.ContainsFunc(s.validation, func(session []int) bool { return s.fails(c, session) })
}

// note adds a candidate to the log.
func (s *search) note(c *Candidate) {
	if !slices.Contains(s.log, c) {
		s.log = append(s.log, c)
	}
	if s.progress != nil {
		s.progress(s.line(c))
	}
}

// best returns the candidate that is significantly better than those before it, corrected for the number of candidates that
// were compared until now.
func (s *search) best() *Candidate {
	best := s.pool[0]
	for _, c := range s.pool[1:] {
		if s.gain(c) <= s.gain(best) {
			continue
		}
		comparison := s.metric.Compare(best.of(s.validation), c.of(s.validation), len(s.pool)-1)
		if s.metric.Better(comparison.Difference) && comparison.Significant() && s.outOfBounds(c) == "" {
			best = c
		}
	}
	return best
}

// outOfBounds reports a row that must pass and got worse, or a metric that is outside of its bounds, and worse than that of the document.
func (s *search) outOfBounds(c *Candidate) string {
	for _, i := range slices.Concat(s.validation...) {
		if s.rows[i].MustPass && slices.ContainsFunc(s.metrics, func(m evalrun.MetricReport) bool {
			return m.Unit == "" && m.Better(m.Summarize(s.pool[0].results[i]).Mean-m.Summarize(c.results[i]).Mean)
		}) {
			return fmt.Sprintf("row %d, which must pass, is worse", s.rows[i].Number)
		}
	}
	for _, m := range s.metrics {
		low, high := s.bounds(m.ID)
		v, before := m.Summarize(c.of(s.validation)).Mean, m.Summarize(s.pool[0].of(s.validation)).Mean
		if v < low && v < before || v > high && v > before {
			return fmt.Sprintf("%s is %s, out of its bounds", m.ID, m.Format(v))
		}
	}
	return ""
}

// child makes a candidate that differs from its parent in some values. One that was not better with other training rows is
// tried again: it may have been these rows.
func (s *search) child(ctx context.Context, parent *Candidate, changes map[string]any) (*Candidate, error) {
	c := &Candidate{Parent: parent.ID, Values: maps.Clone(parent.Values), Examples: parent.Examples}
	if c.Values == nil {
		c.Values = map[string]any{}
	}
	for address, v := range changes {
		c.Changed = append(c.Changed, address)
		c.Values[address] = v
		if t := s.text(address); t != nil && t.Now == v {
			delete(c.Values, address)
		}
	}
	slices.Sort(c.Changed)
	c.ID = idOf(c.Values)
	if before := s.known[c.ID]; before != nil {
		if before.valid && before.Validation == nil {
			return before, nil
		}
		c.Verdict = "tried already, as " + c.ID
		return c, errRejected
	}
	s.known[c.ID] = c
	if err := s.prepare(ctx, c); err != nil {
		c.Verdict = "rejected: " + textfmt.OneLine(err.Error())
		return c, errRejected
	}
	c.valid = true
	return c, nil
}

// errRejected is the error of child for a candidate that is not run.
var errRejected = errors.New("rejected")

func (s *search) text(address string) *eval.Text {
	i := slices.IndexFunc(s.texts, func(t *eval.Text) bool { return t.Address == address })
	if i < 0 {
		return nil
	}
	return s.texts[i]
}

// textOf returns a text of a candidate.
func (c *Candidate) textOf(t *eval.Text) string {
	if v, ok := c.Values[t.Address].(string); ok {
		return v
	}
	return t.Now
}
