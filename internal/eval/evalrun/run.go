package evalrun

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/recording"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
)

// Result is the result of a row with a variant.
type Result struct {
	Variant  string                     `json:"variant"`                // the id
	Row      int64                      `json:"row"`                    // the number in the data, from 1
	Trial    int                        `json:"trial,omitempty"`        // from 1, if the row has several
	Session  string                     `json:"session,omitempty"`      // if the data names one; for versions of an attack, the attack
	Category string                     `json:"category,omitempty"`     // of an attack
	Inputs   map[string]json.RawMessage `json:"inputs"`                 // the inputs of the flow
	Outputs  map[string]json.RawMessage `json:"outputs,omitempty"`      // the outputs of the flow; with a simulated user those of the last turn
	Said     []Message                  `json:"conversation,omitempty"` // with a simulated user
	Error    string                     `json:"error,omitempty"`        // why the row failed
	Scores   map[string]*Score          `json:"scores"`                 // by the names of the metrics
	Usage    Usage                      `json:"usage"`                  // of the models, without those of metrics
	Scoring  float64                    `json:"scoring,omitempty"`      // money for the models of metrics and of a simulated user
	Seconds  float64                    `json:"seconds"`                // the duration
	Trace    []*Traced                  `json:"trace,omitempty"`        // the calls of models and tools
}

// execution is a running evaluation.
type execution struct {
	*Evaluation
	data    *dataset
	apps    []*runtime.App // of the variants
	judges  *judges
	results []*Result // by variant, then by row, then by trial
	all     int       // rows of the data
	miss    float64   // the probability that an interval may miss the true mean
	journal *journal
	saved   func([]*Result) error // called with the results of a session in a trial; may be nil

	mu    sync.Mutex
	spent float64 // money
	done  int
	err   error // of the journal
}

// group is the rows of a session in one trial, which are run one after the other.
type group struct {
	variant int
	trial   int // from 0
	rows    []int
}

// Run evaluates. An error means that there is no report: the data cannot be read, or ctx
// has ended.
func (e *Evaluation) Run(ctx context.Context) (report *Report, err error) {
	data, err := e.rows(ctx)
	if err != nil {
		return nil, err
	}
	if e.config.Record != recording.Replay && e.recorded == nil {
		return nil, &UsageError{"--record: the evaluation declares no recordings: add recordings: app.recordings.json"}
	}
	x := &execution{Evaluation: e, data: data, all: len(data.rows), results: make([]*Result, len(e.variants)*len(data.rows)*e.trials), miss: alpha}
	if err := x.open(ctx); err != nil {
		return nil, errors.Join(err, x.close())
	}
	defer func() { err = errors.Join(err, x.close(), x.closeBatches(err == nil)) }()
	if err := x.openBatches(ctx); err != nil {
		return nil, err
	}
	if x.journal, err = openJournal(x); err != nil {
		return nil, err
	}
	begin := time.Now()
	if err := x.checkPrices(); err != nil {
		return nil, errors.Join(err, x.journal.close())
	}
	x.runUntil(ctx)
	if err := x.saveRecordings(); err != nil {
		return nil, errors.Join(err, x.journal.close())
	}
	if err := ctx.Err(); err != nil {
		return nil, errors.Join(fmt.Errorf("%w after %s", context.Cause(ctx), textfmt.Count(int64(x.done), "row")), x.journal.close())
	}
	if x.err != nil {
		return nil, errors.Join(x.err, x.journal.close())
	}
	report = x.report(time.Since(begin))
	if save := x.config.Save; save != nil {
		if err := save(report); err != nil {
			return nil, errors.Join(err, x.journal.close())
		}
	}
	return report, x.journal.remove()
}

// rows reads the rows: those of the data, or a row for each user.
func (e *Evaluation) rows(ctx context.Context) (*dataset, error) {
	if len(e.users) > 0 {
		return e.userRows()
	}
	if e.data == "" {
		return nil, &UsageError{"the evaluation needs rows: pass --data FILE"}
	}
	for _, name := range e.config.Written {
		if remotefs.IsSame(e.data, name) {
			return nil, &UsageError{fmt.Sprintf("the report would replace %s: use another name", e.data)}
		}
	}
	data, err := readData(ctx, &e.config, e.data, e.flow.Table)
	if err != nil {
		return nil, err
	}
	return data, e.checkColumns(data)
}

// UsageError reports a wrong configuration.
type UsageError struct{ Reason string }

// Error returns the reason.
func (e *UsageError) Error() string { return e.Reason }

// open makes the applications.
func (x *execution) open(ctx context.Context) error {
	base, err := x.base.New(Replacement{})
	if err != nil {
		return err
	}
	x.judges = &judges{base}
	return x.openVariants(ctx)
}

// openVariants makes the applications of the variants.
func (x *execution) openVariants(ctx context.Context) error {
	for i, v := range x.variants {
		app, err := x.newApp(i, &place{recorded: x.session("", i, 0)}, nil)
		if err != nil {
			return fmt.Errorf("variant %s: %w", v.declared.ID, err)
		}
		x.apps = append(x.apps, app)
		if _, err := app.Models(x.flow.ID); err != nil {
			return fmt.Errorf("variant %s: %w", v.declared.ID, err)
		}
		if x.recorded != nil && x.config.Record == recording.Replay {
			continue // servers are not called
		}
		if err := app.CheckTools(ctx, x.flow.ID); err != nil {
			return fmt.Errorf("variant %s: %w", v.declared.ID, err)
		}
	}
	return nil
}

// close closes the applications.
func (x *execution) close() error {
	var errs []error
	for _, app := range x.apps {
		errs = append(errs, app.Close(context.Background()))
	}
	if x.judges != nil {
		errs = append(errs, x.judges.app.Close(context.Background()))
	}
	return errors.Join(errs...)
}

// sessions returns the rows of each session.
func (x *execution) sessions() [][]int {
	var all [][]int
	at := map[string]int{}
	for i, r := range x.data.rows {
		n, known := at[r.session]
		if !known {
			n = len(all)
			at[r.session], all = n, append(all, nil)
		}
		all[n] = append(all[n], i)
	}
	return all
}

// groups returns what is left to do of sessions: all variants and trials of a session before the next one.
func (x *execution) groups(sessions [][]int) []group {
	var all []group
	for _, rows := range sessions {
		for t := range x.trials {
			for v := range x.variants {
				if slices.ContainsFunc(rows, func(i int) bool { return x.results[x.index(v, i, t)] == nil }) {
					all = append(all, group{v, t, rows})
				}
			}
		}
	}
	return all
}

// index returns the place of a result, from 0.
func (x *execution) index(variant, row, trial int) int {
	return (variant*len(x.data.rows)+row)*x.trials + trial
}

// run runs the rows of sessions that have no result, several at a time.
func (x *execution) run(ctx context.Context, sessions [][]int) {
	todo := x.groups(sessions)
	for _, g := range todo {
		for _, row := range g.rows {
			x.results[x.index(g.variant, row, g.trial)] = nil // a session is repeated as a whole
		}
	}
	x.done, x.spent = 0, 0
	for _, r := range x.results {
		if r != nil {
			x.done++
			x.spent += r.Usage.Money + r.Scoring
		}
	}
	work := make(chan group)
	var workers sync.WaitGroup
	ctx = x.start(ctx, &workers, len(todo), func(ctx context.Context, g group) {
		if !x.isSpent() {
			x.group(ctx, g)
		}
	}, work)
	for _, g := range todo {
		if ctx.Err() != nil {
			break
		}
		work <- g
	}
	close(work)
	workers.Wait()
}

// group runs the rows of a session and records their results.
func (x *execution) group(ctx context.Context, g group) {
	results := make([]*Result, len(g.rows))
	p := x.place(g)
	for i, row := range g.rows {
		p.startRow(i)
		results[i] = x.row(ctx, g.variant, row, g.trial, p)
		if ctx.Err() != nil {
			return // the results may be those of the interruption
		}
		x.mu.Lock()
		x.spent += results[i].Usage.Money + results[i].Scoring
		x.done++
		if x.config.Progress != nil {
			x.config.Progress(x.done, len(x.results))
		}
		x.mu.Unlock()
	}
	if err := x.leave(ctx, p); err != nil {
		x.fail(err)
	}
	for i, row := range g.rows {
		at := x.index(g.variant, row, g.trial)
		x.results[at] = results[i]
		if err := x.journal.save(at, results[i]); err != nil {
			x.fail(err)
		}
	}
	if x.saved != nil {
		if err := x.saved(results); err != nil {
			x.fail(err)
		}
	}
}

// fail ends the evaluation with an error.
func (x *execution) fail(err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.err = err
}

// row runs a row through the flow of a variant and scores the result.
func (x *execution) row(ctx context.Context, variant, index, trial int, p *place) *Result {
	v, row := x.variants[variant], &x.data.rows[index]
	in := x.data.input(row, v.declared)
	in.Session = x.data.sessionOf(row, trial)
	r := &Result{Variant: v.declared.ID, Row: row.Number, Inputs: map[string]json.RawMessage{}, Scores: map[string]*Score{}}
	if x.trials > 1 {
		r.Trial = trial + 1
	}
	if row.shared {
		r.Session = row.session
	}
	switch {
	case row.user != nil && row.user.Attack != nil:
		r.Category, r.Inputs["attack"] = row.user.Attack.Category, value.JSON(row.user.Declared.ID)
		if x.attacks.Model != nil {
			r.Session = row.user.Attack.Base
		}
	case row.user != nil:
		r.Inputs["user"] = value.JSON(row.user.Declared.ID)
	}
	given := map[string]any{}
	for _, ref := range x.flow.Inputs {
		if i := slices.Index(in.Columns, ref.To.ID); i >= 0 && i < len(in.Cells) {
			given[ref.To.ID] = in.Cells[i]
			r.Inputs[ref.To.ID] = value.JSON(in.Cells[i])
		}
	}
	used := &meter{}
	begin := time.Now()
	var outputs map[string]any
	var with *conversation
	cited, spent := &passages{}, 0.0
	err := p.err
	switch {
	case err != nil:
	case row.user != nil:
		with = &conversation{x: x, user: row.user, place: p, input: in, used: used, cited: cited, systems: p.systems}
		outputs, err = with.run(ctx)
		r.Said, begin = with.said, begin.Add(with.waited)
	default:
		outputs, err = runRow(ctx, p.app, x.flow.ID, in, runtime.WithObserver(used), runtime.WithEvents(cited.listen, steps.EventSource))
	}
	r.Seconds, r.Usage, r.Trace = time.Since(begin).Seconds(), used.usage(), used.trace
	if err != nil {
		r.Error = err.Error()
	} else {
		r.Outputs = map[string]json.RawMessage{}
		for id, out := range outputs {
			r.Outputs[id] = value.JSON(out)
		}
	}
	if with != nil {
		spent = with.spent
	}
	for _, m := range x.metrics {
		s := &sample{spent: &spent, inputs: given, usage: r.Usage, seconds: r.Seconds, judges: x.judges, recorded: p.recorded, with: with, outputs: outputs, cited: cited.all()}
		if m.applies(row) {
			r.Scores[m.declared.Name()] = x.score(ctx, m, row, r, s, outputs)
		}
	}
	r.Scoring = spent
	return r
}

// runRow runs one row and returns its outputs.
func runRow(ctx context.Context, app *runtime.App, flow string, in runtime.Input, opts ...runtime.RunOption) (outputs map[string]any, err error) {
	results := 0
	for res, err := range app.Run(ctx, flow, slices.Values([]runtime.Input{in}), opts...) {
		if err != nil {
			return nil, err
		}
		if res.Err != nil {
			return nil, res.Err
		}
		results++
		outputs = map[string]any{}
		for v, out := range res.Outputs() {
			outputs[v.ID] = out
		}
	}
	if results != 1 {
		return nil, fmt.Errorf("the row has %s: an evaluation needs one for each row", textfmt.Count(int64(results), "result"))
	}
	return outputs, nil
}

// score computes a metric of a result. A row that has failed fails each metric of its
// outputs, and has no value of others.
func (x *execution) score(ctx context.Context, m *metric, row *dataRow, r *Result, s *sample, outputs map[string]any) *Score {
	switch {
	case s.with != nil && s.with.userFailed:
		return &Score{Error: "the simulated user failed"} // not the application
	case r.Error != "" && m.row.Unit == "":
		return &Score{Reason: "the row failed"}
	case r.Error != "":
		return &Score{Error: "the row failed"}
	case m.output != nil:
		s.output, s.variable = outputs[m.output.ID], m.output
	}
	s.metric = m
	s.expected, s.known = m.expected(x.data, row)
	score, err := m.score(ctx, s)
	if err != nil {
		return &Score{Error: textfmt.Ellipsis(textfmt.OneLine(err.Error()), maxReason)}
	}
	return &score
}
