package validate

import (
	"fmt"

	"github.com/qtype-dev/qtype/spec"
)

// memoryRules are about limits that do not fit each other (memory.md 2.7).
func memoryRules() []rule { return []rule{flushOverCap(), limitOverWindow()} }

func flushOverCap() rule {
	return rule{code: "QT401", warning: true, title: "a flush larger than the memory's share for messages",
		doc: "token_flush_size is how much leaves at a time once the messages exceed token_limit × chat_history_token_ratio. " +
			"Where it is larger than that, each flush takes everything that it may and only the newest round stays.",
		sample: sample{text: `
id: example
memories:
  - {id: chat_memory, token_limit: 2000, token_flush_size: ⟦3000│500⟧}
`},
		check: on(func(p *ruleContext, m *spec.Memory) {
			share := chatShare(m)
			if share > 0 && float64(m.TokenFlushSize) > share {
				p.list.Add(p.reportAt(placeOf(m, "token_flush_size", "token_limit", "id"),
					"the memory %q flushes %d tokens at a time, but messages may hold only %.0f", m.ID, m.TokenFlushSize, share).
					WithHint("token_limit %d × chat_history_token_ratio %g is %.0f: choose a token_flush_size well below", m.TokenLimit, m.ChatHistoryTokenRatio, share))
			}
		})}
}

func limitOverWindow() rule {
	return rule{code: "QT411", warning: true, title: "a memory that the model cannot hold",
		doc: "The memory may grow to more tokens than the model's declared context_window, so the window that is sent has to be cut before the memory's own limit is reached.",
		sample: sample{head: `models:
  - {type: Model, id: writer, provider: openai, context_window: 8192}
memories:
  - {id: chat_memory, token_limit: ⟦50000│8000⟧}`, in: "said: ChatMessage", out: "answer: ChatMessage",
			steps: "- {type: LLMInference, id: reply, model: writer, memory: chat_memory, inputs: [said], outputs: [answer]}"},
		check: on(func(p *ruleContext, s spec.Step) {
			model, memory := p.chatOf(s)
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
				p.list.Add(p.reportAt(memory.Span, "the memory %q holds up to %d tokens, the model %q only %d",
					memory.ID, limit, model.ID, model.ContextWindow).
					WithRelated(placeOf(memory.To, key, "id"), fmt.Sprintf("%s is %d", key, limit)))
			}
		})}
}

// chatShare is how many tokens of messages a memory holds under the policy flush; 0 under others.
func chatShare(m *spec.Memory) float64 {
	if row, _ := m.Row(); !row.Supports("chat_history_token_ratio") {
		return 0
	}
	return float64(m.TokenLimit) * m.ChatHistoryTokenRatio
}

// chatOf is the model that a step calls and its reference to the memory that holds
// the conversation; nil where there is none.
func (p *checker) chatOf(s spec.Step) (*spec.Model, *spec.Ref[*spec.Memory]) {
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
