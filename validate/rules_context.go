package validate

import (
	"fmt"
	"strings"

	"github.com/qtype-dev/qtype/spec"
)

// contextRules returns the rules of context blocks and variables of memories.
func contextRules() []rule {
	return []rule{duplicateBlock(), narrowScope(), noRoomForContext(), longSummary(), emptyPinnedBlock(), emptyMemoryStep(), emptyMemoryTool(), searchWithValues()}
}

func duplicateBlock() rule {
	return rule{code: "QT470", check: on(func(p *ruleContext, m *spec.Memory) {
		first := map[string]spec.ContextBlock{}
		for _, block := range m.Context {
			kind := spec.TypeName(block)
			if b, ok := block.(*spec.VariablesBlock); ok {
				kind += " with scope " + string(b.Scope)
			}
			if before, twice := first[kind]; twice && kind != "pinned" {
				p.list.Add(p.reportAt(placeOf(block, "type"), "the memory %q already has a block of type %s", m.ID, kind).
					WithRelated(placeOf(before, "type"), "the first one"))
				continue
			}
			first[kind] = block
		}
	})}
}

func narrowScope() rule {
	return rule{code: "QT476", check: on(func(p *ruleContext, m *spec.Memory) {
		for _, block := range m.Context {
			b, ok := block.(interface{ BlockScope() spec.Scope })
			if !ok || b.BlockScope().Widest(m.Scope) == b.BlockScope() {
				continue
			}
			if _, written := block.Position().Lookup("scope"); written {
				p.list.Add(p.reportAt(placeOf(block, "scope"), "the memory %q has scope %s; its context cannot have scope %s", m.ID, m.Scope, b.BlockScope()).
					WithRelated(placeOf(m, "scope", "id"), "the scope of the memory"))
			}
		}
	})}
}

func noRoomForContext() rule {
	return rule{code: "QT471", warning: true,
		check: on(func(p *ruleContext, m *spec.Memory) {
			if row, _ := m.Row(); len(m.Context) > 0 && row.Supports("chat_history_token_ratio") && m.ChatHistoryTokenRatio == 1 && m.CompactAt == 0 {
				p.list.Add(p.reportAt(placeOf(m, "chat_history_token_ratio", "id"), "the messages of memory %q can use all of token_limit, which leaves no tokens for its context", m.ID).
					WithHint("the default 0.7 leaves 0.3 of token_limit for the context"))
			}
		})}
}

func longSummary() rule {
	return rule{code: "QT472", warning: true, check: on(func(p *ruleContext, m *spec.Memory) {
		if row, _ := m.Row(); !row.Supports("chat_history_token_ratio") || m.ChatHistoryTokenRatio == 1 {
			return
		}
		share := float64(m.TokenLimit) - chatShare(m)
		for _, block := range m.Context {
			what, most := "summary", 0
			switch b := block.(type) {
			case *spec.SummaryBlock:
				most = b.MaxTokens
			case *spec.ObservationsBlock:
				what, most = "log of observations", b.MaxTokens
			case *spec.FactsBlock:
				what, most = "list of facts", b.MaxTokens
			}
			if float64(most) > share {
				p.list.Add(p.reportAt(placeOf(block, "max_tokens", "type"), "the %s can have %d tokens, but the context of memory %q has room for %.0f", what, most, m.ID, share).
					WithRelated(placeOf(m, "token_limit", "id"), fmt.Sprintf("token_limit is %d, and %g of it is for messages", m.TokenLimit, m.ChatHistoryTokenRatio)))
			}
		}
	})}
}

func emptyPinnedBlock() rule {
	return rule{code: "QT473", check: on(func(p *ruleContext, b *spec.PinnedBlock) {
		if _, written := b.Position().Lookup("text"); written && strings.TrimSpace(b.Text) == "" {
			p.report(placeOf(b, "text"), "the pinned text is empty")
		}
	})}
}

func emptyMemoryStep() rule {
	return rule{code: "QT474", check: on(func(p *ruleContext, s *spec.MemoryVariables) {
		if len(s.Common().AllInputs())+len(s.Common().AllOutputs())+len(s.Forget) == 0 {
			p.list.Add(p.reportAt(placeOf(s, "id"), "the step %q neither writes nor reads a value", s.ID).
				WithHint("list the values to write under inputs and the values to read under outputs"))
		}
	})}
}

func emptyMemoryTool() rule {
	return rule{code: "QT475", check: on(func(p *ruleContext, t *spec.MemoryTool) {
		if len(t.Inputs)+len(t.Outputs) == 0 && !t.Search && !t.Read {
			p.list.Add(p.reportAt(placeOf(t, "id"), "the tool %q neither writes nor reads a value", t.ID).
				WithHint("declare the values to write under inputs and the values to read under outputs, or set search or read"))
		}
	})}
}

func searchWithValues() rule {
	return rule{code: "QT477", check: on(func(p *ruleContext, t *spec.MemoryTool) {
		what, mode, others := "searches the memory", "search", []string{"inputs", "outputs"}
		if t.Read {
			what, mode, others = "reads messages of the session", "read", []string{"inputs", "outputs", "search", "scope"}
		}
		for _, key := range others {
			if field, given := t.Position().Lookup(key); given && (t.Search || t.Read) {
				p.list.Add(p.reportAt(field.Span(), "the tool %q %s: it cannot have %s", t.ID, what, key).
					WithHint("remove %s, or %s", key, mode))
			}
		}
	})}
}
