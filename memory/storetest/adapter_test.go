package storetest_test

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"maps"
	"net/url"
	"slices"
	"sync"
	"testing"

	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/memory/storetest"
	"github.com/qtype-dev/qtype/spec/chat"
)

// messageStore is the kind of store that other systems have: three operations on
// whole conversations (LangChain4j's ChatMemoryStore).
type messageStore interface {
	Messages(id string) ([]chat.Message, error)
	Update(id string, messages []chat.Message) error
	Delete(id string) error
}

// adapted makes a store.Store of a messageStore, for one process: read, change
// and replace is safe under a lock only. The first message of a conversation
// carries what has no place in the others; a memory's list of sessions is a
// conversation too. Each append rewrites the whole conversation.
type adapted struct {
	mu  sync.Mutex
	old messageStore
}

// record is what a session is besides its messages.
type record struct {
	Head    store.Head
	Entries []store.Entry // without their messages
	Events  []store.Event
}

func id(key store.Key) string {
	return url.QueryEscape(key.Memory) + "/" + url.QueryEscape(key.Session)
}

func (a *adapted) load(ctx context.Context, key store.Key) (r record, err error) {
	messages, err := a.old.Messages(id(key))
	if err != nil || ctx.Err() != nil || len(messages) == 0 {
		return r, cmp.Or(ctx.Err(), err)
	}
	err = json.Unmarshal([]byte(messages[0].Text()), &r)
	for i := range r.Entries {
		r.Entries[i].Message = messages[i+1]
	}
	return r, err
}

func (a *adapted) save(key store.Key, r record) error {
	messages := make([]chat.Message, 1, len(r.Entries)+1)
	for i := range r.Entries {
		messages = append(messages, r.Entries[i].Message)
		r.Entries[i].Message = chat.Message{Role: chat.User}
	}
	raw, err := json.Marshal(r)
	messages[0] = chat.Text(chat.System, string(raw))
	return cmp.Or(err, a.old.Update(id(key), messages))
}

func (a *adapted) Apply(ctx context.Context, key store.Key, c store.Change) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	r, err := a.load(ctx, key)
	if err != nil {
		return err
	}
	if r.Head.Version != c.Version {
		return store.ErrConflict
	}
	r.Head.Version, r.Head.State = c.Next, c.State
	if r.Head.Values == nil && len(c.Values) > 0 {
		r.Head.Values = map[string][]byte{}
	}
	maps.Copy(r.Head.Values, c.Values)
	maps.DeleteFunc(r.Head.Values, func(_ string, v []byte) bool { return v == nil })
	for _, e := range c.Entries {
		r.Entries = append(r.Entries, *e)
	}
	r.Events = append(r.Events, c.Events...)
	if c.Version == 0 {
		listed, err := a.old.Messages(url.QueryEscape(key.Memory))
		if err := cmp.Or(err, a.old.Update(url.QueryEscape(key.Memory), append(listed, chat.Text(chat.User, id(key))))); err != nil {
			return err
		}
	}
	return a.save(key, r)
}

func (a *adapted) Head(ctx context.Context, key store.Key) (store.Head, error) {
	r, err := a.read(ctx, key)
	return r.Head, err
}

func (a *adapted) read(ctx context.Context, key store.Key) (record, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.load(ctx, key)
}

func (a *adapted) Entries(ctx context.Context, key store.Key, q store.Query) iter.Seq2[*store.Entry, error] {
	return func(yield func(*store.Entry, error) bool) {
		r, err := a.read(ctx, key)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, e := range r.Entries {
			wanted := e.Seq >= q.From && (q.To == 0 || e.Seq <= q.To) && !(q.Live && e.Status == store.Failed) &&
				(q.IDs == nil || slices.Contains(q.IDs, e.Message.ID))
			if wanted && !yield(&e, nil) {
				return
			}
		}
	}
}

func (a *adapted) Events(ctx context.Context, key store.Key) iter.Seq2[store.Event, error] {
	return func(yield func(store.Event, error) bool) {
		r, err := a.read(ctx, key)
		if err != nil {
			yield(store.Event{}, err)
		}
		for _, e := range r.Events {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func (a *adapted) Sessions(ctx context.Context, mem string) iter.Seq2[store.SessionHead, error] {
	return func(yield func(store.SessionHead, error) bool) {
		a.mu.Lock()
		listed, err := a.old.Messages(url.QueryEscape(mem))
		a.mu.Unlock()
		var sessions []string
		for _, m := range listed {
			session, bad := url.QueryUnescape(m.Text()[len(url.QueryEscape(mem))+1:])
			sessions, err = append(sessions, session), cmp.Or(err, bad)
		}
		if err != nil {
			yield(store.SessionHead{}, err)
			return
		}
		slices.Sort(sessions)
		for _, session := range sessions {
			head, err := a.Head(ctx, store.Key{Memory: mem, Session: session})
			head.Values = nil
			if !yield(store.SessionHead{Session: session, Head: head}, err) {
				return
			}
		}
	}
}

func (a *adapted) Delete(ctx context.Context, key store.Key) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	listed, err := a.old.Messages(url.QueryEscape(key.Memory))
	if err := cmp.Or(ctx.Err(), err); err != nil {
		return err
	}
	listed = slices.DeleteFunc(listed, func(m chat.Message) bool { return m.Text() == id(key) })
	return cmp.Or(a.old.Update(url.QueryEscape(key.Memory), listed), a.old.Delete(id(key)))
}

func (a *adapted) Close() error { return nil }

// oldStore is a messageStore as simple as they come.
type oldStore map[string][]chat.Message

func (s oldStore) Messages(id string) ([]chat.Message, error) { return slices.Clone(s[id]), nil }
func (s oldStore) Update(id string, messages []chat.Message) error {
	s[id] = messages
	return nil
}
func (s oldStore) Delete(id string) error { delete(s, id); return nil }

// TestAdapted: a store of three operations keeps the contract, within one process.
func TestAdapted(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.Store { return &adapted{old: oldStore{}} })
}
