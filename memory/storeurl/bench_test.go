package storeurl_test

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

	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/storeurl"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// kinds are the stores that are measured; each address is an empty one, and what
// it keeps lies in the folder.
func kinds() []struct {
	name    string
	address func(b *testing.B) (address, folder string)
} {
	redis := func(sync string) func(b *testing.B) (string, string) {
		return func(b *testing.B) (string, string) {
			s, err := servertest.Redis("--appendfsync", sync)
			servertest.Need(b, err)
			b.Cleanup(func() { must(b, s.Close()) })
			return "redis://" + s.Address(), s.Folder
		}
	}
	return []struct {
		name    string
		address func(b *testing.B) (address, folder string)
	}{
		{"inprocess", func(b *testing.B) (string, string) { return "memory:", b.TempDir() }},
		{"sqlite", func(b *testing.B) (string, string) {
			folder := b.TempDir()
			return "sqlite:" + filepath.Join(folder, "memory.db"), folder
		}},
		{"postgres", func(b *testing.B) (string, string) {
			s, err := servertest.Postgres()
			servertest.Need(b, err)
			b.Cleanup(func() { must(b, s.Close()) })
			return s.URL(), s.Folder
		}},
		{"redis-everysec", redis("everysec")},
		{"redis-always", redis("always")},
	}
}

// chars4 is the usual estimate: a token is four bytes.
type chars4 struct{}

func (chars4) Count(text string) int { return len(text) / 4 }

func open(b *testing.B, kind func(*testing.B) (string, string)) *memory.Memory {
	b.Helper()
	address, _ := kind(b)
	s, err := storeurl.Open(address)
	must(b, err)
	b.Cleanup(func() { must(b, s.Close()) })
	m, err := memory.New(memory.Config{ID: "m", Limits: memory.Limits{"token_limit": 6000}, Counter: chars4{}}, s)
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
				m := open(b, kind.address)
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
			m := open(b, kind.address)
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

// BenchmarkSessions is a message in one of many sessions and the window after
// it, by 64 goroutines: 20 messages in each session, windows of 10. It tells how
// many a second and what lies on the disk for each message.
func BenchmarkSessions(b *testing.B) {
	for _, kind := range kinds() {
		b.Run(kind.name, func(b *testing.B) {
			address, folder := kind.address(b)
			s, err := storeurl.Open(address)
			must(b, err)
			b.Cleanup(func() { must(b, s.Close()) })
			m, err := memory.New(memory.Config{ID: "m", Policy: spec.PolicyMessageWindow, Limits: memory.Limits{"max_messages": 10}, Counter: chars4{}}, s)
			must(b, err)
			must(b, m.Append(b.Context(), "first", chat.Text(chat.User, text))) // makes the tables
			before := size(b, folder)
			const talkers, each = 64, 20
			b.ResetTimer()
			var all sync.WaitGroup
			for talker := range talkers {
				all.Go(func() {
					for n := talker; n < b.N; n += talkers {
						session := fmt.Sprintf("s%d-%d", talker, n/talkers/each)
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
			b.ReportMetric(float64(size(b, folder)-before)/float64(b.N), "disk-B/message")
		})
	}
}

// size is how many bytes the files in a folder have; the log that a server writes
// ahead is not what it keeps.
func size(b *testing.B, folder string) int64 {
	b.Helper()
	var n int64
	must(b, filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if d != nil && d.Name() == "pg_wal" {
				return fs.SkipDir
			}
			return nil // a server takes files away while we look
		}
		if info, err := d.Info(); err == nil {
			n += info.Size()
		}
		return nil
	}))
	return n
}
