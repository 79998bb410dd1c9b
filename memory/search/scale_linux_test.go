package search_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/memory/segments"
	"github.com/qtype-dev/qtype/internal/memory/sqlite"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/search"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// TestScale measures a search in a session, and in sessions, of as many messages as
// QTYPE_SEARCH_MESSAGES names, in a SQLite file. docs/benchmarks.md has the results.
func TestScale(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("QTYPE_SEARCH_MESSAGES"))
	if n == 0 {
		t.Skip("a measurement: set QTYPE_SEARCH_MESSAGES")
	}
	t.Run("one session", func(t *testing.T) {
		measureScale(t, n, "one session", func(int) string { return "s" }, search.Session("s"), 5_000)
	})
	t.Run("many sessions", func(t *testing.T) {
		measureScale(t, n, "many sessions", func(i int) string { return fmt.Sprintf("u%d/s%d", i%1000, i) }, search.All(), 1)
	})
}

func measureScale(t *testing.T, n int, name string, session func(int) string, scope search.Scope, batch int) {
	path := filepath.Join(t.TempDir(), "m.db")
	backend, err := sqlite.Open(path)
	testkit.Must(t, err)
	random := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(random, 1.1, 2, 50_000)
	seq := map[string]memory.Head{}
	start := time.Now()
	for i := 0; i < n; i += batch {
		session := session(i)
		head := seq[session]
		c := store.Change{Version: head.Version, Next: store.NextVersion(head.Version), State: head.State}
		for range min(batch, n-i) {
			var text []string
			for range 20 {
				text = append(text, fmt.Sprintf("w%d", zipf.Uint64()))
			}
			c.State.Last++
			c.Entries = append(c.Entries, &memory.Entry{Message: chat.Message{ID: fmt.Sprint(session, c.State.Last), Role: chat.User, Blocks: []chat.Block{{Type: "text", Text: strings.Join(text, " ")}}},
				Seq: c.State.Last, Turn: c.State.Last, Tokens: 20, Time: time.Unix(1_700_000_000+int64(i), 0)})
		}
		c.State.Turns, c.State.First, c.State.LastSaid = c.State.Last, c.State.Last+1, time.Unix(1_700_000_000+int64(i), 0)
		testkit.Must(t, backend.Apply(t.Context(), memory.Key{Memory: "m", Session: session}, c))
		seq[session] = memory.Head{Version: c.Next, State: c.State}
	}
	t.Logf("%d messages written in %s", n, time.Since(start).Round(time.Millisecond))
	m, err := memory.New(memory.Config{ID: "m", Counter: words{}}, backend)
	testkit.Must(t, err)
	measureSearches(t, "the first search", search.New(m), scope, "w40000 w17 w3")
	testkit.Must(t, backend.Close())
	t.Logf("%d bytes of stored words for a message", storedBytes(t, path)/int64(n))
	for range 3 {
		command := exec.Command(os.Args[0], "-test.run=^TestScale_NewProcess$", "-test.v")
		command.Env = append(os.Environ(), "QTYPE_SEARCH_FILE="+path, "QTYPE_SEARCH_SCOPE="+name)
		out, err := command.CombinedOutput()
		testkit.Must(t, err)
		t.Logf("a new process: %s", out)
	}
}

// TestScale_NewProcess searches what TestScale has written.
func TestScale_NewProcess(t *testing.T) {
	path := os.Getenv("QTYPE_SEARCH_FILE")
	if path == "" {
		t.Skip("a part of TestScale")
	}
	scope := search.All()
	if os.Getenv("QTYPE_SEARCH_SCOPE") == "one session" {
		scope = search.Session("s")
	}
	backend, err := sqlite.Open(path)
	testkit.Must(t, err)
	defer backend.Close()
	m, err := memory.New(memory.Config{ID: "m", Counter: words{}}, backend)
	testkit.Must(t, err)
	measureSearches(t, "search", search.New(m), scope, "w30000 w120", "w777 w8888", "w30000 w120", "w5 w1 w2 w9", "w5 w1 w2 w9")
}

// storedBytes returns the size of the stored words of all sessions in a file.
func storedBytes(t *testing.T, path string) (n int64) {
	db, err := sql.Open("sqlite", path)
	testkit.Must(t, err)
	defer db.Close()
	testkit.Must(t, db.QueryRow("SELECT coalesce(sum(length(value)), 0) FROM named JOIN sessions ON session_id = id WHERE memory = ?", segments.StoredMemory("m")).Scan(&n))
	return n
}

func measureSearches(t *testing.T, name string, s *search.Searcher, scope search.Scope, texts ...string) {
	for _, text := range texts {
		user, system := cpuTimes(t)
		found, err := s.Search(context.Background(), search.Query{Text: text, Scope: scope})
		testkit.Must(t, err)
		userAfter, systemAfter := cpuTimes(t)
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		t.Logf("%s: %s of CPU time for %q, and %s of the system, %d found, %d MB of heap", name, (userAfter - user).Round(100*time.Microsecond),
			text, (systemAfter - system).Round(100*time.Microsecond), len(found.Messages), stats.HeapAlloc>>20)
	}
}

func cpuTimes(t *testing.T) (user, system time.Duration) {
	var used syscall.Rusage
	testkit.Must(t, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano()), time.Duration(used.Stime.Nano())
}
