package encrypted

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/qtype-dev/qtype/memory"
)

const (
	keySize   = 32 // bytes: AES-256
	idSize    = 4  // bytes of a key's id
	nonceSize = 12 // bytes, random for each record
)

// Key is one secret key. It prints as its id, which tells nothing of it.
type Key struct {
	id     [idSize]byte
	secret [keySize]byte
}

// errKey never repeats what was given.
var errKey = errors.New("an encryption key is 32 random bytes in base64, as `openssl rand -base64 32` writes them, or 64 hexadecimal digits")

// ParseKey reads a key: 32 bytes in base64 (either alphabet, with or without
// padding) or 64 hexadecimal digits. White space around it does not matter.
func ParseKey(text string) (Key, error) {
	text = strings.TrimSpace(text)
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != keySize {
		text = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(text, "="))
		raw, err = base64.RawStdEncoding.Strict().DecodeString(text)
	}
	if err != nil || len(raw) != keySize {
		return Key{}, errKey
	}
	k := Key{secret: [keySize]byte(raw)}
	mac := hmac.New(sha256.New, raw)
	mac.Write([]byte("qtype key id"))
	copy(k.id[:], mac.Sum(nil))
	return k, nil
}

// ID is what sealed records name the key by: eight digits that follow from it
// and do not give it away.
func (k Key) ID() string { return hex.EncodeToString(k.id[:]) }

// String is the id.
func (k Key) String() string { return "key " + k.ID() }

// GoString is the id.
func (k Key) GoString() string { return k.String() }

// Format is the id under every verb.
func (k Key) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(k.String())) }

// A sealed record is the mark, the id of the key, a nonce, and what AES-256-GCM
// makes of the text under a key derived for the session. The mark begins with
// zero, as no text and no JSON does, and ends with the format: what the text
// belongs to is bound alone in the first one, together with the mark since then,
// so that a record cannot pass for an older one.
var recordMagic = [3]byte{0, 'q', 's'}

// The formats of records.
const (
	formatAlone   = 1 // of sessions whose head is not sealed
	formatCounted = 2 // of sessions whose head has a seal, which counts them
)

const (
	markSize   = len(recordMagic) + 1 // the format included
	headerSize = markSize + idSize + nonceSize
)

// sessionCipher seals and opens the records of one session.
type sessionCipher struct {
	store   *Store
	session memory.Key
	ciphers []cipher.AEAD // beside store.keys, as far as they were needed
}

func (s *Store) box(session memory.Key) *sessionCipher {
	return &sessionCipher{store: s, session: session, ciphers: make([]cipher.AEAD, len(s.keys))}
}

// cipher is that of key i for this session. Each session has a key of its own,
// so random nonces do for 2^32 records of each, and no record is of use in another.
func (b *sessionCipher) cipher(i int) (cipher.AEAD, error) {
	if b.ciphers[i] != nil {
		return b.ciphers[i], nil
	}
	info := lengthPrefixed("qtype session", b.session.Memory, b.session.Session)
	key, err := hkdf.Key(sha256.New, b.store.keys[i].secret[:], nil, string(info), keySize)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	b.ciphers[i], err = cipher.NewGCM(block)
	return b.ciphers[i], err
}

// lengthPrefixed writes texts such that no two lists of texts come to the same.
func lengthPrefixed(texts ...string) []byte {
	var to []byte
	for _, t := range texts {
		to = binary.AppendUvarint(to, uint64(len(t)))
		to = append(to, t...)
	}
	return to
}

// seal seals plain; about is what it belongs to, and must be the same when it is opened.
func (b *sessionCipher) seal(plain, about []byte) ([]byte, error) {
	aead, err := b.cipher(0)
	if err != nil {
		return nil, err
	}
	out := make([]byte, headerSize, headerSize+len(plain)+aead.Overhead())
	copy(out, recordMagic[:])
	out[len(recordMagic)] = formatCounted
	copy(out[markSize:], b.store.keys[0].id[:])
	nonce := out[headerSize-nonceSize : headerSize]
	if _, err := rand.Read(nonce); err != nil {
		return nil, err
	}
	return aead.Seal(out, nonce, plain, associatedData(out, about)), nil
}

// associatedData is what a record is bound to: about, and since formatCounted its mark.
func associatedData(record, about []byte) []byte {
	if format(record) == formatAlone {
		return about
	}
	return append(record[:markSize:markSize], about...)
}

// format is that of a sealed record, 0 for anything else.
func format(record []byte) byte {
	if len(record) < headerSize || [len(recordMagic)]byte(record) != recordMagic {
		return 0
	}
	return record[len(recordMagic)]
}

// open is what seal was given. What names the record in an error.
func (b *sessionCipher) open(record, about []byte, what string) ([]byte, error) {
	switch f := format(record); {
	case f == 0:
		return nil, b.keyError(memory.Corrupt, what, "it is not encrypted, or was changed; allow_unencrypted lets what was stored before the encryption be read")
	case f > formatCounted:
		return nil, b.keyError(memory.TooNew, what, fmt.Sprintf("a newer version of qtype encrypted it (format %d, this one knows %d)", f, formatCounted))
	}
	id := [idSize]byte(record[markSize:])
	for i, k := range b.store.keys {
		if k.id != id {
			continue
		}
		aead, err := b.cipher(i)
		if err != nil {
			return nil, err
		}
		plain, err := aead.Open([]byte{}, record[headerSize-nonceSize:headerSize], record[headerSize:], associatedData(record, about))
		if err != nil {
			return nil, b.keyError(memory.Corrupt, what, "it was changed after it was encrypted, or moved here from elsewhere")
		}
		return plain, nil
	}
	var given []string
	for _, k := range b.store.keys {
		given = append(given, k.ID())
	}
	return nil, b.keyError(memory.WrongKey, what, fmt.Sprintf("it was encrypted with the key %x, which is none of those given (%s)", id, strings.Join(given, ", ")))
}

func (b *sessionCipher) keyError(problem memory.ErrorKind, what, message string) error {
	return &memory.StoreError{Place: b.store.place, Problem: problem,
		Message: fmt.Sprintf("session %q, %s: %s", b.session.Session, what, message)}
}
