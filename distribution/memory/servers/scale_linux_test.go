package servers_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/distribution/memory/servers"
	"github.com/qtype-dev/qtype/internal/memory/storeurl"
	"github.com/qtype-dev/qtype/internal/memoryview/explain"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/search"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// scaleStores are the stores of TestScale. Servers do not wait for their disk while they are filled.
func scaleStores() map[string]func(t *testing.T) string {
	return map[string]func(t *testing.T) string{
		"sqlite": func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "memory.db") },
		"postgres": func(t *testing.T) string {
			s, err := servertest.Postgres("-c", "fsync=off")
			servertest.Need(t, err)
			t.Cleanup(func() { testkit.Must(t, s.Close()) })
			return s.URL()
		},
		"redis": func(t *testing.T) string {
			s, err := servertest.Redis("--appendonly", "no")
			servertest.Need(t, err)
			t.Cleanup(func() { testkit.Must(t, s.Close()) })
			return "redis://" + s.Address()
		},
	}
}

// TestScale measures the operations of memories of several numbers of sessions, and of a
// session of as many messages: CPU time of this process, time, and memory that it needs
// more. QTYPE_SCALE has the numbers, separated by commas; docs/benchmarks.md has a table.
func TestScale(t *testing.T) {
	sizes := os.Getenv("QTYPE_SCALE")
	if sizes == "" {
		sizes = "10,100"
	}
	for name, newAddress := range scaleStores() {
		for text := range strings.SplitSeq(sizes, ",") {
			n, err := strconv.Atoi(text)
			testkit.Must(t, err)
			t.Run(name+"/sessions/"+text, func(t *testing.T) { measureSessions(t, newAddress(t), n) })
			t.Run(name+"/messages/"+text, func(t *testing.T) { measureMessages(t, newAddress(t), n) })
		}
	}
}

// scaleMemory returns a memory on a store whose clock is ahead by the value of ahead.
func scaleMemory(t *testing.T, s store.Store, ahead *atomic.Int64) *memory.Memory {
	t.Helper()
	m, err := memory.New(memory.Config{ID: "m", Limits: memory.Limits{"token_limit": 6000}, Counter: chars4{}, TTL: time.Hour,
		Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }}, s)
	testkit.Must(t, err)
	return m
}

func openScale(t *testing.T, address string) store.Store {
	t.Helper()
	s, err := storeurl.Open(address, storeurl.Among(servers.Openers()))
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, s.Close()) })
	return s
}

func measureSessions(t *testing.T, address string, n int) {
	s := openScale(t, address)
	var ahead atomic.Int64
	m := scaleMemory(t, s, &ahead)
	started := time.Now()
	var next atomic.Int64
	var writers sync.WaitGroup
	for range 64 {
		writers.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				c := store.Change{Next: 7, State: store.State{Last: 2, First: 1, Turns: 1, InWindow: 2, Tokens: 14, LastSaid: started}}
				for seq := range int64(2) {
					c.Entries = append(c.Entries, &store.Entry{Seq: seq + 1, Turn: 1, Tokens: 7, Time: started, Message: chat.Message{ID: fmt.Sprint(seq),
						Role: []chat.Role{chat.User, chat.Assistant}[seq], Blocks: []chat.Block{{Type: "text", Text: fmt.Sprint("message ", seq, " of ", i)}}}})
				}
				if err := s.Apply(t.Context(), store.Key{Memory: "m", Session: fmt.Sprintf("s%08d", i)}, c); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	writers.Wait()
	t.Logf("filled in %s", time.Since(started).Round(time.Millisecond))
	middle := fmt.Sprintf("s%08d", n/2)
	measureConversation(t, m, middle, 2)
	measure(t, "list 20", func(ctx context.Context) (err error) {
		for _, failed := range m.EachSession(ctx, memory.SessionFilter{SessionQuery: store.SessionQuery{After: middle, Limit: 20}}) {
			err = failed
		}
		return err
	})
	measure(t, "clear", func(ctx context.Context) error { return m.Clear(ctx, middle) })
	ahead.Store(int64(2 * time.Hour))
	measure(t, "prune all", func(ctx context.Context) error {
		deleted, err := m.Prune(ctx)
		if deleted != n-1 && err == nil {
			t.Errorf("%d sessions were pruned, want %d", deleted, n-1)
		}
		return err
	})
}

func measureMessages(t *testing.T, address string, n int) {
	var ahead atomic.Int64
	m := scaleMemory(t, openScale(t, address), &ahead)
	const session, batch = "s", 5000
	for added := 0; added < n; {
		var messages []chat.Message
		for range min(batch, n-added) {
			messages = append(messages, chat.Text([]chat.Role{chat.User, chat.Assistant}[added%2], fmt.Sprint("message number ", added)))
			added++
		}
		testkit.Must(t, m.Append(t.Context(), session, messages...))
	}
	measureConversation(t, m, session, int64(n))
	measure(t, "clear", func(ctx context.Context) error { return m.Clear(ctx, session) })
}

// measureConversation measures the operations of one session.
func measureConversation(t *testing.T, m *memory.Memory, session string, messages int64) {
	measure(t, "show (window and head)", func(ctx context.Context) error {
		if _, err := m.Window(ctx, session); err != nil {
			return err
		}
		info, err := m.Info(ctx, session)
		if info.Messages != messages && err == nil {
			t.Errorf("%d messages, want %d", info.Messages, messages)
		}
		return err
	})
	measure(t, "append", func(ctx context.Context) error {
		return m.Append(ctx, session, chat.Text(chat.User, "one more"), chat.Text(chat.Assistant, "here"))
	})
	measure(t, "window", func(ctx context.Context) error { _, err := m.Window(ctx, session); return err })
	measure(t, "explain", func(ctx context.Context) error { _, err := explain.Turn(ctx, m, session, 0); return err })
	searcher := search.New(m)
	find := func(ctx context.Context) error {
		_, err := searcher.Search(ctx, search.Query{Text: "one more", Scope: search.Session(session)})
		return err
	}
	measure(t, "search, the first", find)
	measure(t, "search, the next", find)
}

// measure logs the CPU time of this process, the time, and the peak of its memory above
// what it was before.
func measure(t *testing.T, name string, do func(context.Context) error) {
	t.Helper()
	debug.FreeOSMemory()
	testkit.Must(t, os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)) // resets the peak
	before, cpu, start := status(t, "VmRSS"), cpuTime(t), time.Now()
	if err := do(t.Context()); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	wall, used := time.Since(start), cpuTime(t)-cpu
	t.Logf("%-24s %10.2f ms CPU %10.2f ms %8.1f MB", name, float64(used.Microseconds())/1e3, float64(wall.Microseconds())/1e3, float64(max(status(t, "VmHWM")-before, 0))/1024)
}

// cpuTime returns the user and system time of this process.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	testkit.Must(t, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// status returns a number of kB of this process.
func status(t *testing.T, field string) int {
	t.Helper()
	for line := range strings.Lines(testkit.ReadFile(t, "/proc/self/status")) {
		if text, ok := strings.CutPrefix(line, field+":"); ok {
			n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(text), " kB"))
			testkit.Must(t, err)
			return n
		}
	}
	t.Fatalf("no %s", field)
	return 0
}
