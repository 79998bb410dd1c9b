package encrypted

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// The kinds of owners that a record can be bound to.
const (
	kindMessage = "message"
	kindReason  = "reason"
	kindValue   = "value"
	kindHead    = "head"
)

// mediaType is that of the block that holds an encrypted message.
const mediaType = store.EncryptedType

// reasonPrefix begins an encrypted reason.
const reasonPrefix = "sealed:"

// entryOwner identifies an entry in the associated data of its record.
func entryOwner(e *store.Entry) []byte {
	return lengthPrefixed(kindMessage, e.Message.ID, numbers(e.Seq, e.Turn, int64(e.Tokens), e.Time.UnixMicro()), strconv.FormatBool(e.Status == store.Failed))
}

func eventOwner(e *store.Event) []byte {
	return lengthPrefixed(kindReason, string(e.Kind), numbers(e.Turn, e.From, e.To, e.Time.UnixMicro()))
}

func numbers(all ...int64) string {
	return strings.Trim(fmt.Sprint(all), "[]")
}

// encryptChange returns the change for the inner store.
func (sc *sessionCipher) encryptChange(c store.Change) (store.Change, error) {
	out := c
	out.Entries = make([]*store.Entry, len(c.Entries))
	out.Events = make([]store.Event, len(c.Events))
	var err error
	for i, e := range c.Entries {
		if out.Entries[i], err = sc.encryptEntry(e); err != nil {
			return c, err
		}
	}
	for i, e := range c.Events {
		if out.Events[i], err = sc.encryptEvent(e); err != nil {
			return c, err
		}
	}
	out.Values, err = sc.encryptValues(c.Values)
	return out, err
}

// encryptEntry returns an entry whose message has only its id and the record. The
// role is part of the record; the message's is always user.
func (sc *sessionCipher) encryptEntry(e *store.Entry) (*store.Entry, error) {
	plain, err := e.Message.MarshalJSON()
	if err != nil {
		return nil, err
	}
	record, err := sc.encrypt(plain, entryOwner(e))
	if err != nil {
		return nil, err
	}
	out := *e
	out.Message = chat.Message{ID: e.Message.ID, Role: chat.User, Blocks: []chat.Block{{Type: "bytes", MimeType: mediaType, Data: record}}}
	return &out, nil
}

// recordOf returns the record of an encrypted entry, nil if it is not encrypted.
func recordOf(e *store.Entry) []byte {
	if blocks := e.Message.Blocks; len(blocks) == 1 && blocks[0].MimeType == mediaType {
		return blocks[0].Data
	}
	return nil
}

// openEntry is an entry as it was before it was out.
func (sc *sessionCipher) decryptEntry(e *store.Entry) (*store.Entry, error) {
	record := recordOf(e)
	if sc.store.allowUnencrypted && formatOf(record) == 0 {
		return e, nil
	}
	part := messagePart(e.Seq)
	plain, err := sc.decrypt(record, entryOwner(e), part)
	if err != nil {
		return nil, err
	}
	out := *e
	if err := json.Unmarshal(plain, &out.Message); err != nil {
		return nil, sc.error(store.Corrupt, part, "cannot read it: "+err.Error())
	}
	return &out, nil
}

// encryptEvent encrypts an event's reason, which may quote messages.
func (sc *sessionCipher) encryptEvent(e store.Event) (store.Event, error) {
	if e.Reason == "" {
		return e, nil
	}
	record, err := sc.encrypt([]byte(e.Reason), eventOwner(&e))
	e.Reason = reasonPrefix + base64.StdEncoding.EncodeToString(record)
	return e, err
}

func (sc *sessionCipher) decryptEvent(e store.Event) (store.Event, error) {
	text, encrypted := strings.CutPrefix(e.Reason, reasonPrefix)
	if e.Reason == "" || sc.store.allowUnencrypted && !encrypted {
		return e, nil
	}
	plain, err := sc.decrypt(decodeRecord(text), eventOwner(&e), fmt.Sprint("event of turn ", e.Turn))
	e.Reason = string(plain)
	return e, err
}

// decodeRecord decodes base64. It returns nil if text is malformed.
func decodeRecord(text string) []byte {
	record, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil
	}
	return record
}

// encryptValues never returns nil: the caller adds the head's seal.
func (sc *sessionCipher) encryptValues(values map[string][]byte) (map[string][]byte, error) {
	out := make(map[string][]byte, len(values)+1)
	for name, value := range values {
		if value == nil {
			out[name] = nil
			continue
		}
		record, err := sc.encrypt(value, lengthPrefixed(kindValue, name))
		if err != nil {
			return nil, err
		}
		out[name] = record
	}
	return out, nil
}

// openValue is a named value as it was before it was out.
func (sc *sessionCipher) decryptValue(name string, record []byte) ([]byte, error) {
	if sc.store.allowUnencrypted && formatOf(record) == 0 {
		return record, nil
	}
	return sc.decrypt(record, lengthPrefixed(kindValue, name), valuePart(name))
}

func valuePart(name string) string { return "value " + strconv.Quote(name) }

func messagePart(seq int64) string { return fmt.Sprint("message ", seq) }
