package runtime

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/model/provider"
	"github.com/qtype-dev/qtype/internal/modelparams"
	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/steps"
)

// registerModel adds a declared model. An embedding model is also known as a chat
// model, as the language allows to refer to it as one.
func (a *App) registerModel(m spec.ModelEntity) {
	if e, ok := m.(*spec.EmbeddingModel); ok {
		a.models.embedders.add(e.Base(), func() (model.Embedder, error) { return a.newEmbedder(e) }, model.EmbedWithFallbacks, model.PatientEmbedder)
	}
	base := m.Base()
	a.models.chat.add(base, func() (model.Chat, error) { return a.newChat(base) }, model.WithFallbacks, model.Patient)
}

func (a *App) newChat(m *spec.Model) (model.Chat, error) {
	if a.opts.Mocks.Model != nil {
		if mock, err := a.opts.Mocks.Model(m); mock != nil || err != nil {
			if mock == nil {
				return nil, err
			}
			return a.redactChat(provider.WithAnswers(m, observeChat(mock, m), a.providerOptions(m))), err
		}
	}
	made, err := provider.New(m, a.providerOptions(m))
	if wrap := a.opts.Mocks.WrapModel; wrap != nil && err == nil {
		made, err = wrap(m, made)
	}
	return a.redactChat(made), withPosition(m, err)
}

func (a *App) newEmbedder(m *spec.EmbeddingModel) (model.Embedder, error) {
	if a.opts.Mocks.Embedder != nil {
		if mock, err := a.opts.Mocks.Embedder(m); mock != nil || err != nil {
			return observeEmbedder(mock, &m.Model), err
		}
	}
	made, err := provider.NewEmbedder(m, a.providerOptions(&m.Model))
	if wrap := a.opts.Mocks.WrapEmbedder; wrap != nil && err == nil {
		made, err = wrap(m, made)
	}
	if err != nil {
		return made, withPosition(m, err)
	}
	return a.cacheVectors(m, made), nil
}

// HasBatches reports whether calls of a model can be made in batches of its provider.
func (a *App) HasBatches(m spec.ModelEntity) bool {
	has, why := a.WhyAtOnce(m)
	return has && why == ""
}

// WhyAtOnce returns whether the provider of a model has batches, and why calls of the model cannot be made in them; empty if they can.
func (a *App) WhyAtOnce(m spec.ModelEntity) (has bool, why string) {
	return provider.WhyAtOnce(m, a.opts.Parts.Models, a.opts.Parts.window)
}

func (a *App) providerOptions(m *spec.Model) provider.Options {
	return provider.Options{
		Getenv: a.opts.Getenv, Key: a.opts.DocumentEnv, HTTP: a.opts.HTTP, Calls: connections(a.spec), Secret: a.secret, Policy: a.opts.Policy, Clients: a.opts.Parts.Models, AWS: a.opts.Parts.AWS, Warn: a.opts.Warn, Forms: &a.models.forms, Traffic: &a.models.traffic, Flex: a.opts.Flex, Batches: a.opts.Parts.inBatches, IsBatched: a.opts.Parts.isBatched, Window: a.opts.Parts.window, Buckets: a.opts.Parts.Buckets,
		Wrap:         func(c model.Chat) model.Chat { return observeChat(c, m) },
		WrapEmbedder: func(e model.Embedder) model.Embedder { return observeEmbedder(e, m) },
	}
}

// add adds a model that build makes; join joins it with its fallbacks, and patient lets the whole wait for its servers.
func (p pool[M]) add(m *spec.Model, build func() (M, error), join func(M, ...M) M, patient func(M) M) {
	p.single[m] = sync.OnceValues(build)
	p.whole[m] = sync.OnceValues(func() (M, error) {
		first, others, err := p.withFallbacks(m)
		if err != nil {
			return first, err
		}
		return patient(join(first, others...)), nil
	})
}

// withFallbacks makes a model and its fallbacks.
func (p pool[M]) withFallbacks(m *spec.Model) (first M, others []M, err error) {
	if first, err = p.single[m](); err != nil {
		return first, nil, err
	}
	for _, f := range fallbacks(m)[1:] {
		made, ok := p.single[f]
		if !ok {
			return first, nil, fmt.Errorf("model %s: its fallback %s is not part of the application", m.ID, f.ID)
		}
		other, err := made()
		if err != nil {
			return first, nil, fmt.Errorf("%smodel %s: its fallback cannot be made: %w", positionPrefix(m), m.ID, err)
		}
		others = append(others, other)
	}
	return first, others, nil
}

// fallbacks returns a model, its fallbacks, then theirs, each once.
func fallbacks(m *spec.Model) []*spec.Model {
	all := []*spec.Model{m}
	for i := 0; i < len(all); i++ {
		for _, f := range all[i].Fallbacks {
			if f.To != nil && !slices.Contains(all, f.To.Base()) {
				all = append(all, f.To.Base())
			}
		}
	}
	return all
}

// get returns the shared object of a model.
func (p pool[M]) get(m *spec.Model) (M, error) {
	made, ok := p.whole[m]
	if !ok {
		var none M
		return none, fmt.Errorf("model %s is not part of the application", m.ID)
	}
	return made()
}

// find returns the shared object of the model with an id.
func (p pool[M]) find(kind, id string) (M, error) {
	for m, made := range p.whole {
		if m.ID == id {
			return made()
		}
	}
	var none M
	return none, fmt.Errorf("no %s has the id %q", kind, id)
}

// Model returns the shared chat model with an id.
func (a *App) Model(id string) (model.Chat, error) { return a.models.chat.find("model", id) }

// Embedder returns the shared embedding model with an id.
func (a *App) Embedder(id string) (model.Embedder, error) {
	return a.models.embedders.find("embedding model", id)
}

// embedder returns the shared object of an embedding model.
func (a *App) embedder(m *spec.EmbeddingModel) (model.Embedder, error) {
	return a.models.embedders.get(m.Base())
}

// CircuitBreakers returns the circuit breakers of servers of models that have opened since
// the App was made.
func (a *App) CircuitBreakers() []model.BreakerState { return a.models.traffic.Breakers() }

// redactedChat is a chat model whose answers have no secrets. The arguments of tool calls
// are not changed: the tools may need them.
type redactedChat struct {
	model.Chat
	redactor *redact.Redactor
}

// redactChat returns m without secrets in its answers; nil for nil.
func (a *App) redactChat(m model.Chat) model.Chat {
	if m == nil {
		return nil
	}
	return &redactedChat{m, a.opts.Redactor}
}

// Generate sends the request. A secret that is divided over deltas is replaced, too.
func (m *redactedChat) Generate(ctx context.Context, req model.Request) iter.Seq2[model.Event, error] {
	if m.redactor.Empty() {
		return m.Chat.Generate(ctx, req)
	}
	return func(yield func(model.Event, error) bool) {
		text, reasoning, commentary := m.redactor.NewStream(), m.redactor.NewStream(), m.redactor.NewStream()
		rest := func() bool {
			for _, ev := range []model.Event{{Reasoning: reasoning.End()}, {Commentary: commentary.End()}, {Text: text.End()}} {
				if ev != (model.Event{}) && !yield(ev, nil) {
					return false
				}
			}
			return true
		}
		for ev, err := range m.Chat.Generate(ctx, req) {
			switch {
			case err != nil || ev.Response != nil:
				if !rest() {
					return
				}
				ev.Response = m.response(ev.Response)
			case ev.Text != "":
				ev.Text = text.Next(ev.Text)
			case ev.Commentary != "":
				ev.Commentary = commentary.Next(ev.Commentary)
			default:
				ev.Reasoning = reasoning.Next(ev.Reasoning)
			}
			if (err != nil || ev != (model.Event{})) && !yield(ev, err) {
				return
			}
		}
	}
}

// response returns a response without secrets. Items stay as they are: a provider refuses them
// otherwise, and only the provider gets them.
func (m *redactedChat) response(r *model.Response) *model.Response {
	if r == nil {
		return nil
	}
	shown := *r
	shown.Message.Blocks = redactBlocks(m.redactor, r.Message.Blocks)
	return &shown
}

func redactBlocks(r *redact.Redactor, blocks []chat.Block) []chat.Block {
	shown := slices.Clone(blocks)
	for i := range shown {
		shown[i].Text = r.String(shown[i].Text)
	}
	return shown
}

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
