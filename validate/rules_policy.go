package validate

import (
	"fmt"
	"strings"

	"github.com/qtype-dev/qtype/internal/tokenizer"
	"github.com/qtype-dev/qtype/spec"
)

// policyRules are about what a memory's policy acts on (memory.md 6): no
// setting is without effect.
func policyRules() []rule {
	return []rule{foreignLimit(), missingLimit(), pinnedTooLong()}
}

func foreignLimit() rule {
	return rule{code: "QT420", title: "a setting that belongs to another memory policy",
		doc: "Each policy has settings of its own: flush has token_limit, chat_history_token_ratio, token_flush_size and context; message_window has max_messages; token_window has max_tokens; " +
			"both windows have keep_system_first; round_window has n_rounds and max_context; unbounded has none. A setting of another policy would have no effect.",
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
				if _, written := m.Place().Lookup(key); !written || row.Supports(key) {
					continue
				}
				names, _ := spec.PoliciesWith(key)
				owners := make([]string, len(names))
				for i, name := range names {
					owners[i] = string(name)
				}
				finding := p.reportAt(fieldKey(m, key), "%q belongs to the policy %s, but the memory %q has the policy %s",
					key, strings.Join(owners, " or "), m.ID, row.Name)
				if at, ok := m.Place().Lookup("policy"); ok {
					finding = finding.WithRelated(at.Span(), "its policy")
				} else {
					finding = finding.WithHint("flush is the policy where none is given; add policy: %s", owners[0])
				}
				p.list.Add(finding)
			}
		})}
}

func missingLimit() rule {
	return rule{code: "QT421", title: "a window without its limit",
		doc: "message_window needs max_messages and token_window needs max_tokens: nobody can guess how much a window should hold.",
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
				if _, written := m.Place().Lookup(l.Key); !written { // the loader reports one that is not a number
					p.list.Add(p.reportAt(placeOf(m, "policy", "id"), "the policy %s of memory %q needs %s", m.Policy, m.ID, l.Key).
						WithHint("add %s:", l.Key))
				}
			}
		})}
}

func pinnedTooLong() rule {
	return rule{code: "QT422", title: "pinned text that the memory cannot hold",
		doc: "Context blocks share what token_limit × chat_history_token_ratio leaves of token_limit, and a block of priority 0 is never cut. " +
			"Pinned texts that are larger than that share alone could never be sent.",
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
				// A token is at least one byte, so most texts need no counting.
				if texts++; float64(size) <= share || float64(tokens) <= share {
					continue
				}
				what := "the pinned text has"
				if texts > 1 {
					what = fmt.Sprintf("the first %d pinned texts have", texts)
				}
				p.list.Add(p.reportAt(placeOf(pinned, "text"), "%s %d tokens, but the context of memory %q may hold only %.0f", what, tokens, m.ID, share).
					WithRelated(placeOf(m, "token_limit", "id"), fmt.Sprintf("token_limit is %d, and %g of it is for messages", m.TokenLimit, m.ChatHistoryTokenRatio)))
				return
			}
		})}
}

// pinnedTokens counts a text, unless it is so small beside the share that it
// does not matter: then it is as many as its bytes, at most.
func pinnedTokens(encoding, text string, share float64) int {
	if float64(len(text))*100 <= share {
		return len(text)
	}
	return countTokens(encoding, text)
}

// countTokens counts with the encoding that the document names, else with that of current models.
func countTokens(encoding, text string) int {
	if encoding == "" {
		encoding = tokenizer.O200k
	}
	enc, err := tokenizer.For(encoding)
	if err != nil {
		return 0 // told by the loader
	}
	return enc.Count(text)
}
