package memoryconfig

import (
	"context"
	"errors"
	"reflect"
	"sync"

	"github.com/qtype-dev/qtype/internal/memory/promptcontext"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec"
)

// Models returns the models of context blocks.
type Models struct {
	Chat     func(*spec.Ref[*spec.Model]) promptcontext.Model  // of a summary, of facts, of observations
	Embedder func(*spec.RetrievalBlock) promptcontext.Embedder // of a retrieval
	// InputTokens returns how many tokens of messages one call of a model may have for a
	// result of a size; 0 is the default of the memory.
	InputTokens func(m *spec.Model, result int) int
}

// embedder returns the model of a retrieval, nil for none.
func (m *Models) embedder(b *spec.RetrievalBlock) promptcontext.Embedder {
	if b.EmbeddingModel.To == nil {
		return nil
	}
	return m.Embedder(b)
}

// noModels are models for programs that only read a memory: every call fails.
func noModels() Models {
	return Models{
		Chat:        func(*spec.Ref[*spec.Model]) promptcontext.Model { return nopModel{} },
		Embedder:    func(*spec.RetrievalBlock) promptcontext.Embedder { return nopModel{} },
		InputTokens: func(*spec.Model, int) int { return 0 },
	}
}

// blockBuilder builds one type of context block.
type blockBuilder func(spec.ContextBlock, Models) promptcontext.Block

// blockBuilders is the table of the types of context blocks.
var blockBuilders = sync.OnceValue(func() map[reflect.Type]blockBuilder {
	table := map[reflect.Type]blockBuilder{}
	addBlock(table, func(b *spec.PinnedBlock, _ Models) promptcontext.Block {
		return promptcontext.Block{Kind: promptcontext.Pinned, Priority: b.Priority, Text: b.Text}
	})
	addBlock(table, func(b *spec.VariablesBlock, _ Models) promptcontext.Block {
		return promptcontext.Block{Kind: promptcontext.Variables, Priority: b.Priority, Scope: memory.Scope(b.Scope)}
	})
	addBlock(table, func(b *spec.SummaryBlock, m Models) promptcontext.Block {
		return promptcontext.Block{Kind: promptcontext.Summary, Priority: b.Priority, Scope: memory.Scope(b.Scope), MaxTokens: b.MaxTokens,
			Instructions: b.Instructions, InputTokens: m.InputTokens(b.Model.To, b.MaxTokens), Summarizer: m.Chat(&b.Model)}
	})
	addBlock(table, func(b *spec.RetrievalBlock, m Models) promptcontext.Block {
		return promptcontext.Block{Kind: promptcontext.Retrieval, Priority: b.Priority, Scope: memory.Scope(b.Scope), TopK: b.TopK, MinScore: b.MinScore, Embedder: m.embedder(b)}
	})
	addBlock(table, func(b *spec.FactsBlock, m Models) promptcontext.Block {
		return promptcontext.Block{Kind: promptcontext.Facts, Priority: b.Priority, Scope: memory.Scope(b.Scope), MaxFacts: b.MaxFacts, MaxTokens: b.MaxTokens, TopK: b.TopK,
			Instructions: b.Instructions, InputTokens: m.InputTokens(b.Model.To, b.MaxFacts*tokensOfFact), Extractor: m.Chat(&b.Model)}
	})
	addBlock(table, func(b *spec.ObservationsBlock, m Models) promptcontext.Block {
		return promptcontext.Block{Kind: promptcontext.Observations, Priority: b.Priority, Scope: memory.Scope(b.Scope), MaxTokens: b.MaxTokens,
			Instructions: b.Instructions, InputTokens: m.InputTokens(b.Model.To, b.MaxTokens), Observer: m.Chat(&b.Model)}
	})
	return table
})

func addBlock[B spec.ContextBlock](table map[reflect.Type]blockBuilder, build func(B, Models) promptcontext.Block) {
	table[reflect.TypeFor[B]()] = func(b spec.ContextBlock, m Models) promptcontext.Block { return build(b.(B), m) }
}

// Blocks builds the context blocks of a memory.
func Blocks(m *spec.Memory, models Models) []promptcontext.Block {
	var blocks []promptcontext.Block
	for _, b := range m.Context {
		blocks = append(blocks, blockBuilders()[reflect.TypeOf(b)](b, models))
	}
	return blocks
}

// tokensOfFact is about the size of a fact.
const tokensOfFact = 25

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

// Observe returns an error.
func (nopModel) Observe(context.Context, promptcontext.ObservationsRequest) ([]promptcontext.Statement, error) {
	return nil, errModelDisabled
}

// Name returns an error.
func (nopModel) Name() (string, error) { return "", errModelDisabled }

// Embed returns an error.
func (nopModel) Embed(context.Context, []string, bool) ([][]float32, error) {
	return nil, errModelDisabled
}
