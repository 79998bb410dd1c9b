package servers_test

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/distribution/memory/servers"
	"github.com/qtype-dev/qtype/internal/memory/storeurl"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// kinds returns the measured stores. address creates an empty store whose data is
// in dir.
func kinds() []struct {
	name    string
	address func(b *testing.B) (address, dir string)
} {
	redis := func(sync string) func(b *testing.B) (string, string) {
		return func(b *testing.B) (string, string) {
			s, err := servertest.Redis("--appendfsync", sync)
			servertest.Need(b, err)
			b.Cleanup(func() { testkit.Must(b, s.Close()) })
			return "redis://" + s.Address(), s.Folder
		}
	}
	return []struct {
		name    string
		address func(b *testing.B) (address, dir string)
	}{
		{"inprocess", func(b *testing.B) (string, string) { return "memory:", b.TempDir() }},
		{"sqlite", func(b *testing.B) (string, string) {
			dir := b.TempDir()
			return "sqlite:" + filepath.Join(dir, "memory.db"), dir
		}},
		{"postgres", func(b *testing.B) (string, string) {
			s, err := servertest.Postgres()
			servertest.Need(b, err)
			b.Cleanup(func() { testkit.Must(b, s.Close()) })
			return s.URL(), s.Folder
		}},
		{"redis-everysec", redis("everysec")},
		{"redis-always", redis("always")},
	}
}

// chars4 estimates a token as four bytes.
type chars4 struct{}

func (chars4) Count(text string) int { return len(text) / 4 }

func open(b *testing.B, kind func(*testing.B) (string, string)) *memory.Memory {
	b.Helper()
	address, _ := kind(b)
	s, err := storeurl.Open(address, storeurl.Among(servers.Openers()))
	testkit.Must(b, err)
	b.Cleanup(func() { testkit.Must(b, s.Close()) })
	m, err := memory.New(memory.Config{ID: "m", Limits: memory.Limits{"token_limit": 6000}, Counter: chars4{}}, s)
	testkit.Must(b, err)
	return m
}

var text = strings.Repeat("many words ", 30)

// fill appends n messages to one session, 1,000 at a time.
func fill(b *testing.B, m *memory.Memory, n int) {
	b.Helper()
	for added := 0; added < n; {
		var msgs []chat.Message
		for range min(1000, n-added) {
			msgs = append(msgs, chat.Text([]chat.Role{chat.User, chat.Assistant}[added%2], text))
			added++
		}
		testkit.Must(b, m.Append(b.Context(), "s", msgs...))
	}
}

// BenchmarkAppend measures one append to histories of several lengths. Time and
// allocations must not depend on the length.
func BenchmarkAppend(b *testing.B) {
	for _, kind := range kinds() {
		for _, history := range []int{10, 1_000, 100_000} {
			b.Run(fmt.Sprintf("%s/%d", kind.name, history), func(b *testing.B) {
				m := open(b, kind.address)
				fill(b, m, history)
				b.ReportAllocs()
				for n := 0; b.Loop(); n++ {
					testkit.Must(b, m.Append(b.Context(), "s", chat.Text([]chat.Role{chat.User, chat.Assistant}[n%2], text)))
				}
			})
		}
	}
}

// BenchmarkTurns measures turns in 64 concurrent sessions, each with a question and
// its answer: turns per second, and the latency of the store.
func BenchmarkTurns(b *testing.B) {
	for _, kind := range kinds() {
		b.Run(kind.name, func(b *testing.B) {
			m := open(b, kind.address)
			fill(b, m, 1)
			const sessions = 64
			var left atomic.Int64
			left.Store(int64(b.N))
			latencies := make([][]time.Duration, sessions)
			b.ResetTimer()
			var all sync.WaitGroup
			for s := range sessions {
				all.Go(func() {
					for left.Add(-1) >= 0 {
						start := time.Now()
						if err := turn(b, m, fmt.Sprint("s", s)); err != nil {
							b.Error(err)
							return
						}
						latencies[s] = append(latencies[s], time.Since(start))
					}
				})
			}
			all.Wait()
			sorted := slices.Sorted(slices.Values(slices.Concat(latencies...)))
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

// BenchmarkSessions measures an append followed by a read of the window, in sessions
// of 20 messages with windows of 10, by 64 goroutines: messages per second, and
// bytes on disk per message.
func BenchmarkSessions(b *testing.B) {
	for _, kind := range kinds() {
		b.Run(kind.name, func(b *testing.B) {
			address, dir := kind.address(b)
			s, err := storeurl.Open(address, storeurl.Among(servers.Openers()))
			testkit.Must(b, err)
			b.Cleanup(func() { testkit.Must(b, s.Close()) })
			m, err := memory.New(memory.Config{ID: "m", Policy: spec.PolicyMessageWindow, Limits: memory.Limits{"max_messages": 10}, Counter: chars4{}}, s)
			testkit.Must(b, err)
			testkit.Must(b, m.Append(b.Context(), "first", chat.Text(chat.User, text))) // creates the tables
			before := size(b, dir)
			const writers, each = 64, 20
			b.ResetTimer()
			var all sync.WaitGroup
			for writer := range writers {
				all.Go(func() {
					for n := writer; n < b.N; n += writers {
						session := fmt.Sprintf("s%d-%d", writer, n/writers/each)
						err := m.Append(b.Context(), session, chat.Message{Role: chat.User, Blocks: []chat.Block{{Type: "text", Text: text}}})
						if err == nil {
							_, err = m.Window(b.Context(), session)
						}
						if err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
			b.ReportMetric(float64(size(b, dir)-before)/float64(b.N), "disk-B/message")
		})
	}
}

// size returns the size in bytes of the files in a directory, without PostgreSQL's
// write-ahead log.
func size(b *testing.B, dir string) int64 {
	b.Helper()
	var n int64
	testkit.Must(b, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if d != nil && d.Name() == "pg_wal" {
				return fs.SkipDir
			}
			return nil // the server may delete a file meanwhile
		}
		if info, err := d.Info(); err == nil {
			n += info.Size()
		}
		return nil
	}))
	return n
}
