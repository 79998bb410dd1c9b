package validate

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/source"
)

// memoryRules returns the rules of conflicting limits.
func memoryRules() []rule {
	return []rule{flushTooLarge(), memoryTooLarge(), windowWithoutQuestion(), windowBelowToolCalls(), compactWithoutSummary()}
}

func flushTooLarge() rule {
	return rule{code: "QT401", warning: true, check: on(func(p *ruleContext, m *spec.Memory) {
		share := chatShare(m) // 0 with compact_at
		if share > 0 && float64(m.TokenFlushSize) > share {
			p.list.Add(p.reportAt(placeOf(m, "token_flush_size", "token_limit", "id"),
				"the memory %q flushes %d tokens at once, but its share for messages is only %.0f", m.ID, m.TokenFlushSize, share).
				WithHint("choose a token_flush_size well below %.0f (token_limit %d × chat_history_token_ratio %g)", share, m.TokenLimit, m.ChatHistoryTokenRatio))
		}
	})}
}

func memoryTooLarge() rule {
	return rule{code: "QT411", warning: true, check: on(func(p *ruleContext, s spec.Step) {
		model, memory := p.modelAndMemoryOf(s)
		if model == nil || memory == nil || memory.To == nil {
			return
		}
		window, owner := model.ContextWindow, fmt.Sprintf("model %q", model.ID)
		if row := knownModel(model); window == 0 && row != nil {
			window, owner = row.ContextWindow, row.ID+" of "+row.Provider
		}
		row, _ := memory.To.Row()
		if len(row.Limits) == 0 || row.Limits[0].Unit != spec.UnitTokens {
			return
		}
		key := row.Limits[0].Key
		limit := int(memory.To.Limit(key))
		if window > 0 && limit > window {
			p.list.Add(p.reportAt(memory.Span, "the memory %q holds up to %d tokens, but the context window of %s is %d",
				memory.ID, limit, owner, window).
				WithRelated(placeOf(memory.To, key, "id"), fmt.Sprintf("%s is %d", key, limit)))
		}
	})}
}

func compactWithoutSummary() rule {
	return rule{code: "QT444", check: on(func(p *ruleContext, m *spec.Memory) {
		isSummary := func(b spec.ContextBlock) bool { return spec.TypeName(b) == "summary" }
		if row, _ := m.Row(); m.CompactAt > 0 && row.Supports("compact_at") && !slices.ContainsFunc(m.Context, isSummary) {
			p.list.Add(p.reportAt(placeOf(m, "compact_at"), "the memory %q has compact_at, but no context block of type summary", m.ID).
				WithHint("add {type: summary, model: …} to context"))
		}
	})}
}

func windowWithoutQuestion() rule {
	return rule{code: "QT442", warning: true, check: on(func(p *ruleContext, s spec.Step) {
		memory, row := p.windowOf(s)
		if memory == nil || len(row.Limits) == 0 {
			return
		}
		prompted, ok := s.(spec.Prompted)
		limit := row.Limits[0]
		most, needed := int(memory.To.Limit(limit.Key)), 1
		if !ok || prompted.SystemPrompt() == "" || most == 0 {
			return
		}
		if limit.Unit == spec.UnitTokens {
			needed = systemMessageTokens + countTokens(memory.To.Tokenizer, prompted.SystemPrompt())
		}
		if most <= needed {
			p.list.Add(p.reportAt(memory.Span, "the memory %q has no room for a question: the system message of step %q has %d of the %d %s in its window",
				memory.ID, s.EntityID(), needed, most, limit.Unit).WithRelated(placeOf(memory.To, limit.Key, "id"), fmt.Sprintf("%s is %d", limit.Key, most)))
		}
	})}
}

// systemMessageTokens are the tokens of a system message in addition to its text.
const systemMessageTokens = 4

// windowOf returns the memory of a step, and its policy, if the policy counts the system
// message like the others.
func (p *checker) windowOf(s spec.Step) (*spec.Ref[*spec.Memory], spec.PolicyRow) {
	_, memory := p.modelAndMemoryOf(s)
	if memory == nil || memory.To == nil {
		return nil, spec.PolicyRow{}
	}
	row, _ := memory.To.Row()
	if !row.Supports("keep_system_first") {
		return nil, spec.PolicyRow{}
	}
	return memory, row
}

func windowBelowToolCalls() rule {
	return rule{code: "QT443", warning: true, check: on(func(p *ruleContext, s *spec.Agent) {
		memory, row := p.windowOf(s)
		if memory == nil || len(row.Limits) == 0 || row.Limits[0].Unit != spec.UnitMessages || len(s.Tools)+len(s.Handoffs) == 0 {
			return
		}
		most, first := int(memory.To.Limit(row.Limits[0].Key)), 1
		if s.SystemMessage != "" {
			first = 2
		}
		at, calls := memory.Span, 1
		if place, written := s.Position().Lookup("max_tool_executions"); written {
			at, calls = place.Span(), s.MaxToolExecutions
		}
		if needed := first + 2*calls; most > 0 && most < needed {
			p.list.Add(p.reportAt(at, "the agent %q may add %d messages to the window in one turn with %s, but the memory %q holds %d",
				s.ID, needed, textfmt.Count(calls, "tool call"), memory.ID, most).
				WithRelated(placeOf(memory.To, row.Limits[0].Key, "id"), fmt.Sprintf("%s is %d", row.Limits[0].Key, most)))
		}
	})}
}

// chatShare returns the maximum number of tokens of messages in a memory with the
// policy flush, or 0 for other policies and with compact_at.
func chatShare(m *spec.Memory) float64 {
	if row, _ := m.Row(); !row.Supports("chat_history_token_ratio") || m.CompactAt > 0 {
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

// encryptionRules returns the rules of encrypted stores.
func encryptionRules() []rule { return []rule{malformedKey(), encryptedMemoryStore()} }

// aesKeySize is the size of an AES-256 key, in bytes.
const aesKeySize = 32

func malformedKey() rule {
	return rule{code: "QT450", check: on(func(p *ruleContext, s *spec.Store) {
		e := s.Encryption
		if e == nil {
			return
		}
		p.checkKey(s, placeOf(e, "key"), "the encryption key", e.Key)
		for i, k := range e.OldKeys {
			p.checkKey(s, e.Position().Field("old_keys").Index(i).Span(), "an old encryption key", k)
		}
	})}
}

// checkKey reports an invalid key. The message does not contain the key. Keys that
// are known only at run time are not checked.
func (p *ruleContext) checkKey(s *spec.Store, at source.Span, what string, key spec.Secret) {
	text := strings.TrimSpace(key.Reveal())
	if key.Ref != nil || text == "" || strings.Contains(text, "${") || isAESKey(text) {
		return
	}
	p.list.Add(p.reportAt(at, "%s of store %q is not 32 bytes in base64", what, s.ID).
		WithHint("generate one with openssl rand -base64 32"))
}

// isAESKey reports whether a text is a key in one of the accepted encodings.
func isAESKey(text string) bool {
	if raw, err := hex.DecodeString(text); err == nil && len(raw) == aesKeySize {
		return true
	}
	text = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(text, "="))
	raw, err := base64.RawStdEncoding.Strict().DecodeString(text)
	return err == nil && len(raw) == aesKeySize
}

func encryptedMemoryStore() rule {
	return rule{code: "QT451", check: on(func(p *ruleContext, s *spec.Store) {
		if s.Type == "memory" && s.Encryption != nil {
			p.report(fieldKey(s, "encryption"), "the store %q is kept in memory, so its encryption has no effect", s.ID)
		}
	})}
}
