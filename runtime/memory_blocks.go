package runtime

import (
	"context"
	"errors"
	"reflect"
	"sync"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/promptcontext"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
)

// blockModels returns the models of context blocks.
type blockModels struct {
	summarizer func(*spec.SummaryBlock) promptcontext.Summarizer
	embedder   func(*spec.RetrievalBlock) promptcontext.Embedder
	extractor  func(*spec.FactsBlock) promptcontext.Extractor
}

// sharedModels are the models of the application.
func (a *App) sharedModels() blockModels {
	return blockModels{
		summarizer: func(b *spec.SummaryBlock) promptcontext.Summarizer {
			return steps.Summarizer(b.Model.ID, func() (model.Chat, error) { return a.models.chat.get(b.Model.To) })
		},
		embedder: func(b *spec.RetrievalBlock) promptcontext.Embedder {
			return steps.Embedder(b.EmbeddingModel.ID, func() (model.Embedder, error) {
				m, err := a.embedder(b.EmbeddingModel.To)
				return uncached{m}, err
			})
		},
		extractor: func(b *spec.FactsBlock) promptcontext.Extractor {
			return steps.FactExtractor(b.Model.ID, func() (model.Chat, error) { return a.models.chat.get(b.Model.To) })
		},
	}
}

// noModels are models for programs that only read a memory: every call fails.
func noModels() blockModels {
	return blockModels{
		summarizer: func(*spec.SummaryBlock) promptcontext.Summarizer { return nopModel{} },
		embedder:   func(*spec.RetrievalBlock) promptcontext.Embedder { return nopModel{} },
		extractor:  func(*spec.FactsBlock) promptcontext.Extractor { return nopModel{} },
	}
}

// blockBuilder builds one type of context block.
type blockBuilder func(spec.ContextBlock, blockModels) promptcontext.Block

// blockBuilders is the table of the types of context blocks.
var blockBuilders = sync.OnceValue(func() map[reflect.Type]blockBuilder {
	table := map[reflect.Type]blockBuilder{}
	addBlock(table, func(b *spec.PinnedBlock, _ blockModels) promptcontext.Block {
		return promptcontext.Block{Kind: promptcontext.Pinned, Priority: b.Priority, Text: b.Text}
	})
	addBlock(table, func(b *spec.VariablesBlock, _ blockModels) promptcontext.Block {
		return promptcontext.Block{Kind: promptcontext.Variables, Priority: b.Priority, Scope: memory.Scope(b.Scope)}
	})
	addBlock(table, func(b *spec.SummaryBlock, m blockModels) promptcontext.Block {
		return promptcontext.Block{Kind: promptcontext.Summary, Priority: b.Priority, Scope: memory.Scope(b.Scope), MaxTokens: b.MaxTokens,
			Instructions: b.Instructions, InputTokens: inputTokens(b.Model.To, b.MaxTokens), Summarizer: m.summarizer(b)}
	})
	addBlock(table, func(b *spec.RetrievalBlock, m blockModels) promptcontext.Block {
		return promptcontext.Block{Kind: promptcontext.Retrieval, Priority: b.Priority, Scope: memory.Scope(b.Scope), TopK: b.TopK, Embedder: m.embedder(b)}
	})
	addBlock(table, func(b *spec.FactsBlock, m blockModels) promptcontext.Block {
		return promptcontext.Block{Kind: promptcontext.Facts, Priority: b.Priority, Scope: memory.Scope(b.Scope), MaxFacts: b.MaxFacts,
			Instructions: b.Instructions, InputTokens: inputTokens(b.Model.To, b.MaxFacts*tokensOfFact), Extractor: m.extractor(b)}
	})
	return table
})

func addBlock[B spec.ContextBlock](table map[reflect.Type]blockBuilder, build func(B, blockModels) promptcontext.Block) {
	table[reflect.TypeFor[B]()] = func(b spec.ContextBlock, m blockModels) promptcontext.Block { return build(b.(B), m) }
}

// contextBlocks builds the context blocks of a memory.
func contextBlocks(m *spec.Memory, models blockModels) []promptcontext.Block {
	var blocks []promptcontext.Block
	for _, b := range m.Context {
		blocks = append(blocks, blockBuilders()[reflect.TypeOf(b)](b, models))
	}
	return blocks
}

// tokensOfFact is about the size of a fact.
const tokensOfFact = 25

// inputTokens returns the number of tokens of messages that a summary or facts are made of
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

// nopModel is a model that must not be called.
type nopModel struct{}

var errModelDisabled = errors.New("models are disabled")

// Summarize returns an error.
func (nopModel) Summarize(context.Context, promptcontext.SummaryRequest) (string, error) {
	return "", errModelDisabled
}

// Extract returns an error.
func (nopModel) Extract(context.Context, promptcontext.FactsRequest) ([]promptcontext.FactChange, error) {
	return nil, errModelDisabled
}

// Name returns an error.
func (nopModel) Name() (string, error) { return "", errModelDisabled }

// Embed returns an error.
func (nopModel) Embed(context.Context, []string) ([][]float32, error) { return nil, errModelDisabled }
