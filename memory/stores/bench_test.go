package stores_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/chat"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/stores"
)

// kinds are the stores that are measured; each address is an empty one.
func kinds() []struct {
	name    string
	address func(b *testing.B) string
} {
	redis := func(sync string) func(b *testing.B) string {
		return func(b *testing.B) string {
			s, err := servertest.Redis("--appendfsync", sync)
			servertest.Need(b, err)
			b.Cleanup(func() { must(b, s.Close()) })
			return "redis://" + s.Address()
		}
	}
	return []struct {
		name    string
		address func(b *testing.B) string
	}{
		{"inprocess", func(*testing.B) string { return "memory:" }},
		{"sqlite", func(b *testing.B) string { return "sqlite:" + filepath.Join(b.TempDir(), "memory.db") }},
		{"postgres", func(b *testing.B) string {
			s, err := servertest.Postgres()
			servertest.Need(b, err)
			b.Cleanup(func() { must(b, s.Close()) })
			return s.URL()
		}},
		{"redis-everysec", redis("everysec")},
		{"redis-always", redis("always")},
	}
}

// chars4 is the usual estimate: a token is four bytes.
type chars4 struct{}

func (chars4) Count(text string) int { return len(text) / 4 }

func open(b *testing.B, address string) *memory.Memory {
	b.Helper()
	s, err := stores.Open(address)
	must(b, err)
	b.Cleanup(func() { must(b, s.Close()) })
	m, err := memory.New(memory.Config{ID: "m", TokenLimit: 6000, Counter: chars4{}}, s)
	must(b, err)
	return m
}

var text = strings.Repeat("many words ", 30)

// fill says n messages in one session, a thousand at a time.
func fill(b *testing.B, m *memory.Memory, n int) {
	b.Helper()
	for said := 0; said < n; {
		var msgs []chat.Message
		for range min(1000, n-said) {
			msgs = append(msgs, chat.Text([]chat.Role{chat.User, chat.Assistant}[said%2], text))
			said++
		}
		must(b, m.Append(b.Context(), "s", msgs...))
	}
}

// BenchmarkAppend is one append beside so many messages of history: time and
// allocations must not depend on how many there are.
func BenchmarkAppend(b *testing.B) {
	for _, kind := range kinds() {
		for _, history := range []int{10, 1_000, 100_000} {
			b.Run(fmt.Sprintf("%s/%d", kind.name, history), func(b *testing.B) {
				m := open(b, kind.address(b))
				fill(b, m, history)
				b.ReportAllocs()
				for n := 0; b.Loop(); n++ {
					must(b, m.Append(b.Context(), "s", chat.Text([]chat.Role{chat.User, chat.Assistant}[n%2], text)))
				}
			})
		}
	}
}

// BenchmarkTurns is how many turns a second one store takes of 64 sessions at
// once, each a question and its answer, and how long a turn waits for the store.
func BenchmarkTurns(b *testing.B) {
	for _, kind := range kinds() {
		b.Run(kind.name, func(b *testing.B) {
			m := open(b, kind.address(b))
			fill(b, m, 1)
			const sessions = 64
			var left atomic.Int64
			left.Store(int64(b.N))
			took := make([][]time.Duration, sessions)
			b.ResetTimer()
			var all sync.WaitGroup
			for s := range sessions {
				all.Go(func() {
					for left.Add(-1) >= 0 {
						began := time.Now()
						if err := turn(b, m, fmt.Sprint("s", s)); err != nil {
							b.Error(err)
							return
						}
						took[s] = append(took[s], time.Since(began))
					}
				})
			}
			all.Wait()
			sorted := slices.Sorted(slices.Values(slices.Concat(took...)))
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "turns/s")
			b.ReportMetric(float64(sorted[len(sorted)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(sorted[len(sorted)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
}

func turn(b *testing.B, m *memory.Memory, session string) error {
	t, err := m.Begin(b.Context(), session)
	if err != nil {
		return err
	}
	if err := t.Add(chat.Text(chat.User, text)); err != nil {
		return err
	}
	if _, err := t.Window(); err != nil {
		return err
	}
	if err := t.Add(chat.Text(chat.Assistant, text)); err != nil {
		return err
	}
	return t.Commit(b.Context())
}
