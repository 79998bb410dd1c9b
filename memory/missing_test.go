package memory_test

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// lossyStore is a store that has lost the messages at some positions.
type lossyStore struct {
	memory.Store
	lost map[int64]bool
}

func (s *lossyStore) Entries(ctx context.Context, key memory.Key, q store.Query) iter.Seq2[*memory.Entry, error] {
	return func(yield func(*memory.Entry, error) bool) {
		for e, err := range s.Store.Entries(ctx, key, q) {
			if (err != nil || !s.lost[e.Seq]) && !yield(e, err) {
				return
			}
		}
	}
}

// TestHistory_MissingEntries checks that a history without some of its messages has the
// others, and then an error.
func TestHistory_MissingEntries(t *testing.T) {
	for name, test := range map[string]struct {
		lost     []int64
		from, to int64
		first    int64
		missing  int64
	}{
		"none":          {},
		"in the middle": {lost: []int64{3, 4}, first: 3, missing: 2},
		"scattered":     {lost: []int64{2, 5}, first: 2, missing: 2},
		"at the end":    {lost: []int64{6}, first: 6, missing: 1},
		"all":           {lost: []int64{1, 2, 3, 4, 5, 6}, first: 1, missing: 6},
		"in a range":    {lost: []int64{1, 4}, from: 3, to: 5, first: 4, missing: 1},
		"not in it":     {lost: []int64{1, 6}, from: 2, to: 5},
	} {
		t.Run(name, func(t *testing.T) {
			store := &lossyStore{Store: memory.NewInProcess(), lost: map[int64]bool{}}
			m := newMemory(t, store)
			for range 6 {
				testkit.Must(t, m.Append(t.Context(), "s", chat.Text(chat.User, "text")))
			}
			for _, seq := range test.lost {
				store.lost[seq] = true
			}
			var got *memory.MissingEntriesError
			for _, err := range m.HistoryRange(t.Context(), "s", test.from, test.to) {
				if err != nil && !errors.As(err, &got) {
					t.Error(err)
				}
			}
			switch {
			case got == nil && test.missing > 0 || got != nil && (got.First != test.first || got.Missing != test.missing):
				t.Errorf("got %v", got)
			case name == "scattered" && got.Error() != `memory chat_memory, session "s": the store has lost 2 messages, the first at position 2`:
				t.Error(got)
			}
		})
	}
}

// replacingStore runs a function before the entries of a session are read.
type replacingStore struct {
	memory.Store
	before func()
}

func (s *replacingStore) Entries(ctx context.Context, key memory.Key, q store.Query) iter.Seq2[*memory.Entry, error] {
	s.before()
	return func(func(*memory.Entry, error) bool) {} // as if they were read between the deletion and the new messages
}

// TestHistory_ClearedMeanwhile: the messages of a session that is deleted and created again while it is read
// are not reported as lost.
func TestHistory_ClearedMeanwhile(t *testing.T) {
	for range 50 { // versions begin at a random number
		s := &replacingStore{Store: memory.NewInProcess()}
		m := newMemory(t, s)
		testkit.Must(t, m.Append(t.Context(), "s", chat.Text(chat.User, "text")))
		s.before = func() {
			s.before = func() {}
			testkit.Must(t, m.Clear(t.Context(), "s"))
			testkit.Must(t, m.Append(t.Context(), "s", chat.Text(chat.User, "one"), chat.Text(chat.User, "two")))
		}
		for e, err := range m.History(t.Context(), "s") {
			t.Errorf("got %q, %v", e.Message.Text(), err)
		}
	}
}
