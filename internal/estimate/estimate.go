// Package estimate computes what a run of a flow will cost before it runs: from the tokens
// of some rows, which run with mock models, and the worst case from context windows and
// budgets.
package estimate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/index/embedded"
	"github.com/qtype-dev/qtype/internal/mediafile"
	"github.com/qtype-dev/qtype/internal/model/mock"
	"github.com/qtype-dev/qtype/internal/records"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
	"github.com/qtype-dev/qtype/tool"
)

// Config describes what is estimated.
type Config struct {
	Flow         string    // the flow's id; empty for the first one
	Data         string    // the file with the rows; empty for one row without inputs, - for In
	Sample       int       // rows that are run with mock models
	Rows         int64     // rows of the run; 0 for those of the data
	Batch        bool      // calls are made in batches of the providers
	Flex         bool      // calls are made by the tier flex
	Window       string    // calls are made in the background within this time, such as 2h; empty for none
	OutputTokens int       // tokens of each answer, at most MaxOutputTokens; 0 for those of mock answers
	In           io.Reader // the rows of standard input
}

// MaxOutputTokens is the greatest length of an answer: no model writes more in a call. The
// mock's answers are texts of this length, in memory.
const MaxOutputTokens = 1_000_000

// defaultAnswer is the length of an answer in tokens if neither the configuration nor a
// mock of the document sets it.
const defaultAnswer = 200

// Report is what a run will cost.
type Report struct {
	App      string      `json:"app"`                // the id of the application
	Flow     string      `json:"flow"`               // the id of the flow
	Data     string      `json:"data"`               // the file with the rows
	Rows     int64       `json:"rows"`               // of the run
	Sample   int         `json:"sample"`             // rows that were estimated
	Failed   int         `json:"failed"`             // rows of the sample that failed, and are not part of the estimate
	Reason   string      `json:"reason,omitempty"`   // why the first of them failed
	Models   []ModelCost `json:"models"`             // expected, by model
	Expected *Amount     `json:"expected,omitempty"` // of the run; nil if no row of the sample could be estimated
	Worst    Worst       `json:"worst"`              // what the run can cost at most
	Unpriced []string    `json:"unpriced,omitempty"` // models without prices, which are not part of the money
	Rankers  []string    `json:"rankers,omitempty"`  // models of rerankers with prices: only the worst case has them, because searches find nothing
	Batch    *Batch      `json:"batch,omitempty"`    // what batches, or the tier flex, change; nil without --batch, or if no row of the sample could be estimated
	// OverBudget is why the budget of the flow ends the run, by what is expected; empty if it does not.
	OverBudget string `json:"over_budget,omitempty"`
}

// Amount is a number of calls with their tokens and cost.
type Amount struct {
	Calls  float64 `json:"calls"`
	Input  float64 `json:"input"`  // tokens read
	Output float64 `json:"output"` // tokens written
	Money  float64 `json:"money"`  // in the currency of the prices
}

// The sources of prices.
const (
	DeclaredPrices = "document" // the key prices of the model
	BuiltinPrices  = "built-in" // the table of this program
	UserPrices     = "models"   // the rows of models.yaml
)

// ModelCost is the amount of a model.
type ModelCost struct {
	ID     string `json:"id"`
	Priced bool   `json:"priced"`
	Prices string `json:"prices,omitempty"` // where the prices are from: DeclaredPrices, BuiltinPrices or UserPrices; empty for none
	Amount
	inBatch float64 // the money, in batches or by the tier flex where the model has them
}

func (a *Amount) add(b Amount) {
	a.Calls, a.Input, a.Output, a.Money = a.Calls+b.Calls, a.Input+b.Input, a.Output+b.Output, a.Money+b.Money
}

func (a Amount) times(n float64) Amount {
	return Amount{a.Calls * n, a.Input * n, a.Output * n, a.Money * n}
}

// Run estimates. open makes the application with mocks.
func Run(ctx context.Context, cfg Config, open func(runtime.Mocks, *http.Client) (*runtime.App, error)) (report *Report, err error) {
	dry := &dryRun{cfg: cfg, used: map[string]*ModelCost{}}
	defer dry.close()
	app, err := open(dry.mocks(), &http.Client{Transport: refusing{}})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, app.Close(context.WithoutCancel(ctx))) }()
	if cfg.Batch || cfg.Flex || cfg.Window != "" {
		dry.waves = newWaves(app, cfg.Flex, cfg.Window)
	}
	dry.decoders = app.Spec().Decoders()
	dry.sources = priceSources(app.Spec())
	flow, err := app.Flow(cfg.Flow)
	if err != nil {
		return nil, err
	}
	for s := range flow.Plan().All() {
		if s.WritesFiles() {
			return nil, fmt.Errorf("step %s writes files, so the rows of flow %s cannot be run to estimate it", s.Step.EntityID(), flow.ID)
		}
	}
	r := &Report{App: app.Spec().ID, Flow: flow.ID}
	// The run is estimated without its budget: what the sample uses is scaled to all rows, and then compared with it.
	budget := flow.Budget
	flow.Budget = nil
	rows, err := dry.sample(ctx, r, flow)
	if err != nil {
		return nil, err
	}
	for res, err := range app.Run(ctx, flow.ID, slices.Values(rows), runtime.WithObserver(dry)) {
		if err != nil {
			return nil, err
		}
		if res.Err != nil {
			if r.Failed++; r.Reason == "" {
				r.Reason = res.Err.Error()
			}
		}
	}
	dry.total(r)
	r.addRankers(flow)
	expected := r.Expected
	if dry.waves != nil && expected != nil {
		if r.Batch, err = dry.waves.report(r, flow); err != nil {
			return nil, err
		}
		expected = &Amount{expected.Calls, expected.Input, expected.Output, r.Batch.Money}
	}
	r.OverBudget = overBudget(budget, expected)
	r.Worst = worst(flow, budget, r.Rows)
	return r, nil
}

// dryRun is an observer that adds up the calls of models. It is safe for concurrent use.
type dryRun struct {
	cfg Config

	decoders map[*spec.Variable]*spec.Decoder // by their inputs; set before the run
	waves    *waves                           // nil without batches

	mu      sync.Mutex
	used    map[string]*ModelCost
	sources map[string]string // where the prices of the models are from, by id
	indexes string            // folder of the indexes; empty if there are none
}

// sample reads the rows of the sample, and counts the rows of the run.
func (d *dryRun) sample(ctx context.Context, r *Report, flow *spec.Flow) (rows []runtime.Input, err error) {
	if d.cfg.Data == "" {
		for _, ref := range flow.Inputs {
			if !ref.To.IsOptional() {
				return nil, fmt.Errorf("flow %s has the input %s: pass rows with --data FILE", flow.ID, ref.To.ID)
			}
		}
		r.Rows, r.Sample = max(d.cfg.Rows, 1), 1
		return []runtime.Input{{Session: "row-1", Values: map[string]any{}}}, nil
	}
	file, err := d.open(ctx, records.Options{Table: flow.Table})
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // only read
	r.Data = file.Path()
	for rec, err := range file.All() {
		var bad *records.RowError
		if err != nil && !errors.As(err, &bad) {
			return nil, err
		}
		r.Rows++
		session := fmt.Sprintf("row-%d", rec.Number)
		for _, c := range []string{"session", "session_id"} {
			if v, ok := rec.Get(c); ok && v != nil && fmt.Sprint(v) != "" {
				session = fmt.Sprint(v)
				d.waves.addTurn(session)
			}
		}
		if len(rows) < d.cfg.Sample {
			rows = append(rows, runtime.Input{Columns: rec.Columns, Cells: rec.Values, Text: file.Format().Cells(), Number: rec.Number, Err: err, Session: session, Base: mediafile.BaseOf(d.cfg.Data)})
		}
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("%s: no rows to estimate", r.Data)
	}
	if d.cfg.Rows > 0 {
		r.Rows = d.cfg.Rows
	}
	r.Sample = len(rows)
	return rows, nil
}

// open opens the rows.
func (d *dryRun) open(ctx context.Context, opts records.Options) (*records.Reader, error) {
	if d.cfg.Data == "-" && d.cfg.In != nil {
		return records.OpenStream(ctx, d.cfg.In, "standard input", opts)
	}
	return records.Open(ctx, d.cfg.Data, opts)
}

// total adds up the models, for the rows of the run.
func (d *dryRun) total(r *Report) {
	done := r.Sample - r.Failed
	if done == 0 {
		return
	}
	r.Expected = &Amount{}
	for _, id := range slices.Sorted(maps.Keys(d.used)) {
		m := *d.used[id]
		m.Amount = m.times(float64(r.Rows) / float64(done))
		m.inBatch *= float64(r.Rows) / float64(done)
		if !m.Priced {
			r.Unpriced = append(r.Unpriced, id)
		}
		m.Prices = d.sources[id]
		r.Models = append(r.Models, m)
		r.Expected.add(m.Amount)
	}
}

// addRankers adds the models of services that sort search results.
func (r *Report) addRankers(flow *spec.Flow) {
	for s := range flow.Plan().All() {
		ranker, ok := s.Step.(spec.ChargedRanker)
		if !ok {
			continue
		}
		switch m, charged := ranker.RankModel(); {
		case charged && m.Prices == nil:
			r.Unpriced = union(r.Unpriced, []string{m.Name})
		case charged:
			r.Rankers = union(r.Rankers, []string{m.Name})
		}
	}
}

// overBudget returns why a budget ends a run that uses an amount; empty if it does not.
func overBudget(b *spec.Budget, used *Amount) string {
	switch {
	case b == nil || used == nil:
		return ""
	case b.Money > 0 && used.Money > b.Money:
		return fmt.Sprintf("%s money is expected, %s is allowed", textfmt.Amount(used.Money), textfmt.Amount(b.Money))
	case b.Tokens > 0 && used.Input+used.Output > float64(b.Tokens):
		return fmt.Sprintf("%.0f tokens are expected, %d are allowed", used.Input+used.Output, b.Tokens)
	case b.Calls > 0 && used.Calls > float64(b.Calls):
		return fmt.Sprintf("%.0f calls are expected, %d are allowed", used.Calls, b.Calls)
	}
	return ""
}

// priceSources returns where the prices of the models of an application are from, by id.
func priceSources(app *spec.Application) map[string]string {
	sources := map[string]string{}
	for _, doc := range app.Documents() {
		for _, m := range doc.Models {
			switch base := m.Base(); {
			case base.HasListPrices():
				sources[base.ID] = BuiltinPrices
			case base.HasUserPrices():
				sources[base.ID] = UserPrices
			case base.Prices != nil:
				sources[base.ID] = DeclaredPrices
			}
		}
	}
	return sources
}

// Observes reports whether an operation is a call of a model, or of a step that may call one.
func (d *dryRun) Observes(kind steps.OperationKind) bool {
	return kind == steps.OperationModel || kind == steps.OperationEmbedding || kind == steps.OperationRow || kind == steps.OperationBatch
}

// Start begins a call of a model.
func (d *dryRun) Start(ctx context.Context, op *steps.Operation) steps.Span {
	switch {
	case !d.Observes(op.Kind):
		return nil
	case op.Step != nil:
		return &calling{step: op.Step, waves: d.waves}
	case op.Model == nil:
		return nil
	}
	id := cmp.Or(op.Model.Replaces, op.Model.ID)
	d.waves.count(ctx, id)
	return &call{dryRun: d, model: id, prices: op.Prices, free: op.Model.Replaces == ""}
}

// call is one call of a model.
type call struct {
	*dryRun
	model  string
	prices *catalogue.Prices
	free   bool // a mock of the document
}

// Context returns the context of the call.
func (c *call) Context(ctx context.Context) context.Context { return ctx }

// End adds the tokens of the call.
func (c *call) End(r *steps.OperationResult) {
	used := r.Usage
	if r.Response != nil {
		used = r.Response.Usage
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.used[c.model]
	if m == nil {
		m = &ModelCost{ID: c.model, Priced: c.prices != nil || c.free}
		c.used[c.model] = m
	}
	money := 0.0
	if !c.free {
		money = used.Charge(c.prices, time.Now())
	}
	m.add(Amount{1, float64(used.Input), float64(used.Output), money})
	if c.waves.has(c.model) {
		m.inBatch += c.waves.charge(used, c.prices)
	} else {
		m.inBatch += money
	}
}

// mocks replaces all that a run would call or change.
func (d *dryRun) mocks() runtime.Mocks {
	return runtime.Mocks{Model: d.model, Embedder: d.embedder, Tool: sampleTool, Index: d.index}
}

// model returns a mock that counts the tokens as the model does. Its answers are those of
// the document's mock, or texts of the expected length.
func (d *dryRun) model(m *spec.Model) (model.Chat, error) {
	answers, replaced := m, m
	switch {
	case m.IsMock():
		replaced = nil
	case m.Offline.To != nil:
		answers = m.OfflineMock()
	default:
		return newAnswers(m, cmp.Or(d.cfg.OutputTokens, defaultAnswer), d)
	}
	made, err := mock.New(answers, mock.Options{Replaces: replaced})
	if err != nil {
		return nil, err
	}
	return &sized{made, d.cfg.OutputTokens}, nil
}

func (d *dryRun) embedder(m *spec.EmbeddingModel) (model.Embedder, error) {
	if m.IsMock() {
		return nil, nil //nolint:nilnil // the declared one is made
	}
	return model.WithBatches(mock.NewEmbedder(m, mock.Options{Replaces: &m.Model}), model.Batch{}, model.CallPolicy{}), nil
}

// index returns an empty index.
func (d *dryRun) index(x spec.Index) (index.Index, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.indexes == "" {
		folder, err := os.MkdirTemp("", "qtype-cost-")
		if err != nil {
			return nil, err
		}
		d.indexes = folder
	}
	_, vectors := x.(*spec.VectorIndex)
	return embedded.Open(embedded.Options{Path: filepath.Join(d.indexes, fmt.Sprintf("%x.db", x.EntityID())), Vectors: vectors, Fields: !vectors}), nil
}

func (d *dryRun) close() {
	if d.indexes != "" {
		_ = os.RemoveAll(d.indexes) // only temporary
	}
}

// sized is a model whose answers count as a number of tokens, unless it is 0.
type sized struct {
	model.Chat
	tokens int
}

// Generate calls the model.
func (s *sized) Generate(ctx context.Context, req model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		for ev, err := range s.Chat.Generate(ctx, req) {
			if ev.Response != nil && s.tokens > 0 {
				answer := *ev.Response
				answer.Usage.Output = s.tokens
				ev.Response = &answer
			}
			if !yield(ev, err) {
				return
			}
		}
	}
}

// sampleTool returns a tool that calls nothing; nil for one that runs a flow, or reads a
// memory or an index of the application.
func sampleTool(t spec.Tool) tool.Tool {
	uses := spec.UsesOf(t)
	if len(spec.Linked[*spec.Flow](uses, spec.RoleFlow))+len(spec.Linked[spec.Index](uses, spec.RoleIndex))+len(spec.Linked[*spec.Memory](uses, spec.RoleConversation, spec.RoleValues)) > 0 {
		return nil
	}
	vars, _ := t.Results()
	return &sampledTool{tool.Describe(t.Common(), t.Arguments()), vars}
}

// sampledTool returns empty values.
type sampledTool struct {
	info tool.Info
	vars []*spec.Variable
}

// Info describes the tool.
func (t *sampledTool) Info() tool.Info { return t.info }

// Call returns an empty value for each output.
func (t *sampledTool) Call(context.Context, map[string]any) (any, error) {
	result := map[string]any{}
	for _, v := range t.vars {
		if !v.IsOptional() {
			result[v.ID] = empty(v.Type)
		}
	}
	return result, nil
}

func empty(t spec.Type) any {
	switch {
	case t.IsList():
		return []any{}
	case t.Is("int"), t.Is("float"):
		return 0
	case t.Is("boolean"):
		return false
	case t.IsRecord():
		return map[string]any{}
	}
	return ""
}

// refusing rejects all requests.
type refusing struct{}

// RoundTrip returns an error.
func (refusing) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("an estimate calls no servers")
}
