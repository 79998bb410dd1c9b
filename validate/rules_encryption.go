package validate

import (
	"encoding/base64"
	"encoding/hex"
	"strings"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/source"
)

// encryptionRules are about stores that are sealed.
func encryptionRules() []rule { return []rule{malformedKey(), encryptedProcess()} }

// aesKeySize is that of AES-256, in bytes.
const aesKeySize = 32

func malformedKey() rule {
	return rule{code: "QT450", title: "an encryption key that is none",
		doc: "A key is 32 random bytes in base64, as `openssl rand -base64 32` writes them, or 64 hexadecimal digits. A password or a sentence is not a key: it can be guessed.",
		sample: sample{text: `
id: example
stores:
  - {id: chats, type: sqlite, url: chats.db, encryption: {key: "⟦${CHATS_KEY:-correct horse battery staple}│${CHATS_KEY:-}⟧"}}
`},
		check: on(func(p *ruleContext, s *spec.Store) {
			e := s.Encryption
			if e == nil {
				return
			}
			p.keyForm(s, placeOf(e, "key"), "the encryption key", e.Key)
			for i, k := range e.OldKeys {
				p.keyForm(s, e.Place().Field("old_keys").Index(i).Span(), "an old encryption key", k)
			}
		})}
}

// keyForm reports a key whose text is known and is none. What it is instead is
// never told.
func (p *ruleContext) keyForm(s *spec.Store, at source.Span, what string, key spec.Secret) {
	text := strings.TrimSpace(key.Reveal())
	if key.Ref != nil || text == "" || strings.Contains(text, "${") || aesKey(text) {
		return // nothing is known before the run, or all is well
	}
	p.list.Add(p.reportAt(at, "%s of store %q is not 32 bytes in base64", what, s.ID).
		WithHint("make one with openssl rand -base64 32"))
}

// aesKey tells whether a text is a key in one of the forms that runs take.
func aesKey(text string) bool {
	if raw, err := hex.DecodeString(text); err == nil && len(raw) == aesKeySize {
		return true
	}
	text = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(text, "="))
	raw, err := base64.RawStdEncoding.Strict().DecodeString(text)
	return err == nil && len(raw) == aesKeySize
}

func encryptedProcess() rule {
	return rule{code: "QT451", title: "encryption of a store that writes nothing",
		doc: "A store of type memory lives in the process and is gone with it: nothing is written that encryption could protect.",
		sample: sample{text: `
id: example
stores:
  - {id: chats, type: memory⟦, encryption: {key: "${CHATS_KEY:-}"}│⟧}
`},
		check: on(func(p *ruleContext, s *spec.Store) {
			if s.Type == "memory" && s.Encryption != nil {
				p.report(fieldKey(s, "encryption"), "the store %q lives in the process, so its encryption would have no effect", s.ID)
			}
		})}
}
