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

	"github.com/qtype-dev/qtype/memory/store"
)

const (
	keySize   = 32 // bytes: AES-256
	idSize    = 4  // bytes of a key's id
	nonceSize = 12 // bytes, random for each record
)

// Key is a secret key. It prints as its id.
type Key struct {
	id     [idSize]byte
	secret [keySize]byte
}

// errKey does not repeat the input.
var errKey = errors.New("invalid key: use 32 random bytes in base64, for example from `openssl rand -base64 32`, or 64 hexadecimal digits")

// ParseKeys reads keys, one on each line that is not empty. There must be one.
func ParseKeys(text string) ([]Key, error) {
	var keys []Key
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		key, err := ParseKey(line)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, errors.New("there is no key")
	}
	return keys, nil
}

// ParseKey reads a key: 32 bytes in base64 (either alphabet, with or without
// padding) or 64 hexadecimal digits, with optional white space around it.
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

// ID returns the id of the key in encrypted records: eight hexadecimal digits,
// derived from the key, that do not reveal it.
func (k Key) ID() string { return hex.EncodeToString(k.id[:]) }

// String returns the id.
func (k Key) String() string { return "key " + k.ID() }

// GoString returns the id.
func (k Key) GoString() string { return k.String() }

// Format writes the id for every verb.
func (k Key) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(k.String())) }

// An encrypted record is recordMagic, the format, the id of the key, a nonce, and
// the output of AES-256-GCM with a key derived for the session. The magic begins
// with a zero byte, so no text or JSON is mistaken for a record. The associated
// data of formatUnsealed is what the record belongs to; formatSealed adds the
// magic and the format, so that a record cannot be passed off as an older one.
const recordMagic = "\x00qs"

// Formats of records.
const (
	formatUnsealed = 1 // of sessions whose head has no seal
	formatSealed   = 2 // of sessions whose head has a seal, which counts them
)

const (
	prefixSize = len(recordMagic) + 1 // with the format
	headerSize = prefixSize + idSize + nonceSize
)

// sessionCipher encrypts and decrypts the records of one session.
type sessionCipher struct {
	store   *Store
	session store.Key
	ciphers []cipher.AEAD // of store.keys; nil until needed
}

func (s *Store) cipherFor(session store.Key) *sessionCipher {
	return &sessionCipher{store: s, session: session, ciphers: make([]cipher.AEAD, len(s.keys))}
}

// cipher returns the cipher of key i. Each session has a derived key, so that
// random nonces suffice for 2^32 records of a session, and no record decrypts in
// another session.
func (sc *sessionCipher) cipher(i int) (cipher.AEAD, error) {
	if sc.ciphers[i] != nil {
		return sc.ciphers[i], nil
	}
	info := lengthPrefixed("qtype session", sc.session.Memory, sc.session.Session)
	key, err := hkdf.Key(sha256.New, sc.store.keys[i].secret[:], nil, string(info), keySize)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	sc.ciphers[i], err = cipher.NewGCM(block)
	return sc.ciphers[i], err
}

// lengthPrefixed joins texts unambiguously.
func lengthPrefixed(texts ...string) []byte {
	var to []byte
	for _, t := range texts {
		to = binary.AppendUvarint(to, uint64(len(t)))
		to = append(to, t...)
	}
	return to
}

// encrypt returns the record of plain. open needs the same owner.
func (sc *sessionCipher) encrypt(plain, owner []byte) ([]byte, error) {
	aead, err := sc.cipher(0)
	if err != nil {
		return nil, err
	}
	out := make([]byte, headerSize, headerSize+len(plain)+aead.Overhead())
	copy(out, recordMagic)
	out[len(recordMagic)] = formatSealed
	copy(out[prefixSize:], sc.store.keys[0].id[:])
	nonce := out[headerSize-nonceSize : headerSize]
	if _, err := rand.Read(nonce); err != nil {
		return nil, err
	}
	return aead.Seal(out, nonce, plain, associatedData(out, owner)), nil
}

// associatedData returns what a record is bound to: its owner and, since
// formatSealed, its prefix.
func associatedData(record, owner []byte) []byte {
	if formatOf(record) == formatUnsealed {
		return owner
	}
	return append(record[:prefixSize:prefixSize], owner...)
}

// formatOf returns the format of an encrypted record, 0 for anything else.
func formatOf(record []byte) byte {
	if len(record) < headerSize || string(record[:len(recordMagic)]) != recordMagic {
		return 0
	}
	return record[len(recordMagic)]
}

// decrypt is the inverse of encrypt. part names the record in errors.
func (sc *sessionCipher) decrypt(record, owner []byte, part string) ([]byte, error) {
	switch f := formatOf(record); {
	case f == 0:
		return nil, sc.error(store.Corrupt, part, "not encrypted, or modified; set allow_unencrypted to read data that was stored without encryption")
	case f > formatSealed:
		return nil, sc.error(store.TooNew, part, fmt.Sprintf("encrypted by a newer version of qtype (format %d, this version supports up to %d)", f, formatSealed))
	}
	id := [idSize]byte(record[prefixSize:])
	for i, k := range sc.store.keys {
		if k.id != id {
			continue
		}
		aead, err := sc.cipher(i)
		if err != nil {
			return nil, err
		}
		plain, err := aead.Open([]byte{}, record[headerSize-nonceSize:headerSize], record[headerSize:], associatedData(record, owner))
		if err != nil {
			return nil, sc.error(store.Corrupt, part, "modified after encryption, or moved from another place")
		}
		return plain, nil
	}
	var given []string
	for _, k := range sc.store.keys {
		given = append(given, k.ID())
	}
	return nil, sc.error(store.WrongKey, part, fmt.Sprintf("encrypted with key %x, which is not among the given keys (%s)", id, strings.Join(given, ", ")))
}

// error returns an error about a part of the session.
func (sc *sessionCipher) error(kind store.ErrorKind, part, message string) error {
	return sc.store.location.Error(kind, fmt.Sprintf("session %q, %s: %s", sc.session.Session, part, message), nil)
}

// Derive returns a key of 32 bytes for another purpose than a store. Different purposes and
// salts have different keys, none of which reveals k.
func (k Key) Derive(purpose string, salt []byte) ([]byte, error) {
	return hkdf.Key(sha256.New, k.secret[:], salt, string(lengthPrefixed("qtype "+purpose)), keySize)
}
