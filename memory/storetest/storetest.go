// Package storetest has the contract of store.Store as tests. The author of a
// store calls it; docs/writing-a-store.md describes how:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) store.Store { return mystore.New() })
//	}
package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// Run checks that the stores that open returns satisfy the contract. Each call
// must return an empty store, which the suite closes. The calls are sequential.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	var opening sync.Mutex // held during a call of open
	run := func(name string, check func(*testing.T, store.Store)) {
		t.Run(name, func(t *testing.T) {
			backend := func() store.Store {
				opening.Lock()
				defer opening.Unlock() // also if open ends the test
				return open(t)
			}()
			t.Cleanup(func() {
				if err := backend.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			})
			check(t, backend)
		})
	}
	var waiting sync.WaitGroup // checks that wait for leases, while others run
	defer waiting.Wait()
	for name, check := range map[string]func(*testing.T, store.Store){
		"reject":            rejects,
		"interrupt":         interrupts,
		"queue with leases": waits,
	} {
		waiting.Go(func() { run(name, check) })
	}
	for name, check := range map[string]func(*testing.T, store.Store){
		"unknown session":  unknown,
		"whole change":     whole,
		"version conflict": conflict,
		"named values":     values,
		"queries":          queries,
		"ids":              messageIDs,
		"arbitrary keys":   keys,
		"listing":          listing,
		"pages":            pages,
		"branches":         branches,
		"delete":           remove,
		"remove":           removeUnchanged,
		"remove all":       removeAll,
		"ended context":    ended,
		"write in range":   writeInRange,
		"two writers":      twoWriters,
		"many writers":     manyWriters,
		"replace":          replace,
		"replace at once":  replaceWithWriters,
		"window":           window,
		"context":          contexts,
		"stored words":     storedWords,
	} {
		run(name, check)
	}
	for name, check := range recordChecks() {
		run(name, check)
	}
}

// RunDurable runs Run, and checks that a second store at the same place reads
// what the first one wrote. A place is an empty folder.
func RunDurable(t *testing.T, open func(t *testing.T, place string) store.Store) {
	Run(t, func(t *testing.T) store.Store { return open(t, t.TempDir()) })
	t.Run("reopen", func(t *testing.T) {
		place := t.TempDir()
		first := open(t, place)
		key := store.Key{Memory: "m", Session: "s"}
		testkit.Must(t, first.Apply(t.Context(), key, sample()))
		before := dump(t, first, key)
		testkit.Must(t, first.Close())
		second := open(t, place)
		defer func() { testkit.Must(t, second.Close()) }()
		if d := cmp.Diff(before, dump(t, second, key)); d != "" {
			t.Errorf("after a restart: %s", d)
		}
	})
}

// dumped is the content of a session.
type dumped struct {
	Head    store.Head     // version, state and values
	Entries []*store.Entry // all messages of the history
	Events  []store.Event  // all events
}

func dump(t *testing.T, s store.Store, key store.Key) dumped {
	t.Helper()
	head, err := s.Head(t.Context(), key)
	testkit.Must(t, err)
	d := dumped{Head: head, Entries: entries(t, s, key, store.Query{})}
	for e, err := range s.Events(t.Context(), key) {
		testkit.Must(t, err)
		d.Events = append(d.Events, e)
	}
	var reversed []store.Event
	for e, err := range store.EventsReversed(t.Context(), s, key) {
		testkit.Must(t, err)
		reversed = append(reversed, e)
	}
	slices.Reverse(reversed)
	if diff := cmp.Diff(d.Events, reversed); diff != "" {
		t.Errorf("the events in the other direction: %s", diff)
	}
	return d
}

func entries(t *testing.T, s store.Store, key store.Key, q store.Query) []*store.Entry {
	t.Helper()
	var out []*store.Entry
	for e, err := range s.Entries(t.Context(), key, q) {
		testkit.Must(t, err)
		out = append(out, e)
	}
	return out
}

// clock returns a time in the precision that every store must keep: microseconds, UTC.
func clock(n int) time.Time {
	return time.Date(2026, 11, 21, 4, 12, 0, 0, time.UTC).Add(time.Duration(n) * time.Microsecond)
}

// sample returns a first change that uses every field.
func sample() store.Change {
	entry := func(seq int64, status store.Status, m chat.Message) *store.Entry {
		return &store.Entry{Message: m, Seq: seq, Turn: 2, Tokens: int(seq) * 7, Time: clock(int(seq)), Status: status}
	}
	return store.Change{
		Next:  41,
		State: store.State{Last: 4, Turns: 2, First: 2, System: 1, InWindow: 2, Tokens: 35, Flushes: 1, LastSaid: clock(4)},
		Entries: []*store.Entry{
			entry(1, store.InWindow, chat.Message{ID: "a", Role: chat.System, Blocks: []chat.Block{{Type: "text", Text: "be <kind> & \"brief\" \u2028 日本 🙂"}}}),
			entry(2, store.InWindow, chat.Message{ID: "b", Role: chat.User, Name: "bo", Blocks: []chat.Block{
				{Type: "text", Text: "line\nline\x00"}, {Type: "image", Data: []byte{0, 255, 10}, MimeType: "image/png"}, {Type: "file", Data: []byte{}}}}),
			entry(3, store.InWindow, chat.Message{ID: "c", Role: chat.Assistant}.With(chat.ToolCall{ID: "1", Name: "f", Arguments: `{"a": 1}`}, chat.ToolCall{ID: "2", Name: "", Arguments: "not json"})),
			entry(4, store.Failed, chat.Message{ID: "d", Role: chat.Tool, ToolCallID: "1", Blocks: []chat.Block{{Type: "text"}}}),
		},
		Events: []store.Event{
			{Kind: store.EventFlush, Turn: 1, From: 1, To: 1, Messages: 1, Tokens: 7, Before: 9, Limit: 8, Reason: "over", Time: clock(1)},
			{Kind: store.EventFailed, Turn: 2, From: 4, To: 4, Messages: 1, Tokens: 28, Reason: "no answer", Time: clock(4)},
		},
		Values: map[string][]byte{"summary": []byte("a summary"), "empty": {}},
	}
}

func unknown(t *testing.T, s store.Store) {
	key := store.Key{Memory: "m", Session: "unknown"}
	if d := cmp.Diff(dumped{}, dump(t, s, key)); d != "" {
		t.Errorf("an unknown session has something: %s", d)
	}
	testkit.Must(t, s.Delete(t.Context(), key))
	for l, err := range s.Sessions(t.Context(), "m") {
		t.Errorf("listed %v, %v", l, err)
	}
}

func whole(t *testing.T, s store.Store) {
	key := store.Key{Memory: "m", Session: "s"}
	c := sample()
	testkit.Must(t, s.Apply(t.Context(), key, c))
	want := dumped{Head: store.Head{Version: 41, State: c.State, Values: c.Values}, Entries: c.Entries, Events: c.Events}
	if d := cmp.Diff(want, dump(t, s, key)); d != "" {
		t.Errorf("read is not what was written: %s", d)
	}
	raw, err := json.Marshal(dump(t, s, key).Head.State)
	testkit.Must(t, err)
	var back store.State
	testkit.Must(t, json.Unmarshal(raw, &back))
	if back != c.State {
		t.Errorf("the state as JSON: %s", raw)
	}
}

func conflict(t *testing.T, s store.Store) {
	key := store.Key{Memory: "m", Session: "s"}
	next := add(store.Head{}, "x")
	next.Version = 7
	if err := s.Apply(t.Context(), key, next); err == nil {
		t.Error("an unknown session was changed")
	}
	testkit.Must(t, s.Apply(t.Context(), key, sample()))
	before := dump(t, s, key)
	for _, version := range []int64{0, 40, 42} {
		c := add(before.Head, "y")
		c.Version = version
		c.Values = map[string][]byte{"summary": nil}
		if err := s.Apply(t.Context(), key, c); err == nil || !strings.Contains(err.Error(), store.ErrConflict.Error()) {
			t.Errorf("version %d: got %v, want ErrConflict", version, err)
		}
	}
	if d := cmp.Diff(before, dump(t, s, key)); d != "" {
		t.Errorf("a conflict changed something: %s", d)
	}
	testkit.Must(t, s.Apply(t.Context(), key, add(before.Head, "y")))
}

// add returns a change that adds one user message with this id and text.
func add(h store.Head, id string) store.Change {
	c := store.Change{Version: h.Version, Next: h.Version + 1, State: h.State}
	c.State.Last++
	c.State.Turns++
	c.Entries = []*store.Entry{{Message: chat.Message{ID: id, Role: chat.User, Blocks: []chat.Block{{Type: "text", Text: id}}},
		Seq: c.State.Last, Turn: c.State.Turns, Tokens: 1, Time: clock(int(c.State.Last))}}
	return c
}

func values(t *testing.T, s store.Store) {
	key := store.Key{Memory: "m", Session: "s"}
	testkit.Must(t, s.Apply(t.Context(), key, sample()))
	set := func(values map[string][]byte) map[string][]byte {
		head, err := s.Head(t.Context(), key)
		testkit.Must(t, err)
		testkit.Must(t, s.Apply(t.Context(), key, store.Change{Version: head.Version, Next: head.Version + 1, State: head.State, Values: values}))
		head, err = s.Head(t.Context(), key)
		testkit.Must(t, err)
		return head.Values
	}
	got := set(map[string][]byte{"summary": []byte("and on"), "empty": nil, "new": {0, 1}, "gone": nil})
	if d := cmp.Diff(map[string][]byte{"summary": []byte("and on"), "new": {0, 1}}, got); d != "" {
		t.Error(d)
	}
	if got := set(map[string][]byte{"summary": nil, "new": nil}); len(got) != 0 {
		t.Errorf("left over: %q", got)
	}
}

func queries(t *testing.T, s store.Store) {
	key := store.Key{Memory: "m", Session: "s"}
	const n = 700 // more than one page of a store
	c := store.Change{Next: 1, State: store.State{Last: n}}
	for seq := int64(1); seq <= n; seq++ {
		e := add(store.Head{State: store.State{Last: seq - 1}}, fmt.Sprint("id", seq)).Entries[0]
		if seq%5 == 0 {
			e.Status = store.Failed
		}
		c.Entries = append(c.Entries, e)
	}
	testkit.Must(t, s.Apply(t.Context(), key, c))
	testkit.Must(t, s.Apply(t.Context(), store.Key{Memory: "m", Session: "t"}, c)) // must not be returned
	for _, test := range []struct {
		name string
		q    store.Query
		want func(seq int64) bool
	}{
		{"all", store.Query{}, func(int64) bool { return true }},
		{"from", store.Query{From: 399}, func(s int64) bool { return s >= 399 }},
		{"to", store.Query{To: 3}, func(s int64) bool { return s <= 3 }},
		{"one", store.Query{From: 300, To: 300}, func(s int64) bool { return s == 300 }},
		{"beyond", store.Query{From: n + 1}, func(int64) bool { return false }},
		{"live", store.Query{From: 2, To: 600, Live: true}, func(s int64) bool { return s >= 2 && s <= 600 && s%5 != 0 }},
		{"ids", store.Query{IDs: []string{"id9", "id2", "unknown", "id2", "id5"}}, func(s int64) bool { return s == 2 || s == 9 || s == 5 }},
		{"live ids", store.Query{Live: true, IDs: []string{"id9", "id2", "id5"}}, func(s int64) bool { return s == 2 || s == 9 }},
		{"no ids", store.Query{IDs: []string{}}, func(int64) bool { return false }},
	} {
		var want, got []int64
		for seq := int64(1); seq <= n; seq++ {
			if test.want(seq) {
				want = append(want, seq)
			}
		}
		for _, e := range entries(t, s, key, test.q) {
			got = append(got, e.Seq)
		}
		if !slices.Equal(want, got) {
			t.Errorf("%s: got %v, want %v", test.name, got, want)
		}
	}
	seen := 0
	for range s.Entries(t.Context(), key, store.Query{}) {
		if seen++; seen == 3 {
			break
		}
	}
	if seen != 3 {
		t.Errorf("a range that was left early gave %d entries", seen)
	}
}

// messageIDs checks that the message of a failed turn can be added again with its id.
func messageIDs(t *testing.T, s store.Store) {
	key := store.Key{Memory: "m", Session: "s"}
	failed := add(store.Head{}, "same")
	failed.Next, failed.Entries[0].Status = 5, store.Failed
	testkit.Must(t, s.Apply(t.Context(), key, failed))
	head, err := s.Head(t.Context(), key)
	testkit.Must(t, err)
	testkit.Must(t, s.Apply(t.Context(), key, add(head, "same")))
	distinct(t, s, key)
	if got := entries(t, s, key, store.Query{Live: true, IDs: []string{"same"}}); len(got) != 1 || got[0].Seq != 2 {
		t.Errorf("got %v", got)
	}
}

// distinct checks that a Deduplicator rejects a change with a duplicate as a whole.
func distinct(t *testing.T, s store.Store, key store.Key) {
	if d, ok := s.(store.Deduplicator); !ok || !d.Distinct() {
		return
	}
	before := dump(t, s, key)
	c := add(before.Head, "new")
	c.Entries = append(c.Entries, add(store.Head{State: c.State}, "same").Entries...)
	c.State.Last++
	c.Values = map[string][]byte{"more": []byte("x")}
	if err := s.Apply(t.Context(), key, c); !errors.Is(err, store.ErrDuplicateMessage) {
		t.Errorf("a duplicate message: got %v, want ErrDuplicateMessage", err)
	}
	if d := cmp.Diff(before, dump(t, s, key)); d != "" {
		t.Errorf("a rejected change changed something: %s", d)
	}
	again := add(before.Head, "same")
	again.Entries[0].Status = store.Failed
	testkit.Must(t, s.Apply(t.Context(), key, again))
}

func keys(t *testing.T, s store.Store) {
	odd := []string{"", " ", "a", "ab", "b", "A", "ä", "a\x00b", "a\x00c", "'; DROP TABLE sessions; --", "../../etc/passwd", "%", "日本 🙂", strings.Repeat("long", 500)}
	for _, mem := range odd {
		for _, session := range odd {
			c := add(store.Head{}, mem+"|"+session)
			c.Next = 9
			testkit.Must(t, s.Apply(t.Context(), store.Key{Memory: mem, Session: session}, c))
		}
	}
	for _, mem := range odd {
		for _, session := range odd {
			got := entries(t, s, store.Key{Memory: mem, Session: session}, store.Query{})
			if len(got) != 1 || got[0].Message.ID != mem+"|"+session {
				t.Fatalf("memory %q, session %q: got %v", mem, session, got)
			}
		}
		var listed []string
		for l, err := range s.Sessions(t.Context(), mem) {
			testkit.Must(t, err)
			listed = append(listed, l.Session)
		}
		want := slices.Sorted(slices.Values(odd))
		if !slices.Equal(listed, want) {
			t.Fatalf("memory %q lists %q, want %q", mem, listed, want)
		}
	}
}

func listing(t *testing.T, s store.Store) {
	for _, session := range []string{"c", "a", "b"} {
		testkit.Must(t, s.Apply(t.Context(), store.Key{Memory: "m", Session: session}, sample()))
	}
	testkit.Must(t, s.Apply(t.Context(), store.Key{Memory: "n", Session: "x"}, sample()))
	var got []string
	for l, err := range s.Sessions(t.Context(), "m") {
		testkit.Must(t, err)
		got = append(got, l.Session)
		if l.Head.Version != 41 || l.Head.State != sample().State {
			t.Errorf("%s: head %+v", l.Session, l.Head)
		}
	}
	if !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("got %q", got)
	}
}

func ended(t *testing.T, s store.Store) {
	key := store.Key{Memory: "m", Session: "s"}
	testkit.Must(t, s.Apply(t.Context(), key, sample()))
	before := dump(t, s, key)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Head(ctx, key)
	fails := map[string]error{"Head": err, "Apply": s.Apply(ctx, key, add(before.Head, "y")), "Delete": s.Delete(ctx, key)}
	for _, err := range s.Entries(ctx, key, store.Query{}) {
		fails["Entries"] = err
	}
	for name, err := range fails {
		if err == nil || !strings.Contains(err.Error(), context.Canceled.Error()) {
			t.Errorf("%s after the context ended: %v", name, err)
		}
	}
	if d := cmp.Diff(before, dump(t, s, key)); d != "" {
		t.Errorf("something changed: %s", d)
	}
}

// writeInRange checks that a reader may write while it ranges.
func writeInRange(t *testing.T, s store.Store) {
	key := store.Key{Memory: "m", Session: "s"}
	testkit.Must(t, s.Apply(t.Context(), key, sample()))
	for e, err := range s.Entries(t.Context(), key, store.Query{To: 4}) {
		testkit.Must(t, err)
		head, err := s.Head(t.Context(), key)
		testkit.Must(t, err)
		testkit.Must(t, s.Apply(t.Context(), key, add(head, fmt.Sprint("in", e.Seq))))
	}
	if got := len(entries(t, s, key, store.Query{})); got != 8 {
		t.Errorf("%d entries, want 8", got)
	}
}
