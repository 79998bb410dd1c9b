package evalrun

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/model/provider"
	"github.com/qtype-dev/qtype/steps"
)

// Usage is what the models of a row have used.
type Usage struct {
	Input    int      `json:"input"`              // tokens read
	Output   int      `json:"output"`             // tokens written
	Money    float64  `json:"money"`              // by the prices of the models
	Unpriced []string `json:"unpriced,omitempty"` // models without prices
}

// meter is an observer that sums up the calls of models, and traces them and those of tools. It is safe for concurrent use.
type meter struct {
	mu    sync.Mutex
	used  Usage
	trace []*Traced
	sent  map[string][]TracedMessage // in the last call of each model
}

// Observes reports whether an operation is a call of a model or a tool.
func (m *meter) Observes(kind steps.OperationKind) bool {
	return kind == steps.OperationModel || kind == steps.OperationEmbedding || kind == steps.OperationTool
}

// Start begins a call.
func (m *meter) Start(ctx context.Context, op *steps.Operation) steps.Span {
	if !m.Observes(op.Kind) {
		return nil
	}
	call := &meteredCall{ctx: ctx, meter: m, prices: op.Prices, traced: m.start(op), begun: time.Now()}
	if op.Model != nil {
		call.model, call.mock = op.Model.ID, op.Model.Mock && op.Model.Replaces == ""
	}
	return call
}

// meteredCall is one call of a model or a tool.
type meteredCall struct {
	ctx    context.Context
	meter  *meter
	prices *catalogue.Prices
	model  string
	mock   bool // a mock of the document, which costs nothing
	traced *Traced
	begun  time.Time
}

// Context returns the context of the call.
func (c *meteredCall) Context(ctx context.Context) context.Context { return ctx }

// End adds the tokens of the call, and completes its trace.
func (c *meteredCall) End(r *steps.OperationResult) {
	used := r.Usage
	if r.Response != nil {
		used = r.Response.Usage
	}
	c.meter.mu.Lock()
	defer c.meter.mu.Unlock()
	u := &c.meter.used
	if c.traced.end(r, c.begun); c.traced.Tool != "" {
		return
	}
	c.traced.Input, c.traced.Output = used.Input, used.Output
	u.Input, u.Output = u.Input+used.Input, u.Output+used.Output
	switch {
	case c.prices != nil:
		c.traced.Money = used.Charge(provider.BatchPrices(c.prices), time.Now())
		u.Money += c.traced.Money
	case !c.mock && !slices.Contains(u.Unpriced, c.model):
		u.Unpriced = append(u.Unpriced, c.model)
	}
}

// usage returns the sum.
func (m *meter) usage() Usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	u := m.used
	slices.Sort(u.Unpriced)
	return u
}
