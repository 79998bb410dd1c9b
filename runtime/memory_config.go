package runtime

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/qtype-dev/qtype/internal/memory/promptcontext"
	"github.com/qtype-dev/qtype/internal/memoryconfig"
	"github.com/qtype-dev/qtype/internal/tool/mcp"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
	"github.com/qtype-dev/qtype/tool"
)

// memoryConfig returns the configuration of a memory of this application. Several
// applications may use one store, so the id has the namespace of the store.
func (a *App) memoryConfig(app *spec.Application, m *spec.Memory) memory.Config {
	cfg := MemoryConfig(m, Counter(a.spec, m))
	cfg.ID, cfg.Observe = a.namespace(app, m)+"/"+m.ID, observeStore
	cfg.Audit = a.auditor(m)
	cfg.OnDelete = a.forgetSessions
	cfg.KeepContext = memoryconfig.KeepsContext(a.spec, m)
	if a.opts.Mocks.Embedder == nil && a.opts.Mocks.WrapEmbedder == nil { // recordings have the calls of turns
		cfg.Background = a.afterTurn
	}
	if cfg.Context != nil {
		cfg.Context = promptcontext.New(a.opts.Warn, memoryconfig.Blocks(m, a.sharedModels())...)
	}
	return cfg
}

// DefaultStoreID returns the id under which the default store has a memory.
func DefaultStoreID(app *spec.Application, m *spec.Memory) string { return app.ID + "/" + m.ID }

// observeStore reports an operation of the store of a memory if ctx has observers.
func observeStore(ctx context.Context, operation string) func(error) {
	if !steps.ObservedKind(ctx, steps.OperationStore) {
		return nil
	}
	span := steps.StartSpan(ctx, &steps.Operation{Kind: steps.OperationStore, ID: operation})
	return func(err error) { span.End(&steps.OperationResult{Err: err}) }
}

// MemoryConfig returns the configuration of a declared memory, with the keys
// that its policy supports: the others have defaults too. Its context blocks
// have no models, so that programs that only read a memory call none.
func MemoryConfig(m *spec.Memory, counter memory.Counter) memory.Config {
	return memoryconfig.Of(m, counter)
}

// Counter returns what counts the tokens of a memory: the tokenizer that it names, else
// the encoding of the first model that reads the memory, else cl100k_base. It reads the
// vocabulary when it counts the first text.
func Counter(app *spec.Application, m *spec.Memory) memory.Counter {
	return memoryconfig.Counter(app, m)
}

// SmallestWindow returns the smallest context window, in tokens, of the models that a
// memory is for, and its model; nil and 0 if none is known.
func SmallestWindow(app *spec.Application, m *spec.Memory) (smallest *spec.Model, tokens int) {
	for _, called := range memoryconfig.ModelsOf(app, m) {
		if n := model.Describe(called).ContextWindow; n > 0 && (smallest == nil || n < tokens) {
			smallest, tokens = called, n
		}
	}
	return smallest, tokens
}

// MemoryIDs returns the ids of the memories of the steps of a flow, and of the flows that
// they run, in the order of the steps.
func MemoryIDs(f *spec.Flow) []string {
	var ids []string
	for s := range f.Plan().All() {
		if m := s.Conversation(); m != nil && !slices.Contains(ids, m.ID) {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// memoryTool makes a tool that stores values in a memory, searches it, or reads its messages.
func (a *App) memoryTool(t *spec.MemoryTool) (tool.Tool, error) {
	if t.Memory.To == nil || a.memories[t.Memory.To.ID] == nil {
		return nil, errors.New("tool " + t.ID + ": memory " + t.Memory.ID + " is not part of the application")
	}
	if t.Read {
		return steps.NewMemoryReadTool(t, a.memories[t.Memory.To.ID]), nil
	}
	if t.Search {
		return steps.NewMemorySearchTool(t, a.searchers[t.Memory.To.ID]), nil
	}
	return steps.NewMemoryTool(t, a.memories[t.Memory.To.ID]), nil
}

// sharedModels are the models of the application.
func (a *App) sharedModels() memoryconfig.Models {
	return memoryconfig.Models{
		Chat: func(ref *spec.Ref[*spec.Model]) promptcontext.Model {
			return steps.ContextModel(ref.ID, func() (model.Chat, error) { return a.models.chat.get(ref.To) })
		},
		Embedder: func(b *spec.RetrievalBlock) promptcontext.Embedder {
			return steps.Embedder(b.EmbeddingModel.ID, func() (model.Embedder, error) {
				m, err := a.embedder(b.EmbeddingModel.To)
				return uncached{m}, err
			})
		},
		InputTokens: inputTokens,
	}
}

// inputTokens returns the number of tokens of messages that a summary, facts or observations are made of
// in one call: what the context window of the model has room for in addition to the
// instructions and two results, less a reserve, because the model may count
// differently. 0 is the default of the memory.
func inputTokens(m *spec.Model, result int) int {
	const maxInput, instructions = 16_000, 500
	if m == nil {
		return 0
	}
	window := model.Describe(m).ContextWindow
	if window == 0 {
		return 0
	}
	return min(max((window-2*result-instructions)*4/5, 100), maxInput)
}

// sample calls a model for the server of an MCPTool, as a part of the step that called the
// tool: with its budget, its events and its traces.
func (a *App) sample(ctx context.Context, req mcp.SampleRequest) (*mcp.Sample, error) {
	m, err := a.limitedModel(req.Model, req.MaxTokens)
	if err != nil {
		return nil, err
	}
	answer, truncated, err := steps.Ask(ctx, m, req.Model.ID, model.Request{Messages: req.Messages})
	if err != nil {
		return nil, err
	}
	return &mcp.Sample{Text: answer.Message.Text(), Model: answer.Model, Truncated: truncated}, nil
}

// limitedModel returns a model, with its fallbacks, whose answers have at most max tokens.
func (a *App) limitedModel(declared *spec.Model, max int) (model.Chat, error) {
	if declared == nil {
		return nil, fmt.Errorf("the model of the sampling is not linked")
	}
	var all []model.Chat
	for _, m := range fallbacks(declared) {
		made, err := a.newChat(limited(m, max))
		if err != nil {
			return nil, err
		}
		all = append(all, made)
	}
	return model.WithFallbacks(all[0], all[1:]...), nil
}

// limited returns a copy of a model whose answers have at most max tokens. An answer that
// is longer is returned as far as it goes.
func limited(m *spec.Model, max int) *spec.Model {
	c := *m
	c.OnTruncation = "error"
	c.InferenceParams = maps.Clone(m.InferenceParams)
	if c.InferenceParams == nil {
		c.InferenceParams = map[string]any{}
	}
	if own := model.MaxTokens(m.InferenceParams); own > 0 {
		max = min(max, own)
	}
	key := "max_tokens"
	if _, newer := c.InferenceParams["max_completion_tokens"]; newer {
		key = "max_completion_tokens"
	}
	c.InferenceParams[key] = max
	return &c
}

// afterTurn is memory.Config.Background.
func (a *App) afterTurn(work func(context.Context)) bool {
	return a.turnWork.begin(func() context.Context {
		ctx := steps.AfterTurn(a.background())
		if a.opts.Observer != nil {
			ctx = steps.WithObserver(ctx, a.opts.Observer)
		}
		return ctx
	}, work)
}
