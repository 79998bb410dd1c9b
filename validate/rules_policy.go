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
	return rule{code: "QT420", check: on(func(p *ruleContext, m *spec.Memory) {
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
	return rule{code: "QT421", check: on(func(p *ruleContext, m *spec.Memory) {
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
	return rule{code: "QT422", check: on(func(p *ruleContext, m *spec.Memory) {
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
