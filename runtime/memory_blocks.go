package runtime

import (
	"github.com/qtype-dev/qtype/internal/memory/promptcontext"
	"github.com/qtype-dev/qtype/internal/memoryconfig"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
)

// sharedModels are the models of the application.
func (a *App) sharedModels() memoryconfig.Models {
	return memoryconfig.Models{
		Summarizer: func(b *spec.SummaryBlock) promptcontext.Summarizer {
			return steps.Summarizer(b.Model.ID, func() (model.Chat, error) { return a.models.chat.get(b.Model.To) })
		},
		Embedder: func(b *spec.RetrievalBlock) promptcontext.Embedder {
			return steps.Embedder(b.EmbeddingModel.ID, func() (model.Embedder, error) {
				m, err := a.embedder(b.EmbeddingModel.To)
				return uncached{m}, err
			})
		},
		Extractor: func(b *spec.FactsBlock) promptcontext.Extractor {
			return steps.FactExtractor(b.Model.ID, func() (model.Chat, error) { return a.models.chat.get(b.Model.To) })
		},
		InputTokens: inputTokens,
	}
}

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
