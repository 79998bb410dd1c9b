package validate

import (
	"encoding/base64"
	"encoding/hex"
	"strings"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/source"
)

// encryptionRules returns the rules of encrypted stores.
func encryptionRules() []rule { return []rule{malformedKey(), encryptedMemoryStore()} }

// aesKeySize is the size of an AES-256 key, in bytes.
const aesKeySize = 32

func malformedKey() rule {
	return rule{code: "QT450", title: "invalid encryption key",
		doc: "A key is 32 random bytes in base64, as printed by `openssl rand -base64 32`, or 64 hexadecimal digits. Do not use a password or a phrase: it can be guessed.",
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
	return rule{code: "QT451", title: "encryption of an in-memory store",
		doc: "A store of type memory writes nothing to disk, so there is nothing to encrypt.",
		sample: sample{text: `
id: example
stores:
  - {id: chats, type: memory⟦, encryption: {key: "${CHATS_KEY:-}"}│⟧}
`},
		check: on(func(p *ruleContext, s *spec.Store) {
			if s.Type == "memory" && s.Encryption != nil {
				p.report(fieldKey(s, "encryption"), "the store %q is kept in memory, so its encryption has no effect", s.ID)
			}
		})}
}
