package evalrun

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/qtype-dev/qtype/internal/checkpoint"
	"github.com/qtype-dev/qtype/internal/eval"
	"github.com/qtype-dev/qtype/internal/recording"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/internal/waves"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/value"
)

// Bench runs rows with applications that are made one after the other, as an optimization does.
type Bench struct {
	evaluation *Evaluation
	data       *dataset
	judges     *judges
	names      []string // of the recordings that are used
	opened     int      // programs

	// Saved is called with the results of a session in a trial, also concurrently; may be nil.
	Saved func([]*Result) error
}

// BenchRow is a row of a Bench.
type BenchRow struct {
	Number  int64
	Cluster string // what it is not independent of: its session, or the row

	MustPass bool // it may not get worse
}

// Open reads the rows and makes the application by which results are scored. Calls are recorded in the file of the optimization.
func (e *Evaluation) Open(ctx context.Context) (*Bench, error) {
	data, err := e.rows(ctx)
	if err != nil {
		return nil, err
	}
	for i := range data.rows {
		if _, err := data.rows[i].mustPass(); err != nil {
			return nil, err
		}
	}
	if slices.ContainsFunc(e.config.Written, func(name string) bool { return remotefs.IsSame(name, e.path) }) {
		return nil, &UsageError{fmt.Sprintf("the patch would replace %s: use another name", e.path)}
	}
	e.recorded = e.Optimization.Recordings
	if e.config.Record != recording.Replay && e.recorded == nil {
		return nil, &UsageError{"--record: the optimization declares no recordings: add recordings: optimize.recordings.json"}
	}
	base, err := e.base.New(Replacement{})
	if err != nil {
		return nil, err
	}
	b := &Bench{evaluation: e, data: data, judges: &judges{base}}
	if err := b.execution().openBatches(ctx); err != nil {
		return nil, errors.Join(err, b.Close(false))
	}
	return b, nil
}

// Close closes the application, and removes the file of the batches of a complete optimization.
func (b *Bench) Close(done bool) error {
	return errors.Join(b.judges.app.Close(context.Background()), b.execution().closeBatches(done))
}

// execution is one with the document as it is.
func (b *Bench) execution() *execution {
	e := *b.evaluation
	e.variants = []*variant{{&spec.Variant{ID: "base"}, e.base}}
	return &execution{Evaluation: &e, data: b.data}
}

// Names returns the application, its flow and its data, for a report.
func (b *Bench) Names() (app, flow, data string) {
	return b.evaluation.base.App.ID, b.evaluation.flow.ID, b.data.path
}

// Rows returns the rows.
func (b *Bench) Rows() []BenchRow {
	all := make([]BenchRow, len(b.data.rows))
	for i, sum := range b.data.digests() {
		all[i] = BenchRow{Cluster: b.data.rows[i].session}
		if !b.data.rows[i].shared {
			all[i].Cluster = "row " + sum // copies of a row are in the same part
		}
		all[i].Number = b.data.rows[i].Number
		all[i].MustPass, _ = b.data.rows[i].mustPass() // see Open
	}
	return all
}

// mustPass reports whether a row may not get worse: its column must_pass, or the user, says so.
func (r *dataRow) mustPass() (bool, error) {
	if r.user != nil {
		return r.user.Declared.MustPass, nil
	}
	v, _ := r.Get("must_pass")
	text := value.Text(v)
	if v == nil || text == "" {
		return false, nil
	}
	is, err := strconv.ParseBool(text)
	if err != nil {
		err = &UsageError{fmt.Sprintf("row %d: must_pass is %q: expected true or false", r.Number, textfmt.Ellipsis(text, 60))}
	}
	return is, err
}

// Trials returns how often each row is run.
func (b *Bench) Trials() int { return b.evaluation.trials }

// Texts returns the values of the columns of a row that are texts.
func (b *Bench) Texts(row int) (all []string) {
	for _, v := range b.data.rows[row].Values {
		if text, ok := v.(string); ok {
			all = append(all, text)
		}
	}
	return all
}

// Expected returns the expected value of a row; nil if there is none.
func (b *Bench) Expected(row int) any {
	m := b.metric(b.evaluation.Optimization.Metric.Declared.Name())
	if !slices.Contains(m.row.Keys, "expected") {
		return nil
	}
	v, _ := m.expected(b.data, &b.data.rows[row])
	return v
}

// Inputs returns the inputs of the flow that a row has, by their ids.
func (b *Bench) Inputs(row int) map[string]any {
	inputs := map[string]any{}
	for _, ref := range b.evaluation.flow.Inputs {
		if v, ok := b.data.rows[row].Get(ref.To.ID); ok && v != nil {
			inputs[ref.To.ID] = v
		}
	}
	return inputs
}

// Redact replaces the secrets of the application in a text.
func (b *Bench) Redact(text string) string { return b.judges.app.Redactor().String(text) }

// Program opens the application with other texts of its files.
func (b *Bench) Program(ctx context.Context, texts map[string][]byte) (*Program, diag.List) {
	b.opened++
	return b.evaluation.open(waves.WithPart(ctx, b.opened), b.evaluation.path, eval.Change{Texts: texts})
}

// Run runs some rows, those of whole sessions, with a candidate. The results are in the order of the rows, then of the
// trials.
func (b *Bench) Run(ctx context.Context, id string, p *Program, rows []int) (_ []*Result, err error) {
	e := *b.evaluation
	e.variants = []*variant{{&spec.Variant{ID: id}, p}}
	e.config.Budget = 0
	data := *b.data
	data.rows = nil
	for _, i := range rows {
		data.rows = append(data.rows, b.data.rows[i])
	}
	x := &execution{Evaluation: &e, data: &data, all: len(rows), results: make([]*Result, len(rows)*e.trials), miss: alpha, judges: b.judges, saved: b.Saved}
	defer func() {
		x.judges = nil // of the bench
		err = errors.Join(err, x.close())
	}()
	if err := x.openVariants(ctx); err != nil {
		return nil, err
	}
	x.run(ctx, x.sessions())
	if x.recorded != nil {
		b.names = append(b.names, x.recordingNames()...)
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	return x.results, x.err
}

// Ask sends a request to a chat model of the application, and returns the answer and its money.
func (b *Bench) Ask(ctx context.Context, m *spec.Model, name string, messages []chat.Message) (answer string, money float64, err error) {
	var recorded *recording.Session
	if b.evaluation.recorded != nil {
		recorded = recording.Start(b.evaluation.recorded, name, b.evaluation.config.Record)
		b.names = append(b.names, name)
		defer func() {
			if err == nil && !recorded.Replays() {
				recorded.Commit(false)
			}
		}()
	}
	chatModel, err := b.judges.chat(m.ID, recorded)
	if err != nil {
		return "", 0, err
	}
	r, err := model.Call(ctx, chatModel, model.Request{Messages: messages}, nil)
	if err != nil {
		return "", 0, err
	}
	return r.Message.Text(), chargeOf(m, r), nil
}

// SaveRecordings writes the calls that were recorded.
func (b *Bench) SaveRecordings() error {
	if b.evaluation.recorded == nil || b.evaluation.config.Record == recording.Replay {
		return nil
	}
	if err := b.evaluation.recorded.Save(b.names); err != nil {
		return fmt.Errorf("%s: cannot be written: %w", b.evaluation.recorded.Path(), err)
	}
	return nil
}

// Header describes the optimization for its journal.
func (b *Bench) Header() (checkpoint.Header, error) {
	h, err := b.execution().header()
	if err == nil {
		h.Settings["optimize"], err = digest(b.evaluation.Optimization.Declared)
	}
	return h, err
}

// CheckPrices reports a model whose cost is not known, if there is a limit of money.
func (b *Bench) CheckPrices() error {
	x := b.execution()
	x.config.Budget = x.Optimization.Declared.Money
	if m := x.Optimization.Model; m != nil && x.config.Budget > 0 && m.CallPrices() == nil && !m.IsMock() {
		return &UsageError{fmt.Sprintf("money: model %s has no prices: declare them", m.ID)}
	}
	return x.checkPrices()
}

// Metrics describes the metrics.
func (b *Bench) Metrics() (all []MetricReport) {
	for _, m := range b.evaluation.metrics {
		all = append(all, MetricReport{m.declared.Name(), m.row.Name, m.row.Unit, m.row.Lower, m.rate()})
	}
	return all
}

// Bounds returns min and max of a metric; infinite for none.
func (b *Bench) Bounds(metric string) (low, high float64) {
	low, high = math.Inf(-1), math.Inf(1)
	m := b.metric(metric)
	if m.declared.Min != nil {
		low = *m.declared.Min
	}
	if m.declared.Max != nil {
		high = *m.declared.Max
	}
	return low, high
}

func (b *Bench) metric(name string) *metric {
	i := slices.IndexFunc(b.evaluation.metrics, func(m *metric) bool { return m.declared.Name() == name })
	return b.evaluation.metrics[i]
}

// Summarize returns the mean of a metric over results in the order of their rows.
func (m MetricReport) Summarize(results []*Result) Summary {
	return summarize(observations(results, m.ID), m.Rate, m.Unit == "", alpha)
}

// Compare compares the results of two candidates on the same rows. count is the number of comparisons of which it is one.
func (m MetricReport) Compare(from, to []*Result, count int) Comparison {
	c := compare(observations(from, m.ID), observations(to, m.ID), spec.MetricRow{Unit: m.Unit, Lower: m.Lower}, max(count, 1), alpha)
	c.Metric = m.ID
	return c
}

// Better reports whether a difference of the metric is an improvement.
func (m MetricReport) Better(difference float64) bool {
	return difference != 0 && (difference < 0) == m.Lower
}

// Format formats a value of the metric.
func (m MetricReport) Format(v float64) string { return formatValue(m.Unit, v) }
