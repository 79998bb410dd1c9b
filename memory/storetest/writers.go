package storetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// twoWriters checks that two writers without a common lock lose nothing.
func twoWriters(t *testing.T, s store.Store) {
	key := store.Key{Memory: "m", Session: "s"}
	const each = 50
	inParallel(2, func(writer int) {
		for i := range each {
			for {
				head, err := s.Head(t.Context(), key)
				if err == nil {
					err = s.Apply(t.Context(), key, add(head, fmt.Sprint(writer, "-", i)))
				}
				if err == nil {
					break
				}
				if !errors.Is(err, store.ErrConflict) {
					t.Error(err)
					return
				}
			}
		}
	})
	checkSerial(t, s, key, 2, each)
}

func inParallel(n int, do func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { do(i) })
	}
	wg.Wait()
}

// checkSerial checks that every writer's messages are there once, in the order in
// which it added them, numbered without gaps.
func checkSerial(t *testing.T, s store.Store, key store.Key, writers, each int) {
	t.Helper()
	next := make([]int, writers)
	seq := int64(0)
	for _, e := range entries(t, s, key, store.Query{}) {
		var writer, i int
		if _, err := fmt.Sscanf(e.Message.Text(), "%d-%d", &writer, &i); err != nil {
			t.Fatalf("message %q: %v", e.Message.Text(), err)
		}
		if seq++; e.Seq != seq || i != next[writer] {
			t.Fatalf("%v: entry %d is message %d of writer %d, want entry %d, message %d", key, e.Seq, i, writer, seq, next[writer])
		}
		next[writer]++
	}
	if want := slices.Repeat([]int{each}, writers); !slices.Equal(next, want) {
		t.Errorf("%v: the writers added %v, want %v", key, next, want)
	}
}

// runes counts characters: a counter without a vocabulary.
type runes struct{}

func (runes) Count(text string) int { return len([]rune(text)) }

func newMemory(t *testing.T, s store.Store) *memory.Memory {
	t.Helper()
	m, err := memory.New(memory.Config{ID: "m", Limits: memory.Limits{"token_limit": 400, "chat_history_token_ratio": 0.5, "token_flush_size": 50}, Counter: runes{}}, s)
	testkit.Must(t, err)
	return m
}

// manyWriters checks 64 goroutines that write to 8 sessions through two memories
// that share the store, as two processes would.
func manyWriters(t *testing.T, s store.Store) {
	const writers, sessions, each = 64, 8, 4
	memories := []*memory.Memory{newMemory(t, s), newMemory(t, s)}
	inParallel(writers, func(w int) {
		session := fmt.Sprint("s", w%sessions)
		for i := range each {
			msg := chat.Text(chat.User, fmt.Sprintf("%d-%d", w/sessions, i))
			if err := memories[w/sessions%2].Append(t.Context(), session, msg); err != nil {
				t.Error(err)
			}
		}
	})
	for i := range sessions {
		session := fmt.Sprint("s", i)
		checkSerial(t, s, store.Key{Memory: "m", Session: session}, writers/sessions, each)
		one, err := memories[0].Window(t.Context(), session)
		testkit.Must(t, err)
		two, err := memories[1].Window(t.Context(), session)
		testkit.Must(t, err)
		if d := cmp.Diff(one, two); d != "" || one.Tokens > one.Limit {
			t.Errorf("%s: %d of %d tokens, %s", session, one.Tokens, one.Limit, d)
		}
	}
}

// window checks that a second memory reads the same window and history.
func window(t *testing.T, s store.Store) {
	first := newMemory(t, s)
	for i := range 60 {
		testkit.Must(t, first.Append(t.Context(), "s", chat.Text(chat.User, fmt.Sprint("question ", i)), chat.Text(chat.Assistant, fmt.Sprint("answer ", i))))
	}
	turn, err := first.Begin(t.Context(), "s")
	testkit.Must(t, err)
	testkit.Must(t, turn.Add(chat.Text(chat.User, "never answered")))
	testkit.Must(t, turn.Abort(t.Context(), errors.New("no answer")))
	testkit.Must(t, first.Append(t.Context(), "s", chat.Text(chat.System, "be kind"), chat.Text(chat.User, "last")))
	second := newMemory(t, s)
	for name, read := range map[string]func(*memory.Memory) any{
		"window":   func(m *memory.Memory) any { w, err := m.Window(t.Context(), "s"); testkit.Must(t, err); return w },
		"history":  func(m *memory.Memory) any { return collect(t, m.History(t.Context(), "s")) },
		"events":   func(m *memory.Memory) any { return collect(t, m.Events(t.Context(), "s")) },
		"sessions": func(m *memory.Memory) any { l, err := m.Sessions(t.Context()); testkit.Must(t, err); return l },
	} {
		if d := cmp.Diff(read(first), read(second)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	if got := len(collect(t, second.History(t.Context(), "s"))); got != 123 {
		t.Errorf("the history has %d messages, want 123", got)
	}
}

func collect[T any](t *testing.T, seq func(func(T, error) bool)) []T {
	t.Helper()
	var out []T
	for v, err := range seq {
		testkit.Must(t, err)
		out = append(out, v)
	}
	return out
}
