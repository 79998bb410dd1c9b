package validate

import (
	"fmt"
	"strings"

	"github.com/qtype-dev/qtype/spec"
)

// contextRules are about what a memory sends beside its messages, and the values
// that it keeps (memory.md 6).
func contextRules() []rule {
	return []rule{repeatedBlock(), noRoomForContext(), longSummary(), emptyPinnedBlock(), idleVariables(), idleMemoryTool()}
}

func repeatedBlock() rule {
	return rule{code: "QT470", title: "a second context block of the same type",
		doc: "A memory has one summary, one set of variables and one retrieval. Only pinned texts may be several.",
		sample: sample{text: `
id: example
memories:
  - id: chat_memory
    context:
      - {type: variables}
      - {type: ⟦variables│pinned, text: The customer is on plan Gold.⟧}
`},
		check: on(func(p *ruleContext, m *spec.Memory) {
			first := map[string]spec.ContextBlock{}
			for _, block := range m.Context {
				kind := spec.TypeName(block)
				if before, twice := first[kind]; twice && kind != "pinned" {
					p.list.Add(p.reportAt(placeOf(block, "type"), "the memory %q has a block of type %s already", m.ID, kind).
						WithRelated(placeOf(before, "type"), "the first one"))
					continue
				}
				first[kind] = block
			}
		})}
}

func noRoomForContext() rule {
	return rule{code: "QT471", title: "context without room",
		doc: "Context blocks share what token_limit × chat_history_token_ratio leaves of token_limit. With a ratio of 1 messages may take all of it, so that the context is cut away just when the window is full.",
		sample: sample{text: `
id: example
memories:
  - id: chat_memory
    chat_history_token_ratio: ⟦1│0.7⟧
    context:
      - {type: variables}
`}, warning: true,
		check: on(func(p *ruleContext, m *spec.Memory) {
			if row, _ := m.Row(); len(m.Context) > 0 && row.Supports("chat_history_token_ratio") && m.ChatHistoryTokenRatio == 1 {
				p.list.Add(p.reportAt(placeOf(m, "chat_history_token_ratio", "id"), "the messages of memory %q may take all of token_limit: its context has no room", m.ID).
					WithHint("the default is 0.7, which leaves 0.3 of token_limit to the context"))
			}
		})}
}

func longSummary() rule {
	return rule{code: "QT472", warning: true, title: "a summary larger than the memory's share for context",
		doc:    "Context blocks share what token_limit × chat_history_token_ratio leaves of token_limit. A summary that has more tokens than that is cut at its end whenever the window is full.",
		sample: sample{text: "\nid: example\nmodels:\n  - {type: Model, id: writer, provider: mock}\nmemories:\n  - id: chat_memory\n    token_limit: 4000\n    token_flush_size: 500\n    context:\n      - {type: summary, model: writer, max_tokens: ⟦2000│800⟧}\n"},
		check: on(func(p *ruleContext, m *spec.Memory) {
			if row, _ := m.Row(); !row.Supports("chat_history_token_ratio") || m.ChatHistoryTokenRatio == 1 {
				return
			}
			share := float64(m.TokenLimit) - chatShare(m)
			for _, block := range m.Context {
				if s, ok := block.(*spec.SummaryBlock); ok && float64(s.MaxTokens) > share {
					p.list.Add(p.reportAt(placeOf(s, "max_tokens", "type"), "the summary may have %d tokens, but the context of memory %q only %.0f", s.MaxTokens, m.ID, share).
						WithRelated(placeOf(m, "token_limit", "id"), fmt.Sprintf("token_limit is %d, and %g of it is for messages", m.TokenLimit, m.ChatHistoryTokenRatio)))
				}
			}
		})}
}

func emptyPinnedBlock() rule {
	return rule{code: "QT473", title: "a pinned text that says nothing",
		doc:    "A pinned block sends its text with every call. Without a text it has no effect.",
		sample: sample{text: "\nid: example\nmemories:\n  - id: chat_memory\n    context:\n      - {type: pinned, text: \"⟦ │The customer is on plan Gold.⟧\"}\n"},
		check: on(func(p *ruleContext, b *spec.PinnedBlock) {
			if _, written := b.Place().Lookup("text"); written && strings.TrimSpace(b.Text) == "" {
				p.report(placeOf(b, "text"), "the pinned text is empty")
			}
		})}
}

func idleVariables() rule {
	return rule{code: "QT474", title: "MemoryVariables neither keeps nor reads a value",
		doc: "A step of type MemoryVariables keeps its inputs in the memory, under their ids, and reads its outputs from it.",
		sample: sample{head: "memories:\n  - {id: chat_memory, context: [{type: variables}]}", in: "plan: text", out: "plan: text",
			steps: "- {type: MemoryVariables, id: keep, memory: chat_memory⟦│, inputs: [plan]⟧}"},
		check: on(func(p *ruleContext, s *spec.MemoryVariables) {
			if len(s.Common().AllInputs())+len(s.Common().AllOutputs())+len(s.Forget) == 0 {
				p.list.Add(p.reportAt(placeOf(s, "id"), "the step %q neither keeps nor reads a value", s.ID).
					WithHint("name what it keeps under inputs, what it reads under outputs"))
			}
		})}
}

func idleMemoryTool() rule {
	return rule{code: "QT475", title: "a MemoryTool neither keeps nor reads a value",
		doc: "A tool of type MemoryTool keeps the arguments that it is called with in the memory, under their ids, and answers its outputs from it.",
		sample: sample{text: `
id: example
memories:
  - {id: chat_memory, context: [{type: variables}]}
tools:
  - {type: MemoryTool, id: note_plan, name: note_plan, description: Notes the customer's plan., memory: chat_memory⟦│, inputs: [{id: plan, type: text}]⟧}
`},
		check: on(func(p *ruleContext, t *spec.MemoryTool) {
			if len(t.Inputs)+len(t.Outputs) == 0 {
				p.list.Add(p.reportAt(placeOf(t, "id"), "the tool %q neither keeps nor reads a value", t.ID).
					WithHint("declare what it keeps under inputs, what it reads under outputs"))
			}
		})}
}
