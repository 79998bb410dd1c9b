package redis_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/redis"
	"github.com/qtype-dev/qtype/memory/storetest"
)

const secret = "s3cret-word"

// own starts a server for one test.
func own(t *testing.T, settings ...string) *servertest.Server {
	t.Helper()
	s, err := servertest.Redis(settings...)
	servertest.Need(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

func TestOutages(t *testing.T) {
	s := own(t, "--requirepass", secret, "--appendfsync", "always")
	const patience = 5 * time.Second
	address := "redis://:" + secret + "@" + s.Address()
	storetest.RunOutages(t, s, open(t, address, redis.Timeout(patience)), patience, secret)
}

// change is a first one.
func change() memory.Change { return memory.Change{Next: 7, State: memory.State{First: 1}} }

var key = memory.Key{Memory: "m", Session: "s"}

// fault wants a clear line of this kind that keeps the password.
func fault(t *testing.T, err error, problem memory.ErrorKind, message string) {
	t.Helper()
	var e *memory.StoreError
	if !errors.As(err, &e) || e.Problem != problem || !strings.Contains(err.Error(), message) {
		t.Errorf("got %v, want %s: %s", err, problem, message)
	}
	for ; err != nil; err = errors.Unwrap(err) {
		if text := err.Error(); strings.Contains(text, secret) || strings.Contains(text, "\n") {
			t.Errorf("the password is in it, or it is not one line: %q", text)
		}
	}
}

func TestURLs(t *testing.T) {
	for _, test := range []struct{ address, message string }{
		{"redis://u:" + secret + "@h:port", "its URL cannot be read"},
		{"redis://u:" + secret + "%zz@h", "its URL cannot be read"},
		{"http://u:" + secret + "@h", "begins with redis:// or rediss://"},
		{"redis://u:" + secret + "@h/one", "its URL cannot be used: invalid database number"},
		{"redis://u:" + secret + "@h?colour=red", "its URL cannot be used: unexpected option: colour"},
		{"redis://u:" + secret + "@h?a=b;c", "the parameters of its URL cannot be read"},
		{"redis://u:" + secret + "@h?timeout=soon", "its timeout must be a duration such as 10s"},
		{"redis://u:" + secret + "@h?timeout=0s", "its timeout must be more than 0"},
		{"redis://u:" + secret + "@h?key_prefix={a}", "must hold neither { nor }"},
		{"redis://u:" + secret + "@h?cluster=perhaps", "cluster is true or false"},
		{"redis://u:" + secret + "@h/3?cluster=true", "a cluster has the database 0 only"},
	} {
		_, err := redis.Open(test.address)
		fault(t, err, memory.Unavailable, test.message)
	}
	s := open(t, "rediss://u:"+secret+"@h:6380/2?read_timeout=3s")
	if s.Location() != "rediss://h:6380/2" {
		t.Errorf("place %s", s.Location())
	}
	must(t, s.Close())
}

// send says commands to a server, in its inline form, beside the store.
func send(t *testing.T, s *servertest.Server, commands ...string) string {
	t.Helper()
	conn, err := net.Dial("tcp", s.Address())
	must(t, err)
	defer func() { must(t, conn.Close()) }()
	answers := bufio.NewReader(conn)
	var last string
	for _, c := range commands {
		_, err := fmt.Fprintf(conn, "%s\r\n", c)
		must(t, err)
		last, err = answers.ReadString('\n')
		must(t, err)
		if strings.HasPrefix(last, "-") {
			t.Fatalf("%s: %s", c, last)
		}
		if strings.HasPrefix(last, "$") { // what follows has a length of its own
			last, err = answers.ReadString('\n')
			must(t, err)
		}
	}
	return strings.TrimSpace(last)
}

func TestFaults(t *testing.T) {
	locked := own(t, "--requirepass", secret)
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	for name, test := range map[string]struct {
		address string
		problem memory.ErrorKind
		message string
	}{
		"no password": {"redis://" + locked.Address(), memory.Denied, "it wants a password"},
		"password":    {"redis://:x" + secret + "@" + locked.Address(), memory.Denied, "it refuses the user or the password"},
		"nobody":      {"redis://:" + secret + "@" + servertest.Refused(t), memory.Unavailable, "it cannot be reached: connect: connection refused"},
		"host":        {"redis://:" + secret + "@no..where", memory.Unavailable, "there is no host no..where"}, // a name that nobody asks a name server for
		"web server":  {"redis://" + web.Listener.Addr().String(), memory.Unavailable, "what answers there does not speak Redis's protocol"},
		"database":    {"redis://:" + secret + "@" + locked.Address() + "/99", memory.Unavailable, "DB index is out of range"},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, test.address)
			defer func() { must(t, s.Close()) }()
			fault(t, s.Apply(t.Context(), key, change()), test.problem, test.message)
			_, err := s.Head(t.Context(), key)
			fault(t, err, test.problem, test.message)
		})
	}
	t.Run("closed", func(t *testing.T) {
		s := open(t, "redis://"+locked.Address())
		must(t, s.Close())
		fault(t, s.Apply(t.Context(), key, change()), memory.Unavailable, "it was closed")
	})
}

// TestFull: when the server's memory is full nothing is half there, and it goes
// on when there is room again.
func TestFull(t *testing.T) {
	server := own(t)
	s := open(t, "redis://"+server.Address())
	defer func() { must(t, s.Close()) }()
	must(t, s.Apply(t.Context(), key, change()))
	before, err := s.Head(t.Context(), key)
	must(t, err)
	send(t, server, "CONFIG SET maxmemory 1")
	fault(t, s.Apply(t.Context(), key, memory.Change{Version: 7, Next: 8}), memory.Full, "its memory is full")
	fault(t, s.Apply(t.Context(), memory.Key{Memory: "m", Session: "new"}, change()), memory.Full, "its memory is full")
	send(t, server, "CONFIG SET maxmemory 0")
	if after, err := s.Head(t.Context(), key); err != nil || after.Version != before.Version {
		t.Errorf("%v, %v", after, err)
	}
	must(t, s.Apply(t.Context(), key, memory.Change{Version: 7, Next: 8}))
}

// TestRecords: what qtype did not write is told apart from what a newer one wrote.
func TestRecords(t *testing.T) {
	server := own(t)
	for name, test := range map[string]struct {
		change  string // a command on a key of the session, %s being its name up to the part
		problem memory.ErrorKind
		message string
	}{
		"newer":   {"HSET %shead format 99", memory.TooNew, "a newer version of qtype wrote it (this one knows format 1)"},
		"state":   {"HSET %shead state x", memory.Corrupt, "a record in it cannot be read"},
		"version": {"HSET %shead version x", memory.Corrupt, "a record in it cannot be read"},
		"type":    {"SET %shead x", memory.Corrupt, "a key is not as qtype made it"},
	} {
		t.Run(name, func(t *testing.T) {
			send(t, server, "FLUSHALL")
			s := open(t, "redis://"+server.Address())
			defer func() { must(t, s.Close()) }()
			must(t, s.Apply(t.Context(), key, change()))
			send(t, server, strings.ReplaceAll(test.change, "%s", "qtype:{"+tag+"}:"))
			_, err := s.Head(t.Context(), key)
			fault(t, err, test.problem, test.message)
			for _, err := range s.Sessions(t.Context(), "m") {
				fault(t, err, test.problem, test.message)
			}
		})
	}
	t.Run("newer session written", func(t *testing.T) {
		send(t, server, "FLUSHALL")
		s := open(t, "redis://"+server.Address())
		defer func() { must(t, s.Close()) }()
		must(t, s.Apply(t.Context(), key, change()))
		send(t, server, "HSET qtype:{"+tag+"}:head format 99")
		fault(t, s.Apply(t.Context(), key, memory.Change{Version: 7, Next: 8}), memory.TooNew, "a newer version of qtype wrote it")
	})
	t.Run("stray entry", func(t *testing.T) {
		send(t, server, "FLUSHALL")
		s := open(t, "redis://"+server.Address())
		defer func() { must(t, s.Close()) }()
		must(t, s.Apply(t.Context(), key, change()))
		send(t, server, "XADD qtype:{"+tag+"}:entries 5-0 h x")
		c := memory.Change{Version: 7, Next: 8, State: memory.State{Last: 1}, Entries: []*memory.Entry{{Seq: 1}}}
		fault(t, s.Apply(t.Context(), key, c), memory.Corrupt, "the session holds more than its head knows of")
	})
}

// tag is the hash tag of key's session: part of the format, so it never changes.
const tag = "6UxUjiy_Udu8IeD2bEslZg"

// TestScriptForgotten: a server that was flushed of its scripts learns them again.
func TestScriptForgotten(t *testing.T) {
	server := own(t)
	s := open(t, "redis://"+server.Address())
	defer func() { must(t, s.Close()) }()
	must(t, s.Apply(t.Context(), key, change()))
	send(t, server, "SCRIPT FLUSH")
	must(t, s.Apply(t.Context(), key, memory.Change{Version: 7, Next: 8}))
	send(t, server, "SCRIPT FLUSH")
	must(t, s.Delete(t.Context(), key))
}

// TestWarnings: settings that lose conversations are told, once.
func TestWarnings(t *testing.T) {
	server := own(t, "--appendonly", "no", "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")
	var mu sync.Mutex
	var told []string
	s := open(t, "redis://"+server.Address(), redis.Warn(func(line string) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, line)
	}))
	for range 3 {
		_, err := s.Head(t.Context(), key)
		must(t, err)
	}
	must(t, s.Close())
	if len(told) != 2 || !strings.Contains(told[0], "appendonly yes") || !strings.Contains(told[1], "set noeviction") {
		t.Errorf("told %q", told)
	}
	good := open(t, place(shared.Get(t)), redis.Warn(func(line string) { t.Errorf("a good server is warned of: %s", line) }))
	_, err := good.Head(t.Context(), key)
	must(t, err)
	must(t, good.Close())
}

// TestCluster: the contract on a cluster of two nodes, where keys of different
// slots cannot change together.
func TestCluster(t *testing.T) {
	one, two := own(t, "--cluster-enabled", "yes"), own(t, "--cluster-enabled", "yes")
	send(t, one, "CLUSTER ADDSLOTSRANGE 0 8000")
	send(t, two, "CLUSTER ADDSLOTSRANGE 8001 16383")
	send(t, one, fmt.Sprintf("CLUSTER MEET 127.0.0.1 %d", two.Port))
	for _, node := range []*servertest.Server{one, two} {
		ready := func() bool { return cluster(t, node) }
		for deadline := time.Now().Add(5 * time.Minute); !ready(); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("the nodes do not find each other")
			}
		}
	}
	contract(t, func() string {
		return fmt.Sprintf("redis://%s?addr=%s&key_prefix=t%d:", one.Address(), two.Address(), prefixes.Add(1))
	})
	t.Run("one node's address", func(t *testing.T) {
		s := open(t, "redis://"+one.Address())
		defer func() { must(t, s.Close()) }()
		for i := range 100 {
			if err := s.Apply(t.Context(), memory.Key{Session: fmt.Sprint(i)}, change()); err != nil {
				fault(t, err, memory.Unavailable, "add cluster=true to the URL")
				return
			}
		}
		t.Error("all sessions lie on one node")
	})
}

// cluster tells whether a node knows the whole cluster.
func cluster(t *testing.T, node *servertest.Server) bool {
	conn, err := net.Dial("tcp", node.Address())
	must(t, err)
	defer func() { must(t, conn.Close()) }()
	_, err = fmt.Fprint(conn, "CLUSTER INFO\r\n")
	must(t, err)
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		if state, ok := strings.CutPrefix(lines.Text(), "cluster_state:"); ok {
			return state == "ok"
		}
	}
	return false
}

// TestLives: however a session's end and its next beginning meet, it is listed
// exactly when it is there.
func TestLives(t *testing.T) {
	s := open(t, place(shared.Get(t)))
	defer func() { must(t, s.Close()) }()
	var all sync.WaitGroup
	for w := range 4 {
		all.Go(func() {
			for range 100 {
				var err error
				if w%2 == 0 {
					err = s.Apply(context.Background(), key, change())
				} else {
					err = s.Delete(context.Background(), key)
				}
				if err != nil && !errors.Is(err, memory.ErrConflict) {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	listed := func() (sessions []string) {
		for l, err := range s.Sessions(t.Context(), "m") {
			must(t, err)
			sessions = append(sessions, l.Session)
		}
		return sessions
	}
	head, err := s.Head(t.Context(), key)
	must(t, err)
	if there := head.Version != 0; there != slices.Equal(listed(), []string{"s"}) {
		t.Errorf("there: %v, listed %q", there, listed())
	}
	must(t, s.Delete(t.Context(), key))
	if got := listed(); len(got) > 0 {
		t.Errorf("a session that is gone is listed: %q", got)
	}
	must(t, s.Apply(t.Context(), key, change()))
	if got := listed(); len(got) != 1 {
		t.Errorf("listed %q", got)
	}
}
