package validate

import (
	"fmt"

	"github.com/qtype-dev/qtype/spec"
)

// memoryRules returns the rules of conflicting limits.
func memoryRules() []rule { return []rule{flushTooLarge(), memoryTooLarge()} }

func flushTooLarge() rule {
	return rule{code: "QT401", warning: true, title: "flush larger than the memory's share for messages",
		doc: "token_flush_size is the number of tokens to remove at once when the messages exceed token_limit × chat_history_token_ratio. If it is larger than that share, each flush removes everything except the newest round.",
		sample: sample{text: `
id: example
memories:
  - {id: chat_memory, token_limit: 2000, token_flush_size: ⟦3000│500⟧}
`},
		check: on(func(p *ruleContext, m *spec.Memory) {
			share := chatShare(m)
			if share > 0 && float64(m.TokenFlushSize) > share {
				p.list.Add(p.reportAt(placeOf(m, "token_flush_size", "token_limit", "id"),
					"the memory %q flushes %d tokens at once, but its share for messages is only %.0f", m.ID, m.TokenFlushSize, share).
					WithHint("choose a token_flush_size well below %.0f (token_limit %d × chat_history_token_ratio %g)", share, m.TokenLimit, m.ChatHistoryTokenRatio))
			}
		})}
}

func memoryTooLarge() rule {
	return rule{code: "QT411", warning: true, title: "memory larger than the model's context window",
		doc: "The memory can grow larger than the model's declared context_window, so messages are cut before the memory's limit is reached.",
		sample: sample{head: `models:
  - {type: Model, id: writer, provider: openai, context_window: 8192}
memories:
  - {id: chat_memory, token_limit: ⟦50000│8000⟧}`, in: "question: ChatMessage", out: "answer: ChatMessage",
			steps: "- {type: LLMInference, id: reply, model: writer, memory: chat_memory, inputs: [question], outputs: [answer]}"},
		check: on(func(p *ruleContext, s spec.Step) {
			model, memory := p.modelAndMemoryOf(s)
			if model == nil || memory == nil || memory.To == nil || model.ContextWindow == 0 {
				return
			}
			row, _ := memory.To.Row()
			if len(row.Limits) == 0 || row.Limits[0].Unit != spec.UnitTokens {
				return
			}
			key := row.Limits[0].Key
			limit := int(memory.To.Limit(key))
			if limit > model.ContextWindow {
				p.list.Add(p.reportAt(memory.Span, "the memory %q holds up to %d tokens, but the context window of model %q is %d",
					memory.ID, limit, model.ID, model.ContextWindow).
					WithRelated(placeOf(memory.To, key, "id"), fmt.Sprintf("%s is %d", key, limit)))
			}
		})}
}

// chatShare returns the maximum number of tokens of messages in a memory with the
// policy flush, or 0 for other policies.
func chatShare(m *spec.Memory) float64 {
	if row, _ := m.Row(); !row.Supports("chat_history_token_ratio") {
		return 0
	}
	return float64(m.TokenLimit) * m.ChatHistoryTokenRatio
}

// modelAndMemoryOf returns the model that a step calls and the reference to the memory
// with the conversation. Both may be nil.
func (p *checker) modelAndMemoryOf(s spec.Step) (*spec.Model, *spec.Ref[*spec.Memory]) {
	plan := p.stepPlan(s)
	var memory *spec.Ref[*spec.Memory]
	if refs := spec.Refs[*spec.Memory](plan.Uses, spec.RoleConversation); len(refs) > 0 {
		memory = refs[0]
	}
	if model := plan.Model(); model != nil {
		return model.Base(), memory
	}
	return nil, memory
}
