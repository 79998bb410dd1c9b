package runtime

import (
	"context"
	"iter"
	"time"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/modelparams"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
)

// observedChat reports the calls of a chat model as operations.
type observedChat struct {
	model.Chat
	declared *spec.Model
	info     model.Info
	prices   *catalogue.Prices // nil if they are unknown
}

// observeChat returns m with its calls reported; nil for nil.
func observeChat(m model.Chat, declared *spec.Model) model.Chat {
	if m == nil {
		return nil
	}
	return &observedChat{m, declared, m.Info(), declared.CallPrices()}
}

// Generate sends the request, and reports it if the run has observers.
func (m *observedChat) Generate(ctx context.Context, req model.Request) iter.Seq2[model.Event, error] {
	if !steps.Observed(ctx) {
		return m.Chat.Generate(ctx, req)
	}
	return m.observed(ctx, req)
}

// observed sends the request and reports it. An unobserved call does not allocate for it.
func (m *observedChat) observed(ctx context.Context, req model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		ctx, end := steps.Observe(ctx, &steps.Operation{Kind: steps.OperationModel, ID: m.declared.ID,
			Model: &m.info, Prices: m.prices, Params: modelparams.Sent(m.declared), Request: &req, Failed: model.FailuresBefore(ctx)})
		r := &steps.OperationResult{}
		defer end(r)
		for ev, err := range m.Chat.Generate(ctx, req) {
			switch {
			case err != nil:
				r.Err = err
			case ev.Response != nil:
				r.Response, r.Ended = ev.Response, time.Now()
			case r.FirstDelta.IsZero():
				r.FirstDelta = time.Now()
			}
			if !yield(ev, err) {
				if r.Response == nil && r.Err == nil {
					r.Err = context.Cause(ctx) // nil if the reader needs no more
				}
				return
			}
		}
	}
}

// observedEmbedder reports the calls of an embedding model as operations.
type observedEmbedder struct {
	model.Embedder
	declared *spec.Model
	info     model.Info
	prices   *catalogue.Prices // nil if they are unknown
}

// observeEmbedder returns m with its calls reported; nil for nil.
func observeEmbedder(m model.Embedder, declared *spec.Model) model.Embedder {
	if m == nil {
		return nil
	}
	return &observedEmbedder{m, declared, m.Info(), declared.CallPrices()}
}

// Embed calls the model, and reports it if the run has observers.
func (m *observedEmbedder) Embed(ctx context.Context, texts []string) ([][]float32, model.Usage, error) {
	if !steps.Observed(ctx) {
		return m.Embedder.Embed(ctx, texts)
	}
	ctx, end := steps.Observe(ctx, &steps.Operation{Kind: steps.OperationEmbedding, ID: m.declared.ID,
		Model: &m.info, Prices: m.prices, Texts: texts})
	r := &steps.OperationResult{}
	defer end(r)
	vectors, usage, err := m.Embedder.Embed(ctx, texts)
	r.Vectors, r.Usage, r.Err = len(vectors), usage, err
	return vectors, usage, err
}
