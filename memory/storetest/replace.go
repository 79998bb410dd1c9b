package storetest

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// replacer returns the store as a store.Replacer. Stores that are none skip the test.
func replacer(t *testing.T, s store.Store) store.Replacer {
	t.Helper()
	r, ok := s.(store.Replacer)
	if !ok {
		t.Skip("the store does not implement store.Replacer")
	}
	return r
}

// replace checks that a replacement changes what it names and nothing else, as a whole.
func replace(t *testing.T, s store.Store) {
	r := replacer(t, s)
	key, other := store.Key{Memory: "m", Session: "s"}, store.Key{Memory: "m", Session: "t"}
	testkit.Must(t, s.Apply(t.Context(), key, sample()))
	testkit.Must(t, s.Apply(t.Context(), other, sample()))
	want, untouched := dump(t, s, key), dump(t, s, other)
	message := func(id string) chat.Message {
		return chat.Message{ID: id, Role: chat.User, Blocks: []chat.Block{{Type: "bytes", Data: []byte{0, 1, 255}, MimeType: store.EncryptedType}}}
	}
	event := want.Events[1]
	event.Reason = "another reason"
	for name, bad := range map[string]store.Replacement{
		"an older version": {Version: 40, Next: 42, Messages: map[int64]chat.Message{2: message("b")}},
		"version 0":        {Next: 42, Values: map[string][]byte{"summary": []byte("new")}},
		"no such message":  {Version: 41, Next: 42, Messages: map[int64]chat.Message{2: message("b"), 5: message("e")}, Values: map[string][]byte{"summary": nil}},
		"no such event":    {Version: 41, Next: 42, Messages: map[int64]chat.Message{2: message("b")}, Events: map[int64]store.Event{2: event}},
	} {
		err := r.Replace(t.Context(), key, bad)
		if conflict := bad.Version != 41; err == nil || conflict != errors.Is(err, store.ErrConflict) {
			t.Errorf("%s: %v", name, err)
		}
		if d := cmp.Diff(want, dump(t, s, key)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	if err := r.Replace(t.Context(), store.Key{Memory: "m", Session: "unknown"}, store.Replacement{Version: 41, Next: 42}); !errors.Is(err, store.ErrConflict) {
		t.Errorf("an unknown session: %v", err)
	}
	testkit.Must(t, r.Replace(t.Context(), key, store.Replacement{Version: 41, Next: 41, Messages: map[int64]chat.Message{2: message("b"), 4: message("d")}}))
	testkit.Must(t, r.Replace(t.Context(), key, store.Replacement{Version: 41, Next: 42, Messages: map[int64]chat.Message{3: message("c")},
		Events: map[int64]store.Event{1: event}, Values: map[string][]byte{"summary": []byte("new"), "empty": nil, "seal": {1}}}))
	want.Head.Version, want.Head.Values = 42, map[string][]byte{"summary": []byte("new"), "seal": {1}}
	want.Entries[1].Message, want.Entries[2].Message, want.Entries[3].Message = message("b"), message("c"), message("d")
	want.Events[1] = event
	if d := cmp.Diff(want, dump(t, s, key)); d != "" {
		t.Errorf("after the replacement: %s", d)
	}
	if d := cmp.Diff(want.Entries[1:2], entries(t, s, key, store.Query{IDs: []string{"b"}, Live: true})); d != "" {
		t.Errorf("found by id: %s", d)
	}
	if d := cmp.Diff(untouched, dump(t, s, other)); d != "" {
		t.Errorf("another session: %s", d)
	}
	if d, ok := s.(store.Deduplicator); ok && d.Distinct() {
		c := store.Change{Version: 42, Next: 43, State: store.State{Last: 5}, Entries: []*store.Entry{{Seq: 5, Message: chat.Message{ID: "b", Role: chat.User}}}}
		if err := s.Apply(t.Context(), key, c); !errors.Is(err, store.ErrDuplicateMessage) {
			t.Errorf("a message with the id of one that was replaced: %v", err)
		}
	}
}

// replaceWithWriters checks that replacements and concurrent writers lose nothing.
func replaceWithWriters(t *testing.T, s store.Store) {
	r := replacer(t, s)
	key := store.Key{Memory: "m", Session: "s"}
	const writers, each = 4, 25
	var working atomic.Int64
	working.Store(writers)
	inParallel(writers+1, func(worker int) {
		if worker < writers {
			defer working.Add(-1)
			for i := range each {
				update(t, s, key, func(head store.Head) error {
					return s.Apply(t.Context(), key, add(head, fmt.Sprint(worker, "-", i)))
				})
			}
			return
		}
		for n := 1; working.Load() > 0; n++ {
			update(t, s, key, func(head store.Head) error {
				if head.Version == 0 {
					return nil
				}
				change := store.Replacement{Version: head.Version, Next: head.Version, Messages: map[int64]chat.Message{}}
				for _, e := range entries(t, s, key, store.Query{To: head.State.Last}) {
					m := e.Message
					m.Name = "replaced"
					change.Messages[e.Seq] = m
				}
				if n%2 == 0 {
					change.Next, change.Values = store.NextVersion(head.Version), map[string][]byte{"round": fmt.Append(nil, n)}
				}
				return r.Replace(t.Context(), key, change)
			})
		}
	})
	checkSerial(t, s, key, writers, each)
}

// update calls do with the head of a session until it does not conflict.
func update(t *testing.T, s store.Store, key store.Key, do func(store.Head) error) {
	for {
		head, err := s.Head(t.Context(), key)
		if err == nil {
			err = do(head)
		}
		if errors.Is(err, store.ErrConflict) {
			continue
		}
		if err != nil {
			t.Error(err)
		}
		return
	}
}

// replaceOld checks that records of an earlier version can be replaced, and that the
// session goes on.
func replaceOld(t *testing.T, s store.Store, key store.Key) {
	t.Helper()
	defer func() { testkit.Must(t, s.Close()) }()
	r := replacer(t, s)
	want := old()
	want.Entries[1].Message = chat.Message{ID: "b", Role: chat.User, Name: "replaced"}
	want.Head.Values["system"] = []byte("Be brief.")
	change := store.Replacement{Version: want.Head.Version, Next: want.Head.Version + 1,
		Messages: map[int64]chat.Message{2: want.Entries[1].Message}, Values: map[string][]byte{"system": []byte("Be brief.")}}
	want.Head.Version++
	testkit.Must(t, r.Replace(t.Context(), key, change))
	if d := cmp.Diff(want, dump(t, s, key)); d != "" {
		t.Errorf("after the replacement: %s", d)
	}
	if err := r.Replace(t.Context(), key, change); !errors.Is(err, store.ErrConflict) {
		t.Errorf("the same replacement again: %v", err)
	}
	testkit.Must(t, s.Apply(t.Context(), key, add(want.Head, "more")))
	if got := entries(t, s, key, store.Query{From: 4}); len(got) != 1 || got[0].Message.Text() != "more" {
		t.Errorf("a message added later: %v", got)
	}
}
