// Package sealed encrypts what a store keeps, whichever store it is: texts,
// media, names and roles of messages, tool calls with their arguments, the
// reasons of events and named values are sealed with AES-256-GCM before the
// store sees them. Who reads the store's files sees ids of memories, sessions,
// messages and keys, names of named values, and numbers: places, turns, tokens,
// times.
//
// A record is bound to its memory, its session and its place there, and a
// message to its tokens, time and status as well: one that was changed, or put
// in another's place, is an error. What is lost from the end, and a whole store
// put back to an earlier day, no cipher can tell.
package sealed

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/chat"
	"github.com/qtype-dev/qtype/memory"
)

// Keys are what a store is sealed with.
type Keys struct {
	Key        Key   // seals all that is said from now on
	Old        []Key // open what was sealed before
	AllowPlain bool  // what is not sealed is read as it is; else it is an error
}

// Names tells keys apart without giving them away.
func (k Keys) Names() string {
	return fmt.Sprint(k.Key.ID(), k.Old, k.AllowPlain)
}

// Store is a memory.Store that keeps what it is told, sealed, in another one.
// It is safe for concurrent use.
type Store struct {
	inner memory.Store
	place string
	keys  []Key // the first one seals
	plain bool
}

// New seals what goes into a store; place names it in errors, without credentials.
func New(inner memory.Store, place string, keys Keys) *Store {
	return &Store{inner: inner, place: place, keys: append([]Key{keys.Key}, keys.Old...), plain: keys.AllowPlain}
}

// Place is where the store keeps things, without credentials.
func (s *Store) Place() string { return s.place }

// The types of what a record is about.
const (
	aboutMessage = "message"
	aboutReason  = "reason"
	aboutValue   = "value"
)

// mediaType marks the block that holds a sealed message.
const mediaType = memory.EncryptedType

// reasonMark begins a sealed reason.
const reasonMark = "sealed:"

func aboutEntry(e *memory.Entry) []byte {
	return parts(aboutMessage, e.Message.ID, numbers(e.Seq, e.Turn, int64(e.Tokens), e.Time.UnixMicro()), strconv.FormatBool(e.Status == memory.Failed))
}

func aboutEvent(e *memory.Event) []byte {
	return parts(aboutReason, string(e.Kind), numbers(e.Turn, e.From, e.To, e.Time.UnixMicro()))
}

func numbers(all ...int64) string {
	return strings.Trim(fmt.Sprint(all), "[]")
}

// Apply seals a change and makes it.
func (s *Store) Apply(ctx context.Context, key memory.Key, c memory.Change) (err error) {
	b := s.box(key)
	sealed := c
	sealed.Entries = make([]*memory.Entry, len(c.Entries))
	for i, e := range c.Entries {
		if sealed.Entries[i], err = b.sealEntry(e); err != nil {
			return err
		}
	}
	sealed.Events = make([]memory.Event, len(c.Events))
	for i, e := range c.Events {
		if sealed.Events[i], err = b.sealEvent(e); err != nil {
			return err
		}
	}
	if sealed.Values, err = b.sealValues(c.Values); err != nil {
		return err
	}
	return s.inner.Apply(ctx, key, sealed)
}

// sealEntry is an entry whose message says nothing but its id: the role too is
// in the record, and user stands there for each.
func (b *box) sealEntry(e *memory.Entry) (*memory.Entry, error) {
	plain, err := e.Message.MarshalJSON()
	if err != nil {
		return nil, err
	}
	record, err := b.seal(plain, aboutEntry(e))
	if err != nil {
		return nil, err
	}
	out := *e
	out.Message = chat.Message{ID: e.Message.ID, Role: chat.User, Blocks: []chat.Block{{Type: "bytes", MimeType: mediaType, Data: record}}}
	return &out, nil
}

func (b *box) openEntry(e *memory.Entry) (*memory.Entry, error) {
	var record []byte
	if blocks := e.Message.Blocks; len(blocks) == 1 && blocks[0].MimeType == mediaType {
		record = blocks[0].Data
	}
	if b.store.plain && !isSealed(record) {
		return e, nil
	}
	what := fmt.Sprint("message ", e.Seq)
	plain, err := b.open(record, aboutEntry(e), what)
	if err != nil {
		return nil, err
	}
	out := *e
	if err := json.Unmarshal(plain, &out.Message); err != nil {
		return nil, b.wrong(memory.Corrupt, what, "it cannot be read: "+err.Error())
	}
	return &out, nil
}

// sealEvent seals an event's reason, which may repeat what was said.
func (b *box) sealEvent(e memory.Event) (memory.Event, error) {
	if e.Reason == "" {
		return e, nil
	}
	record, err := b.seal([]byte(e.Reason), aboutEvent(&e))
	e.Reason = reasonMark + base64.StdEncoding.EncodeToString(record)
	return e, err
}

func (b *box) openEvent(e memory.Event) (memory.Event, error) {
	text, found := strings.CutPrefix(e.Reason, reasonMark)
	if e.Reason == "" || !found && b.store.plain {
		return e, nil
	}
	record, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		record = nil
	}
	plain, err := b.open(record, aboutEvent(&e), fmt.Sprint("an event of turn ", e.Turn))
	e.Reason = string(plain)
	return e, err
}

func (b *box) sealValues(values map[string][]byte) (map[string][]byte, error) {
	if values == nil {
		return nil, nil
	}
	sealed := make(map[string][]byte, len(values))
	for name, value := range values {
		if value == nil {
			sealed[name] = nil
			continue
		}
		record, err := b.seal(value, parts(aboutValue, name))
		if err != nil {
			return nil, err
		}
		sealed[name] = record
	}
	return sealed, nil
}

// Head is where the session stands, with its values opened.
func (s *Store) Head(ctx context.Context, key memory.Key) (memory.Head, error) {
	head, err := s.inner.Head(ctx, key)
	if err != nil || head.Values == nil {
		return head, err
	}
	b := s.box(key)
	opened := make(map[string][]byte, len(head.Values))
	for name, record := range head.Values {
		if s.plain && !isSealed(record) {
			opened[name] = record
			continue
		}
		if opened[name], err = b.open(record, parts(aboutValue, name), "value "+strconv.Quote(name)); err != nil {
			return memory.Head{}, err
		}
	}
	head.Values = opened
	return head, nil
}

// Entries yields entries, opened one by one.
func (s *Store) Entries(ctx context.Context, key memory.Key, q memory.Query) iter.Seq2[*memory.Entry, error] {
	return func(yield func(*memory.Entry, error) bool) {
		b := s.box(key)
		for e, err := range s.inner.Entries(ctx, key, q) {
			if err == nil {
				e, err = b.openEntry(e)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// Events yields the session's events, opened.
func (s *Store) Events(ctx context.Context, key memory.Key) iter.Seq2[memory.Event, error] {
	return func(yield func(memory.Event, error) bool) {
		b := s.box(key)
		for e, err := range s.inner.Events(ctx, key) {
			if err == nil {
				e, err = b.openEvent(e)
			}
			if err != nil {
				yield(memory.Event{}, err)
				return
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// Delete removes everything that the session has. It needs no key.
func (s *Store) Delete(ctx context.Context, key memory.Key) error { return s.inner.Delete(ctx, key) }

// Remove is Delete for a session that still has the version. Where the store
// below cannot do that in one step, neither can this one.
func (s *Store) Remove(ctx context.Context, key memory.Key, version int64) error {
	return memory.Remove(ctx, s.inner, key, version)
}

// Distinct is that of the store below.
func (s *Store) Distinct() bool {
	d, ok := s.inner.(memory.Distinct)
	return ok && d.Distinct()
}

// Sessions yields the sessions of one memory. It needs no key.
func (s *Store) Sessions(ctx context.Context, mem string) iter.Seq2[memory.Listed, error] {
	return s.inner.Sessions(ctx, mem)
}

// Close closes the store below.
func (s *Store) Close() error { return s.inner.Close() }
