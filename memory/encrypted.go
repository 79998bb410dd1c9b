package memory

import "fmt"

// EncryptedType is the media type of what a store that encrypts (package sealed)
// puts in the place of a message.
const EncryptedType = "application/vnd.qtype.sealed"

// EncryptedError says that the store was used with encryption, and is used
// without it: what is there cannot be read, and what would be said would stand
// there for anybody to read.
type EncryptedError struct {
	Memory  string // the memory's id
	Session string // the conversation
}

// Error says what is missing.
func (e *EncryptedError) Error() string {
	return fmt.Sprintf("memory %s, session %q: what the store holds is encrypted; it needs the store's encryption with its key", e.Memory, e.Session)
}

// checkDecrypted is an *EncryptedError for an entry that a store without a key handed on.
func (m *Memory) checkDecrypted(key Key, e *Entry) error {
	if b := e.Message.Blocks; len(b) == 1 && b[0].MimeType == EncryptedType {
		return &EncryptedError{Memory: m.id, Session: key.Session}
	}
	return nil
}
