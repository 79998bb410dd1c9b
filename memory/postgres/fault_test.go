package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/postgres"
	"github.com/qtype-dev/qtype/memory/storetest"
)

func TestOutages(t *testing.T) {
	s, err := servertest.Postgres()
	servertest.Need(t, err)
	defer func() { must(t, s.Close()) }()
	const patience = 5 * time.Second
	storetest.RunOutages(t, s, open(t, place(t, s), postgres.Timeout(patience)), patience, servertest.Password)
}

// change is a first one.
func change() memory.Change {
	return memory.Change{Next: 7, State: memory.State{First: 1}}
}

var key = memory.Key{Memory: "m", Session: "s"}

// fault wants a clear line of this kind that keeps the password.
func fault(t *testing.T, err error, problem memory.ErrorKind, message string) {
	t.Helper()
	var e *memory.StoreError
	if !errors.As(err, &e) || e.Problem != problem || !strings.Contains(err.Error(), message) {
		t.Errorf("got %v, want %s: %s", err, problem, message)
	}
	for ; err != nil; err = errors.Unwrap(err) {
		if text := err.Error(); strings.Contains(text, servertest.Password) {
			t.Errorf("the password is in %q", text)
		}
	}
	if e != nil && strings.Contains(e.Error(), "\n") {
		t.Errorf("not one line: %q", e.Error())
	}
}

func TestURLs(t *testing.T) {
	for _, test := range []struct{ address, message string }{
		{"postgres://u:" + servertest.Password + "@h:port/db", "its URL cannot be read"},
		{"postgres://u:" + servertest.Password + "%zz@h/db", "its URL cannot be read"},
		{"mysql://u:" + servertest.Password + "@h/db", "begins with postgres://"},
		{"postgres://u:" + servertest.Password + "@h/db?sslmode=perhaps", "its URL cannot be used"},
		{"postgres://u:" + servertest.Password + "@h/db?pool_max_conns=many", "its URL cannot be used"},
		{"postgres://u:" + servertest.Password + "@h/db?timeout=soon", "its timeout must be a duration such as 10s"},
		{"postgres://u:" + servertest.Password + "@h/db?timeout=-1s", "its timeout must be more than 0"},
		{"postgres://u:" + servertest.Password + "@h/db?table_prefix=a%3Bb", "the prefix of its tables"},
		{"postgres://u:" + servertest.Password + "@h/db?table_prefix=a;b", "the parameters of its URL cannot be read"},
		{"postgres://u:" + servertest.Password + "@h/db?table_prefix=", "the prefix of its tables"},
	} {
		_, err := postgres.Open(test.address)
		fault(t, err, memory.Unavailable, test.message)
	}
	s := open(t, "postgresql://u:"+servertest.Password+"@h:5433/db?sslmode=disable")
	if s.Location() != "postgres://h:5433/db" {
		t.Errorf("place %s", s.Location())
	}
	must(t, s.Close())
}

// webServer is the address of one that answers everybody that it was asked nonsense.
func webServer(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	var all sync.WaitGroup
	t.Cleanup(func() {
		must(t, l.Close())
		all.Wait()
	})
	all.Go(func() {
		for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
			_, _ = conn.Read(make([]byte, 512)) // who closes before he has read resets the connection
			_, _ = io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\n\r\n400 Bad Request")
			_ = conn.Close()
		}
	})
	return l.Addr().String()
}

func TestFaults(t *testing.T) {
	server := shared.Get(t)
	with := func(edit func(*url.URL)) *postgres.Store {
		u, err := url.Parse(place(t, server))
		must(t, err)
		edit(u)
		s := open(t, u.String())
		t.Cleanup(func() { must(t, s.Close()) })
		return s
	}
	apply := func(s *postgres.Store) error { return s.Apply(t.Context(), key, change()) }
	web := webServer(t)
	for name, test := range map[string]struct {
		edit    func(*url.URL)
		problem memory.ErrorKind
		message string
	}{
		"password":    {func(u *url.URL) { u.User = url.UserPassword("postgres", "x"+servertest.Password) }, memory.Denied, "it refuses the user or the password"},
		"database":    {func(u *url.URL) { u.Path = "/nowhere" }, memory.Unavailable, "there is no such database"},
		"nobody":      {func(u *url.URL) { u.Host = servertest.Refused(t) }, memory.Unavailable, "it cannot be reached: connect: connection refused"},
		"host":        {func(u *url.URL) { u.Host = "no..where" }, memory.Unavailable, "there is no host"}, // a name that nobody asks a name server for
		"web server":  {func(u *url.URL) { u.Host = web }, memory.Unavailable, "what answers there does not speak PostgreSQL's protocol"},
		"search_path": {func(u *url.URL) { u.RawQuery += "&search_path=nowhere" }, memory.Unavailable, "there is no such schema"},
	} {
		t.Run(name, func(t *testing.T) { fault(t, apply(with(test.edit)), test.problem, test.message) })
	}
	t.Run("closed", func(t *testing.T) {
		s := open(t, place(t, server))
		must(t, s.Close())
		fault(t, apply(s), memory.Unavailable, "it was closed")
	})
}

// sql runs statements beside the store, each %s being the prefix of its tables.
func sql(t *testing.T, address, statements string) {
	t.Helper()
	u, err := url.Parse(address)
	must(t, err)
	q := u.Query()
	prefix := q.Get("table_prefix")
	q.Del("table_prefix")
	u.RawQuery = q.Encode()
	conn, err := pgx.Connect(t.Context(), u.String())
	must(t, err)
	_, err = conn.Exec(t.Context(), strings.ReplaceAll(statements, "%s", prefix))
	must(t, err)
	must(t, conn.Close(t.Context()))
}

func TestTables(t *testing.T) {
	server := shared.Get(t)
	next := memory.Change{Version: 7, Next: 8, State: memory.State{First: 1}}
	raise := func(code string) string {
		return "CREATE FUNCTION %sraise() RETURNS trigger AS $$ BEGIN RAISE EXCEPTION 'no more' USING ERRCODE = '" + code +
			"'; END $$ LANGUAGE plpgsql; CREATE TRIGGER stop BEFORE UPDATE ON %ssessions FOR EACH ROW EXECUTE FUNCTION %sraise()"
	}
	for name, test := range map[string]struct {
		statements string
		problem    memory.ErrorKind
		message    string
	}{
		"newer":   {"UPDATE %sformat SET version = 99", memory.TooNew, "a newer version of qtype wrote it (format 99, this one knows 2)"},
		"no row":  {"DELETE FROM %sformat", memory.Corrupt, "format is another program's"},
		"other":   {"DROP TABLE %sformat", memory.Corrupt, "table_prefix in the URL chooses other names"},
		"foreign": {"ALTER TABLE %sformat RENAME COLUMN version TO colour", memory.Corrupt, "format is another program's"},
		"missing": {"DROP TABLE %ssessions", memory.Corrupt, "a table is missing"},
		"column":  {"ALTER TABLE %ssessions DROP COLUMN state", memory.Corrupt, "a table is not as qtype made it"},
		"full":    {raise("53100"), memory.Full, "no room is left on its disk (no more)"},
		"lock":    {raise("55P03"), memory.Locked, "another program keeps it locked"},
		"rights":  {raise("42501"), memory.Denied, "the user lacks permission"},
		"standby": {raise("25006"), memory.Denied, "it only lets read"},
	} {
		t.Run(name, func(t *testing.T) {
			address := place(t, server)
			first := open(t, address)
			must(t, first.Apply(t.Context(), key, change()))
			must(t, first.Close())
			sql(t, address, test.statements)
			second := open(t, address)
			defer func() { must(t, second.Close()) }()
			fault(t, second.Apply(t.Context(), key, next), test.problem, test.message)
		})
	}
	t.Run("record", func(t *testing.T) {
		address := place(t, server)
		s := open(t, address)
		defer func() { must(t, s.Close()) }()
		must(t, s.Apply(t.Context(), key, change()))
		sql(t, address, "UPDATE %ssessions SET state = 'no JSON'")
		_, err := s.Head(t.Context(), key)
		fault(t, err, memory.Corrupt, "a record in it cannot be read")
	})
}

// TestReadingMakesNothing: tables appear with the first write only.
func TestReadingMakesNothing(t *testing.T) {
	address := place(t, shared.Get(t))
	s := open(t, address)
	defer func() { must(t, s.Close()) }()
	if head, err := s.Head(t.Context(), key); err != nil || head.Version != 0 {
		t.Errorf("%v, %v", head, err)
	}
	must(t, s.Delete(t.Context(), key))
	sql(t, address, "DO $$ BEGIN ASSERT to_regclass('%sformat') IS NULL; END $$")
	must(t, s.Apply(t.Context(), key, change()))
	sql(t, address, "DO $$ BEGIN ASSERT to_regclass('%sformat') IS NOT NULL; END $$")
}

// TestManyBegin: processes that find an empty database at the same moment make
// its tables once.
func TestManyBegin(t *testing.T) {
	address := place(t, shared.Get(t))
	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() {
			s, err := postgres.Open(address)
			if err == nil {
				err = s.Apply(context.Background(), memory.Key{Memory: "m", Session: fmt.Sprint(i)}, change())
			}
			if err != nil {
				t.Error(err)
				return
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	s := open(t, address)
	defer func() { must(t, s.Close()) }()
	n := 0
	for _, err := range s.Sessions(t.Context(), "m") {
		must(t, err)
		n++
	}
	if n != 12 {
		t.Errorf("%d sessions, want 12", n)
	}
}

// TestDeleteLeavesNothing: no row of a deleted session stays behind, whoever
// writes to it meanwhile.
func TestDeleteLeavesNothing(t *testing.T) {
	address := place(t, shared.Get(t))
	s := open(t, address)
	defer func() { must(t, s.Close()) }()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 50 {
				head, err := s.Head(t.Context(), key)
				if err == nil {
					c := memory.Change{Version: head.Version, Next: head.Version + 1, State: head.State, Values: map[string][]byte{"a": {1}},
						Events: []memory.Event{{Kind: memory.EventSet}}}
					err = s.Apply(t.Context(), key, c)
				}
				if err != nil && !errors.Is(err, memory.ErrConflict) {
					t.Error(err)
				}
			}
		})
	}
	all.Go(func() {
		for range 50 {
			if err := s.Delete(t.Context(), key); err != nil {
				t.Error(err)
			}
		}
	})
	all.Wait()
	must(t, s.Delete(t.Context(), key))
	sql(t, address, "DO $$ BEGIN ASSERT (SELECT count(*) FROM %sevents) = 0; ASSERT (SELECT count(*) FROM %snamed) = 0; END $$")
}
