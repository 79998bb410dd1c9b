package optimize

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/qtype-dev/qtype/internal/eval"
	"github.com/qtype-dev/qtype/internal/eval/evalrun"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec/value"
)

// Config describes an optimization. Config.Journal is the file with what was run; with Resume, nothing is run twice.
type Config struct {
	evalrun.Config
	Log func(line string) // called with a line for each candidate; may be nil
}

// Run optimizes an application. An error means that there is no report.
func Run(ctx context.Context, cfg Config, e *evalrun.Evaluation) (report *Report, err error) {
	bench, err := e.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, bench.Close(err == nil)) }()
	if err := bench.CheckPrices(); err != nil {
		return nil, err
	}
	o := e.Optimization
	t := &application{bench: bench, optimization: o, rows: bench.Rows(), programs: map[string]*evalrun.Program{}, places: map[string]*eval.Place{}}
	for _, text := range slices.Concat(o.Texts, o.Examples) {
		t.places[text.Address] = text.Place
	}
	for _, c := range o.Choices {
		t.places[c.Address] = c.Place
	}
	s := &search{task: t, declared: o.Declared, metrics: bench.Metrics(), bounds: bench.Bounds, texts: o.Texts, examples: o.Examples, choices: o.Choices,
		rows: t.rows, trials: bench.Trials(), patience: patience, progress: cfg.Log}
	i := slices.IndexFunc(s.metrics, func(m evalrun.MetricReport) bool { return m.ID == o.Metric.Declared.Name() })
	s.metric = s.metrics[i]
	t.search = s
	if t.journal, err = openJournal(&cfg.Config, bench); err != nil {
		return nil, err
	}
	bench.Saved = func(results []*evalrun.Result) error {
		return t.journal.save(record{Candidate: results[0].Variant, Results: results})
	}
	best, err := s.run(ctx)
	if err == nil {
		report, err = s.finish(ctx, best)
	}
	if err == nil {
		err = bench.SaveRecordings()
	}
	if err != nil {
		return nil, errors.Join(err, t.journal.close())
	}
	report.App, report.Flow, report.Data = bench.Names()
	if report.Found {
		report.Changes, err = t.changes(best)
	}
	if err == nil && cfg.Written != nil {
		err = report.write(cfg.Written[0])
	}
	if err != nil {
		return nil, errors.Join(err, t.journal.close())
	}
	return report, t.journal.remove()
}

// finish runs the held-out rows with the document and the best candidate.
func (s *search) finish(ctx context.Context, best *Candidate) (*Report, error) {
	base := s.pool[0]
	r := &Report{Version: 1, Metric: s.metric.ID, Training: count(s.train), Validation: count(s.validation), HeldOut: count(s.test),
		Candidates: s.log, Best: best.ID, Stopped: s.stopped, Metrics: s.metrics}
	if best != base {
		for _, c := range []*Candidate{base, best} {
			if err := s.execute(ctx, c, slices.Concat(s.test...)); err != nil {
				return nil, err
			}
		}
		before, after := base.of(s.test), best.of(s.test)
		for _, m := range s.metrics {
			r.Results = append(r.Results, Change{m.Summarize(before), m.Summarize(after), m.Compare(before, after, 1)})
			if c := r.Results[len(r.Results)-1].Comparison; m.ID == s.metric.ID {
				r.Found = c.Significant() && m.Better(c.Difference)
			}
		}
		r.Before, r.After = usageOf(before), usageOf(after)
	}
	r.Runs, r.Money, r.Proposals, r.took = s.runs, s.money, s.proposals, time.Since(s.begin)
	return r, nil
}

func count(sessions [][]int) (rows int) {
	for _, s := range sessions {
		rows += len(s)
	}
	return rows
}

// application is the task of a real application.
type application struct {
	bench        *evalrun.Bench
	optimization *eval.Optimization
	search       *search
	journal      *journal
	rows         []evalrun.BenchRow
	programs     map[string]*evalrun.Program
	places       map[string]*eval.Place
	training     []string // texts of the training rows
}

// valuesOf returns the values of a candidate by their places.
func (t *application) valuesOf(c *Candidate) map[*eval.Place]any {
	values := map[*eval.Place]any{}
	for address, v := range c.Values {
		values[t.places[address]] = v
	}
	return values
}

func (t *application) prepare(ctx context.Context, c *Candidate) error {
	texts, err := eval.Texts(t.valuesOf(c))
	if err != nil {
		return err
	}
	p, list := t.bench.Program(ctx, texts)
	if err := eval.FirstError(list); err != nil {
		return err
	}
	t.programs[c.ID] = p
	return nil
}

// run runs rows that are not in the journal.
func (t *application) run(ctx context.Context, c *Candidate, rows []int) ([]*evalrun.Result, error) {
	known := t.journal.results[c.ID]
	trials := t.bench.Trials()
	complete := map[string]bool{} // by session
	for _, i := range rows {
		done, seen := complete[t.rows[i].Cluster]
		complete[t.rows[i].Cluster] = (done || !seen) && len(known[t.rows[i].Number]) == trials
	}
	todo := slices.DeleteFunc(slices.Clone(rows), func(i int) bool { return complete[t.rows[i].Cluster] })
	fresh := map[int64][]*evalrun.Result{}
	if len(todo) > 0 {
		results, err := t.bench.Run(ctx, c.ID, t.programs[c.ID], todo)
		if err != nil {
			return nil, err
		}
		for _, r := range results {
			fresh[r.Row] = append(fresh[r.Row], r)
		}
	}
	var all []*evalrun.Result
	for _, i := range rows {
		results, ran := fresh[t.rows[i].Number]
		if !ran {
			for _, trial := range known[t.rows[i].Number] {
				results = append(results, trial)
			}
			slices.SortFunc(results, func(a, b *evalrun.Result) int { return a.Trial - b.Trial })
		}
		all = append(all, results...)
	}
	return all, nil
}

func (t *application) propose(ctx context.Context, c *Candidate, text *eval.Text, rows []int) (string, float64, error) {
	var examples []example
	for _, i := range rows {
		examples = append(examples, exampleOf(c.results[i], t.search.metric, t.bench.Expected(i)))
	}
	messages, err := request(text, c.textOf(text), t.optimization.Declared.Keep, examples)
	if err != nil {
		return "", 0, err
	}
	sum := sha256.Sum256([]byte(messages[1].Text()))
	name := "proposal " + hex.EncodeToString(sum[:8])
	if r, ok := t.journal.answers[name]; ok {
		return answered(r.Answer), r.Money, nil
	}
	answer, money, err := t.bench.Ask(ctx, t.optimization.Model, name, messages)
	if err != nil {
		return "", 0, fmt.Errorf("model %s proposes no text: %w", t.optimization.Model.ID, err)
	}
	return answered(answer), money, t.journal.save(record{Request: name, Answer: answer, Money: money})
}

func (t *application) check(c *Candidate, text *eval.Text, proposed string) error {
	if t.training == nil {
		for _, session := range t.search.train {
			for _, i := range session {
				t.training = append(t.training, t.bench.Texts(i)...)
			}
		}
	}
	if proposed != "" && t.bench.Redact(proposed) != proposed {
		return errors.New("the text has a secret")
	}
	return checkText(text, c.textOf(text), proposed, t.optimization.Declared.Keep, t.training)
}

// changes returns the files that are different with a candidate.
func (t *application) changes(c *Candidate) ([]File, error) {
	values := t.valuesOf(c)
	texts, err := eval.Texts(values)
	if err != nil {
		return nil, err
	}
	var all []File
	for p := range values {
		path := p.File().Path
		if text, ok := texts[path]; ok {
			name := filepath.ToSlash(path)
			all = append(all, File{Path: path, old: p.File().Text, text: text, Patch: string(diff.Diff("a/"+name, p.File().Text, "b/"+name, text))})
			delete(texts, path)
		}
	}
	slices.SortFunc(all, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return all, nil
}

// usageOf returns what rows used on average.
func usageOf(results []*evalrun.Result) (u Used) {
	priced := true
	for _, r := range results {
		n := float64(len(results))
		u.Seconds += r.Seconds / n
		u.Tokens += float64(r.Usage.Input+r.Usage.Output) / n
		u.Money += r.Usage.Money / n
		priced = priced && len(r.Usage.Unpriced) == 0
	}
	if !priced {
		u.Money = 0
	}
	return u
}

// valueText writes a value for the log.
func valueText(v any) string {
	if text, ok := v.(string); ok {
		return textfmt.OneLine(textfmt.Ellipsis(text, 60))
	}
	return string(value.JSON(v))
}
