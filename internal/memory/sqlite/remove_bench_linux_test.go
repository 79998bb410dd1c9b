package sqlite_test

import (
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/memory/sqlite"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// BenchmarkStore_RemoveAll deletes 100,000 sessions of two messages, all of a file or each
// second one.
func BenchmarkStore_RemoveAll(b *testing.B) {
	b.Run("all", func(b *testing.B) { benchmarkRemoveAll(b, 1) })
	b.Run("every second", func(b *testing.B) { benchmarkRemoveAll(b, 2) })
}

func benchmarkRemoveAll(b *testing.B, every int) {
	const sessions = 100_000
	for range b.N {
		b.StopTimer()
		s, err := sqlite.Open(filepath.Join(b.TempDir(), "memory.db"))
		testkit.Must(b, err)
		heads := fill(b, s, sessions, every)
		before := cpu(b)
		b.StartTimer()
		n, err := s.RemoveAll(b.Context(), "m", heads)
		b.StopTimer()
		if err != nil || n != sessions {
			b.Errorf("%d sessions, %v", n, err)
		}
		b.ReportMetric((cpu(b) - before).Seconds(), "cpu-s/op")
		testkit.Must(b, s.Close())
	}
}

// fill creates sessions and returns the heads of a part of them.
func fill(b *testing.B, s *sqlite.Store, sessions, every int) (heads []store.SessionHead) {
	b.Helper()
	slots := make(chan struct{}, 64)
	for i := range sessions * every {
		slots <- struct{}{}
		go func() {
			defer func() { <-slots }()
			c := store.Change{Next: 7, State: store.State{Last: 2, First: 1, LastSaid: time.Now()}, Events: []store.Event{{Kind: store.EventSet}}}
			for seq := range 2 {
				c.Entries = append(c.Entries, &store.Entry{Message: chat.Message{ID: fmt.Sprint(seq), Role: chat.User, Blocks: []chat.Block{{Type: "text", Text: "a short message"}}}, Seq: int64(seq + 1), Turn: 1})
			}
			if err := s.Apply(b.Context(), store.Key{Memory: "m", Session: fmt.Sprintf("s%06d", i)}, c); err != nil {
				b.Error(err)
			}
		}()
	}
	for range cap(slots) {
		slots <- struct{}{}
	}
	for l, err := range s.Sessions(b.Context(), "m") {
		testkit.Must(b, err)
		heads = append(heads, l)
	}
	for i := range sessions {
		heads[i] = heads[i*every]
	}
	return heads[:sessions]
}

// cpu returns the processor time of this process.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	testkit.Must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
