package encrypted

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec/chat"
)

// The types of what a record is about.
const (
	aboutMessage = "message"
	aboutReason  = "reason"
	aboutValue   = "value"
	aboutHead    = "head"
)

// mediaType marks the block that holds a sealed message.
const mediaType = memory.EncryptedType

// reasonMark begins a sealed reason.
const reasonMark = "sealed:"

func entryAD(e *memory.Entry) []byte {
	return lengthPrefixed(aboutMessage, e.Message.ID, numbers(e.Seq, e.Turn, int64(e.Tokens), e.Time.UnixMicro()), strconv.FormatBool(e.Status == memory.Failed))
}

func aboutEvent(e *memory.Event) []byte {
	return lengthPrefixed(aboutReason, string(e.Kind), numbers(e.Turn, e.From, e.To, e.Time.UnixMicro()))
}

func numbers(all ...int64) string {
	return strings.Trim(fmt.Sprint(all), "[]")
}

// sealChange is a change as the store below is told it.
func (b *sessionCipher) sealChange(c memory.Change) (memory.Change, error) {
	sealed := c
	sealed.Entries = make([]*memory.Entry, len(c.Entries))
	sealed.Events = make([]memory.Event, len(c.Events))
	var err error
	for i, e := range c.Entries {
		if sealed.Entries[i], err = b.sealEntry(e); err != nil {
			return c, err
		}
	}
	for i, e := range c.Events {
		if sealed.Events[i], err = b.sealEvent(e); err != nil {
			return c, err
		}
	}
	sealed.Values, err = b.sealValues(c.Values)
	return sealed, err
}

// sealEntry is an entry whose message says nothing but its id: the role too is
// in the record, and user stands there for each.
func (b *sessionCipher) sealEntry(e *memory.Entry) (*memory.Entry, error) {
	plain, err := e.Message.MarshalJSON()
	if err != nil {
		return nil, err
	}
	record, err := b.seal(plain, entryAD(e))
	if err != nil {
		return nil, err
	}
	out := *e
	out.Message = chat.Message{ID: e.Message.ID, Role: chat.User, Blocks: []chat.Block{{Type: "bytes", MimeType: mediaType, Data: record}}}
	return &out, nil
}

// recordOf is the record that an entry holds in the place of its message, nil
// where it holds none.
func recordOf(e *memory.Entry) []byte {
	if blocks := e.Message.Blocks; len(blocks) == 1 && blocks[0].MimeType == mediaType {
		return blocks[0].Data
	}
	return nil
}

// openEntry is an entry as it was before it was sealed.
func (b *sessionCipher) openEntry(e *memory.Entry) (*memory.Entry, error) {
	record := recordOf(e)
	if b.store.plain && format(record) == 0 {
		return e, nil
	}
	what := fmt.Sprint("message ", e.Seq)
	plain, err := b.open(record, entryAD(e), what)
	if err != nil {
		return nil, err
	}
	out := *e
	if err := json.Unmarshal(plain, &out.Message); err != nil {
		return nil, b.keyError(memory.Corrupt, what, "it cannot be read: "+err.Error())
	}
	return &out, nil
}

// sealEvent seals an event's reason, which may repeat what was said.
func (b *sessionCipher) sealEvent(e memory.Event) (memory.Event, error) {
	if e.Reason == "" {
		return e, nil
	}
	record, err := b.seal([]byte(e.Reason), aboutEvent(&e))
	e.Reason = reasonMark + base64.StdEncoding.EncodeToString(record)
	return e, err
}

func (b *sessionCipher) openEvent(e memory.Event) (memory.Event, error) {
	text, sealed := strings.CutPrefix(e.Reason, reasonMark)
	if e.Reason == "" || b.store.plain && !sealed {
		return e, nil
	}
	plain, err := b.open(decoded(text), aboutEvent(&e), fmt.Sprint("an event of turn ", e.Turn))
	e.Reason = string(plain)
	return e, err
}

// decoded is the record that stands in a reason, nil where none can.
func decoded(text string) []byte {
	record, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil
	}
	return record
}

// sealValues always has room for one more value, that of the head's seal.
func (b *sessionCipher) sealValues(values map[string][]byte) (map[string][]byte, error) {
	sealed := make(map[string][]byte, len(values)+1)
	for name, value := range values {
		if value == nil {
			sealed[name] = nil
			continue
		}
		record, err := b.seal(value, lengthPrefixed(aboutValue, name))
		if err != nil {
			return nil, err
		}
		sealed[name] = record
	}
	return sealed, nil
}

// openValue is a named value as it was before it was sealed.
func (b *sessionCipher) openValue(name string, record []byte) ([]byte, error) {
	if b.store.plain && format(record) == 0 {
		return record, nil
	}
	return b.open(record, lengthPrefixed(aboutValue, name), valueNamed(name))
}

func valueNamed(name string) string { return "value " + strconv.Quote(name) }
