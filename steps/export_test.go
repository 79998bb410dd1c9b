package steps

import "github.com/qtype-dev/qtype/spec/chat"

// FactSchema is the form of the answer of a model that extracts facts.
const FactSchema = factSchema

// DigestParts returns what the key of a turn has of a message.
func DigestParts(m *chat.Message) []byte { return appendDigestParts(nil, m) }
