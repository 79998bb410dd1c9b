package memory_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/qtype-dev/qtype/internal/memory/sqlite"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// BenchmarkAppend is one append after a number of messages of history: time and
// allocations must not depend on how many there are.
func BenchmarkAppend(b *testing.B) {
	stores := map[string]func(b *testing.B) memory.Store{
		"inprocess": func(*testing.B) memory.Store { return memory.NewInProcess() },
		"sqlite": func(b *testing.B) memory.Store {
			s, err := sqlite.Open(filepath.Join(b.TempDir(), "memory.db"))
			must2(0, err)(b)
			return s
		},
	}
	for _, name := range []string{"inprocess", "sqlite"} {
		for _, history := range []int{10, 1_000, 100_000} {
			b.Run(fmt.Sprintf("%s/%d", name, history), func(b *testing.B) {
				store := stores[name](b)
				defer func() { must2(0, store.Close())(b) }()
				benchAppend(b, store, history)
			})
		}
	}
}

// chars4 is the usual estimate: a token is four bytes.
type chars4 struct{}

func (chars4) Count(text string) int { return len(text) / 4 }

func benchAppend(b *testing.B, store memory.Store, history int) {
	m, err := memory.New(memory.Config{ID: "m", Limits: memory.Limits{"token_limit": 6000}, Counter: chars4{}}, store)
	must2(0, err)(b)
	text := strings.Repeat("many words ", 30)
	role := []chat.Role{chat.User, chat.Assistant}
	for added := 0; added < history; {
		var msgs []chat.Message
		for range min(1000, history-added) {
			msgs = append(msgs, chat.Text(role[added%2], text))
			added++
		}
		must2(0, m.Append(b.Context(), "s", msgs...))(b)
	}
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		if err := m.Append(b.Context(), "s", chat.Text(role[n%2], text)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkWindow reads the window of a session with a long history.
func BenchmarkWindow(b *testing.B) {
	for _, history := range []int{1_000, 100_000} {
		b.Run(fmt.Sprint(history), func(b *testing.B) {
			store := memory.NewInProcess()
			benchAppendOnly(b, store, history)
			m, err := memory.New(memory.Config{ID: "m", Limits: memory.Limits{"token_limit": 6000}, Counter: chars4{}}, store)
			must2(0, err)(b)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := m.Window(b.Context(), "s"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func benchAppendOnly(b *testing.B, store memory.Store, history int) {
	m, err := memory.New(memory.Config{ID: "m", Limits: memory.Limits{"token_limit": 6000}, Counter: chars4{}}, store)
	must2(0, err)(b)
	for i := range history {
		must2(0, m.Append(b.Context(), "s", chat.Text(chat.User, fmt.Sprintf("%d %s", i, strings.Repeat("many words ", 30)))))(b)
	}
}

// BenchmarkAppendParallel is many sessions at once: writes that come together
// share one commit.
func BenchmarkAppendParallel(b *testing.B) {
	store, err := sqlite.Open(filepath.Join(b.TempDir(), "memory.db"))
	must2(0, err)(b)
	defer func() { must2(0, store.Close())(b) }()
	m, err := memory.New(memory.Config{ID: "m", Counter: chars4{}}, store)
	must2(0, err)(b)
	var next atomic.Int64
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		session := fmt.Sprint("s", next.Add(1))
		for pb.Next() {
			if err := m.Append(b.Context(), session, chat.Text(chat.User, "many words")); err != nil {
				b.Error(err)
			}
		}
	})
}

// BenchmarkManySessions appends one message to each of 10,000 sessions in turn
// and reads the window after each.
func BenchmarkManySessions(b *testing.B) {
	m, err := memory.New(memory.Config{ID: "m", Policy: spec.PolicyMessageWindow, Limits: memory.Limits{"max_messages": 10}, Counter: chars4{}}, memory.NewInProcess())
	must2(0, err)(b)
	ids := make([]string, 10_000)
	for i := range ids {
		ids[i] = fmt.Sprint("s", i)
	}
	text := strings.Repeat("many words ", 20)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		id := ids[n%len(ids)]
		msg := chat.Message{Role: chat.User, Blocks: []chat.Block{{Type: "text", Text: strings.Clone(text)}}}
		if err := m.Append(b.Context(), id, msg); err != nil {
			b.Fatal(err)
		}
		if _, err := m.Window(b.Context(), id); err != nil {
			b.Fatal(err)
		}
	}
}
