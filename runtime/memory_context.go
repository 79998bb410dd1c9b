package runtime

import (
	"context"
	"errors"

	"github.com/qtype-dev/qtype/memory/promptcontext"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
	"github.com/qtype-dev/qtype/tool"
)

// contextBlocks are a memory's context blocks in the memory package's terms, without
// the models that write summaries and find messages again.
func contextBlocks(m *spec.Memory) []promptcontext.Block {
	var blocks []promptcontext.Block
	for _, declared := range m.Context {
		switch b := declared.(type) {
		case *spec.PinnedBlock:
			blocks = append(blocks, promptcontext.Block{Kind: promptcontext.Pinned, Priority: b.Priority, Text: b.Text})
		case *spec.VariablesBlock:
			blocks = append(blocks, promptcontext.Block{Kind: promptcontext.Variables, Priority: b.Priority})
		case *spec.SummaryBlock:
			blocks = append(blocks, promptcontext.Block{Kind: promptcontext.Summary, Priority: b.Priority, MaxTokens: b.MaxTokens,
				Instructions: b.Instructions, InputTokens: summaryInputTokens(b), Summarizer: nopModel{}})
		case *spec.RetrievalBlock:
			blocks = append(blocks, promptcontext.Block{Kind: promptcontext.Retrieval, Priority: b.Priority, TopK: b.TopK, Embedder: nopModel{}})
		}
	}
	return blocks
}

// summaryInputTokens is how many tokens of messages the model that writes a summary is
// given at once: what its context window leaves beside instructions and both
// summaries, with a reserve, for it may count otherwise. 0 is the memory's default.
func summaryInputTokens(b *spec.SummaryBlock) int {
	const most, instructions = 16_000, 500
	if b.Model.To == nil {
		return 0
	}
	window := model.Describe(b.Model.To).ContextWindow
	if window == 0 {
		return 0
	}
	return min(max((window-2*b.MaxTokens-instructions)*4/5, 100), most)
}

// withModels gives context blocks the shared models that they name.
func (a *App) withModels(m *spec.Memory, blocks []promptcontext.Block) []promptcontext.Block {
	for i, declared := range m.Context {
		switch b := declared.(type) {
		case *spec.SummaryBlock:
			blocks[i].Summarizer = steps.Summarizer(b.Model.ID, func() (model.Chat, error) {
				return a.models.chat.get(b.Model.To)
			})
		case *spec.RetrievalBlock:
			blocks[i].Embedder = steps.Embedder(b.EmbeddingModel.ID, func() (model.Embedder, error) {
				return a.embedder(b.EmbeddingModel.To)
			})
		}
	}
	return blocks
}

// memoryTool makes a tool that keeps values in a memory.
func (a *App) memoryTool(t *spec.MemoryTool) (tool.Tool, error) {
	if t.Memory.To == nil || a.memories[t.Memory.To.ID] == nil {
		return nil, errors.New("tool " + t.ID + ": memory " + t.Memory.ID + " is not part of the application")
	}
	return steps.NewMemoryTool(t, a.memories[t.Memory.To.ID]), nil
}

// nopModel stands where a memory is looked at and no model is asked.
type nopModel struct{}

var errModelDisabled = errors.New("no model is asked here")

// Summarize refuses.
func (nopModel) Summarize(context.Context, promptcontext.SummaryRequest) (string, error) {
	return "", errModelDisabled
}

// Name refuses.
func (nopModel) Name() (string, error) { return "", errModelDisabled }

// Embed refuses.
func (nopModel) Embed(context.Context, []string) ([][]float32, error) { return nil, errModelDisabled }
