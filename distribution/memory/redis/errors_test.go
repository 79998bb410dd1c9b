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

	"github.com/qtype-dev/qtype/distribution/memory/redis"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/storage/storagetest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/memory/storetest"
)

const secret = "s3cret-word"

// startServer starts a server for one test.
func startServer(t *testing.T, settings ...string) *servertest.Server {
	t.Helper()
	s, err := servertest.Redis(settings...)
	servertest.Need(t, err)
	t.Cleanup(func() { testkit.Must(t, s.Close()) })
	return s
}

func TestStore_Outages(t *testing.T) {
	t.Parallel()
	s := startServer(t, "--requirepass", secret, "--appendfsync", "always")
	const timeout = 2 * time.Second
	address := "redis://:" + secret + "@" + s.Address()
	storetest.RunOutages(t, s, open(t, address, redis.Timeout(timeout)), timeout, secret)
}

// firstChange returns a change that creates a session.
func firstChange() store.Change { return store.Change{Next: 7, State: store.State{First: 1}} }

var key = store.Key{Memory: "m", Session: "s"}

func TestOpen_InvalidURL(t *testing.T) {
	for _, test := range []struct{ address, message string }{
		{"redis://u:" + secret + "@h:port", "invalid URL: percent-encode the password"},
		{"redis://u:" + secret + "%zz@h", "invalid URL: percent-encode the password"},
		{"http://u:" + secret + "@h", "must begin with redis:// or rediss://"},
		{"redis://u:" + secret + "@h/one", "invalid URL: invalid database number"},
		{"redis://u:" + secret + "@h?colour=red", "invalid URL: unexpected option: colour"},
		{"redis://u:" + secret + "@h?a=b;c", "invalid parameters in its URL"},
		{"redis://u:" + secret + "@h?timeout=soon", "its timeout must be a duration such as 10s"},
		{"redis://u:" + secret + "@h?timeout=0s", "its timeout must be more than 0"},
		{"redis://u:" + secret + "@h?key_prefix={a}", "must not contain { or }"},
		{"redis://u:" + secret + "@h?cluster=perhaps", "cluster must be true or false"},
		{"redis://u:" + secret + "@h/3?cluster=true", "a cluster has only database 0"},
	} {
		_, err := redis.Open(test.address)
		storagetest.WantError(t, err, store.Unavailable, test.message, secret)
	}
	s := open(t, "rediss://u:"+secret+"@h:6380/2?read_timeout=3s")
	if s.Location() != "rediss://h:6380/2" {
		t.Errorf("location %s", s.Location())
	}
	testkit.Must(t, s.Close())
}

// send executes commands on a server, in inline form, and returns the last reply.
func send(t *testing.T, s *servertest.Server, commands ...string) string {
	t.Helper()
	conn, err := net.Dial("tcp", s.Address())
	testkit.Must(t, err)
	defer func() { testkit.Must(t, conn.Close()) }()
	replies := bufio.NewReader(conn)
	var last string
	for _, c := range commands {
		_, err := fmt.Fprintf(conn, "%s\r\n", c)
		testkit.Must(t, err)
		last, err = replies.ReadString('\n')
		testkit.Must(t, err)
		if strings.HasPrefix(last, "-") {
			t.Fatalf("%s: %s", c, last)
		}
		if strings.HasPrefix(last, "$") { // a bulk string
			last, err = replies.ReadString('\n')
			testkit.Must(t, err)
		}
	}
	return strings.TrimSpace(last)
}

func TestApply_ServerErrors(t *testing.T) {
	locked := startServer(t, "--requirepass", secret)
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	for name, test := range map[string]struct {
		address string
		kind    store.ErrorKind
		message string
	}{
		"no password": {"redis://" + locked.Address(), store.Denied, "password required"},
		"password":    {"redis://:x" + secret + "@" + locked.Address(), store.Denied, "user or password rejected"},
		"refused":     {"redis://:" + secret + "@" + servertest.Refused(t), store.Unavailable, "cannot connect: connect: connection refused"},
		"host":        {"redis://:" + secret + "@no..where", store.Unavailable, "unknown host no..where"}, // invalid, so never looked up
		"web server":  {"redis://" + web.Listener.Addr().String(), store.Unavailable, "not a Redis server"},
		"database":    {"redis://:" + secret + "@" + locked.Address() + "/99", store.Unavailable, "DB index is out of range"},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, test.address)
			defer func() { testkit.Must(t, s.Close()) }()
			storagetest.WantError(t, s.Apply(t.Context(), key, firstChange()), test.kind, test.message, secret)
			_, err := s.Head(t.Context(), key)
			storagetest.WantError(t, err, test.kind, test.message, secret)
		})
	}
	t.Run("closed", func(t *testing.T) {
		s := open(t, "redis://"+locked.Address())
		testkit.Must(t, s.Close())
		storagetest.WantError(t, s.Apply(t.Context(), key, firstChange()), store.Unavailable, "the store is closed", secret)
	})
}

// TestApply_ServerFull checks that a server without memory applies nothing, and
// recovers.
func TestApply_ServerFull(t *testing.T) {
	server := startServer(t)
	s := open(t, "redis://"+server.Address())
	defer func() { testkit.Must(t, s.Close()) }()
	testkit.Must(t, s.Apply(t.Context(), key, firstChange()))
	before, err := s.Head(t.Context(), key)
	testkit.Must(t, err)
	send(t, server, "CONFIG SET maxmemory 1")
	storagetest.WantError(t, s.Apply(t.Context(), key, store.Change{Version: 7, Next: 8}), store.Full, "the server is out of memory", secret)
	storagetest.WantError(t, s.Apply(t.Context(), store.Key{Memory: "m", Session: "new"}, firstChange()), store.Full, "the server is out of memory", secret)
	send(t, server, "CONFIG SET maxmemory 0")
	if after, err := s.Head(t.Context(), key); err != nil || after.Version != before.Version {
		t.Errorf("%v, %v", after, err)
	}
	testkit.Must(t, s.Apply(t.Context(), key, store.Change{Version: 7, Next: 8}))
}

// TestHead_InvalidRecords checks that records of a newer version are not reported
// as corrupt.
func TestHead_InvalidRecords(t *testing.T) {
	server := startServer(t)
	for name, test := range map[string]struct {
		command string // a command; %s is the prefix of the session's keys
		kind    store.ErrorKind
		message string
	}{
		"newer":   {"HSET %shead format 99", store.TooNew, "written by a newer version of qtype (this version supports up to format 2)"},
		"state":   {"HSET %shead state x", store.Corrupt, "cannot read a record"},
		"version": {"HSET %shead version x", store.Corrupt, "cannot read a record"},
		"type":    {"SET %shead x", store.Corrupt, "a key has another type than qtype created"},
	} {
		t.Run(name, func(t *testing.T) {
			send(t, server, "FLUSHALL")
			s := open(t, "redis://"+server.Address())
			defer func() { testkit.Must(t, s.Close()) }()
			testkit.Must(t, s.Apply(t.Context(), key, firstChange()))
			send(t, server, strings.ReplaceAll(test.command, "%s", "qtype:{"+tag+"}:"))
			_, err := s.Head(t.Context(), key)
			storagetest.WantError(t, err, test.kind, test.message, secret)
			for _, err := range s.Sessions(t.Context(), "m") {
				storagetest.WantError(t, err, test.kind, test.message, secret)
			}
		})
	}
	t.Run("newer session written", func(t *testing.T) {
		send(t, server, "FLUSHALL")
		s := open(t, "redis://"+server.Address())
		defer func() { testkit.Must(t, s.Close()) }()
		testkit.Must(t, s.Apply(t.Context(), key, firstChange()))
		send(t, server, "HSET qtype:{"+tag+"}:head format 99")
		storagetest.WantError(t, s.Apply(t.Context(), key, store.Change{Version: 7, Next: 8}), store.TooNew, "written by a newer version of qtype", secret)
	})
	t.Run("stray entry", func(t *testing.T) {
		send(t, server, "FLUSHALL")
		s := open(t, "redis://"+server.Address())
		defer func() { testkit.Must(t, s.Close()) }()
		testkit.Must(t, s.Apply(t.Context(), key, firstChange()))
		send(t, server, "RPUSH qtype:{"+tag+"}:messages 5")
		c := store.Change{Version: 7, Next: 8, State: store.State{Last: 1}, Entries: []*store.Entry{{Seq: 1}}}
		storagetest.WantError(t, s.Apply(t.Context(), key, c), store.Corrupt, "the session has entries that its head does not count", secret)
	})
}

// tag is the hash tag of key's session. It is part of the format: never change it.
const tag = "6UxUjiy_Udu8IeD2bEslZg"

// TestApply_ScriptFlush checks that a script is loaded again.
func TestApply_ScriptFlush(t *testing.T) {
	server := startServer(t)
	s := open(t, "redis://"+server.Address())
	defer func() { testkit.Must(t, s.Close()) }()
	testkit.Must(t, s.Apply(t.Context(), key, firstChange()))
	send(t, server, "SCRIPT FLUSH")
	testkit.Must(t, s.Apply(t.Context(), key, store.Change{Version: 7, Next: 8}))
	send(t, server, "SCRIPT FLUSH")
	testkit.Must(t, s.Delete(t.Context(), key))
}

// TestWarn checks that settings that lose conversations are reported once.
func TestWarn(t *testing.T) {
	server := startServer(t, "--appendonly", "no", "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")
	var mu sync.Mutex
	var warnings []string
	s := open(t, "redis://"+server.Address(), redis.Warn(func(line string) {
		mu.Lock()
		defer mu.Unlock()
		warnings = append(warnings, line)
	}))
	for range 3 {
		_, err := s.Head(t.Context(), key)
		testkit.Must(t, err)
	}
	testkit.Must(t, s.Close())
	if len(warnings) != 2 || !strings.Contains(warnings[0], "appendonly yes") || !strings.Contains(warnings[1], "set noeviction") {
		t.Errorf("warnings %q", warnings)
	}
	good := open(t, newAddress(shared.Get(t)), redis.Warn(func(line string) { t.Errorf("warning for correct settings: %s", line) }))
	_, err := good.Head(t.Context(), key)
	testkit.Must(t, err)
	testkit.Must(t, good.Close())
}

// TestStore_Cluster runs the contract on a cluster of two nodes, where keys of
// different slots cannot change together.
func TestStore_Cluster(t *testing.T) {
	t.Parallel()
	one, two := startServer(t, "--cluster-enabled", "yes"), startServer(t, "--cluster-enabled", "yes")
	send(t, one, "CLUSTER ADDSLOTSRANGE 0 8000")
	send(t, two, "CLUSTER ADDSLOTSRANGE 8001 16383")
	send(t, one, fmt.Sprintf("CLUSTER MEET 127.0.0.1 %d", two.Port))
	for _, node := range []*servertest.Server{one, two} {
		ready := func() bool { return clusterReady(t, node) }
		for deadline := time.Now().Add(5 * time.Minute); !ready(); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("the nodes did not form a cluster")
			}
		}
	}
	runContract(t, func() string {
		return fmt.Sprintf("redis://%s?addr=%s&key_prefix=t%d:", one.Address(), two.Address(), prefixes.Add(1))
	})
	t.Run("one node's address", func(t *testing.T) {
		s := open(t, "redis://"+one.Address())
		defer func() { testkit.Must(t, s.Close()) }()
		for i := range 100 {
			if err := s.Apply(t.Context(), store.Key{Session: fmt.Sprint(i)}, firstChange()); err != nil {
				storagetest.WantError(t, err, store.Unavailable, "add cluster=true to the URL", secret)
				return
			}
		}
		t.Error("all sessions are on one node")
	})
}

// clusterReady reports whether a node knows the whole cluster.
func clusterReady(t *testing.T, node *servertest.Server) bool {
	conn, err := net.Dial("tcp", node.Address())
	testkit.Must(t, err)
	defer func() { testkit.Must(t, conn.Close()) }()
	_, err = fmt.Fprint(conn, "CLUSTER INFO\r\n")
	testkit.Must(t, err)
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		if state, ok := strings.CutPrefix(lines.Text(), "cluster_state:"); ok {
			return state == "ok"
		}
	}
	return false
}

// TestSessions_ConcurrentDelete checks that a session is listed exactly if it exists,
// after concurrent deletions and creations.
func TestSessions_ConcurrentDelete(t *testing.T) {
	s := open(t, newAddress(shared.Get(t)))
	defer func() { testkit.Must(t, s.Close()) }()
	var all sync.WaitGroup
	for w := range 4 {
		all.Go(func() {
			for range 100 {
				var err error
				if w%2 == 0 {
					err = s.Apply(context.Background(), key, firstChange())
				} else {
					err = s.Delete(context.Background(), key)
				}
				if err != nil && !errors.Is(err, store.ErrConflict) {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	listed := func() (sessions []string) {
		for l, err := range s.Sessions(t.Context(), "m") {
			testkit.Must(t, err)
			sessions = append(sessions, l.Session)
		}
		return sessions
	}
	head, err := s.Head(t.Context(), key)
	testkit.Must(t, err)
	if exists := head.Version != 0; exists != slices.Equal(listed(), []string{"s"}) {
		t.Errorf("exists: %v, listed %q", exists, listed())
	}
	testkit.Must(t, s.Delete(t.Context(), key))
	if got := listed(); len(got) > 0 {
		t.Errorf("a deleted session is listed: %q", got)
	}
	testkit.Must(t, s.Apply(t.Context(), key, firstChange()))
	if got := listed(); len(got) != 1 {
		t.Errorf("listed %q", got)
	}
}
