package validate

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/qtype-dev/qtype/internal/tokenizer"
	"github.com/qtype-dev/qtype/internal/tokenizer/tokenfile"
	"github.com/qtype-dev/qtype/spec"
)

// policyRules returns the rules of the settings of memory policies.
func policyRules() []rule {
	return []rule{settingOfOtherPolicy(), missingLimit(), pinnedTooLarge()}
}

func settingOfOtherPolicy() rule {
	return rule{code: "QT420", title: "setting of another memory policy",
		doc: "The settings depend on the policy: flush has token_limit, chat_history_token_ratio, token_flush_size and context; message_window has max_messages; token_window has max_tokens; both windows have keep_system_first; round_window has n_rounds and max_context; unbounded has none. A setting of another policy would have no effect.",
		sample: sample{text: `
id: example
memories:
  - {id: recent, policy: message_window, ⟦max_messages: 10, max_tokens: 1000│max_messages: 10⟧}
`},
		check: on(func(p *ruleContext, m *spec.Memory) {
			row, known := m.Row()
			if !known {
				return // reported by the loader
			}
			for _, key := range spec.PolicyKeys() {
				if _, written := m.Position().Lookup(key); !written || row.Supports(key) {
					continue
				}
				names, _ := spec.PoliciesWith(key)
				owners := make([]string, len(names))
				for i, name := range names {
					owners[i] = string(name)
				}
				diagnostic := p.reportAt(fieldKey(m, key), "%q belongs to the policy %s, but the memory %q has the policy %s",
					key, strings.Join(owners, " or "), m.ID, row.Name)
				if at, ok := m.Position().Lookup("policy"); ok {
					diagnostic = diagnostic.WithRelated(at.Span(), "its policy")
				} else {
					diagnostic = diagnostic.WithHint("flush is the default policy; add policy: %s", owners[0])
				}
				p.list.Add(diagnostic)
			}
		})}
}

func missingLimit() rule {
	return rule{code: "QT421", title: "window without a limit",
		doc: "message_window requires max_messages, and token_window requires max_tokens. These limits have no defaults.",
		sample: sample{text: `
id: example
memories:
  - {id: recent, policy: token_window⟦│, max_tokens: 1000⟧}
`},
		check: on(func(p *ruleContext, m *spec.Memory) {
			row, _ := m.Row()
			for _, l := range row.Limits {
				if _, optional := l.Default(); optional || m.Limit(l.Key) > 0 {
					continue
				}
				if _, written := m.Position().Lookup(l.Key); !written { // the loader reports one that is not a number
					p.list.Add(p.reportAt(placeOf(m, "policy", "id"), "the policy %s of memory %q needs %s", m.Policy, m.ID, l.Key).
						WithHint("add %s:", l.Key))
				}
			}
		})}
}

func pinnedTooLarge() rule {
	return rule{code: "QT422", title: "pinned text larger than the memory's share for context",
		doc: "Context blocks share the tokens of token_limit that are not reserved for messages (token_limit × chat_history_token_ratio). A block of priority 0 is never cut, so pinned texts that exceed the share can never be sent.",
		sample: sample{text: `
id: example
memories:
  - id: chat_memory
    token_limit: ⟦20│2000⟧
    token_flush_size: 10
    context:
      - {type: pinned, text: "The customer is on plan Gold, lives in Graz and prefers to be written to in the morning."}
`},
		check: on(func(p *ruleContext, m *spec.Memory) {
			share := float64(m.TokenLimit) - chatShare(m)
			if row, _ := m.Row(); !row.Supports("context") {
				return
			}
			size, tokens, texts := 0, 0, 0
			for _, block := range m.Context {
				pinned, ok := block.(*spec.PinnedBlock)
				if !ok || pinned.Priority != 0 {
					continue
				}
				size += len(pinned.Text)
				tokens += pinnedTokens(m.Tokenizer, pinned.Text, share)
				// A token has at least one byte, so short texts are not counted.
				if texts++; float64(size) <= share || float64(tokens) <= share {
					continue
				}
				what := "the pinned text has"
				if texts > 1 {
					what = fmt.Sprintf("the first %d pinned texts have", texts)
				}
				p.list.Add(p.reportAt(placeOf(pinned, "text"), "%s %d tokens, but the context of memory %q has room for %.0f", what, tokens, m.ID, share).
					WithRelated(placeOf(m, "token_limit", "id"), fmt.Sprintf("token_limit is %d, and %g of it is for messages", m.TokenLimit, m.ChatHistoryTokenRatio)))
				return
			}
		})}
}

// pinnedTokens returns the number of tokens of a text. For a text below 1 % of the
// share it returns the number of bytes, an upper limit.
func pinnedTokens(t spec.Tokenizer, text string, share float64) int {
	if float64(len(text))*100 <= share {
		return len(text)
	}
	return countTokens(t, text)
}

// countTokens counts the tokens of a text, by default with the encoding of current models.
func countTokens(t spec.Tokenizer, text string) int {
	if t.File != "" {
		if file, err := tokenfile.Load(t.File); err == nil {
			return file.Count(text)
		}
		return 0 // reported by the loader
	}
	enc, err := tokenizer.For(cmp.Or(t.Encoding, tokenizer.O200k))
	if err != nil {
		return 0 // reported by the loader
	}
	return enc.Count(text)
}
