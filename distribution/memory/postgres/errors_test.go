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

	"github.com/qtype-dev/qtype/distribution/memory/postgres"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/storage/storagetest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/memory/storetest"
)

func TestStore_Outages(t *testing.T) {
	t.Parallel()
	s, err := servertest.Postgres()
	servertest.Need(t, err)
	defer func() { testkit.Must(t, s.Close()) }()
	const timeout = 2 * time.Second
	storetest.RunOutages(t, s, open(t, newAddress(t, s), postgres.Timeout(timeout)), timeout, servertest.Password)
}

// firstChange returns a change that creates a session.
func firstChange() store.Change {
	return store.Change{Next: 7, State: store.State{First: 1}}
}

var key = store.Key{Memory: "m", Session: "s"}

func TestOpen_InvalidURL(t *testing.T) {
	for _, test := range []struct{ address, message string }{
		{"postgres://u:" + servertest.Password + "@h:port/db", "invalid URL: percent-encode the password"},
		{"postgres://u:" + servertest.Password + "%zz@h/db", "invalid URL: percent-encode the password"},
		{"mysql://u:" + servertest.Password + "@h/db", "must begin with postgres://"},
		{"postgres://u:" + servertest.Password + "@h/db?sslmode=perhaps", "invalid URL"},
		{"postgres://u:" + servertest.Password + "@h/db?pool_max_conns=many", "invalid URL"},
		{"postgres://u:" + servertest.Password + "@h/db?timeout=soon", "its timeout must be a duration such as 10s"},
		{"postgres://u:" + servertest.Password + "@h/db?timeout=-1s", "its timeout must be more than 0"},
		{"postgres://u:" + servertest.Password + "@h/db?table_prefix=a%3Bb", "invalid table_prefix"},
		{"postgres://u:" + servertest.Password + "@h/db?table_prefix=a;b", "invalid parameters in its URL"},
		{"postgres://u:" + servertest.Password + "@h/db?table_prefix=", "invalid table_prefix"},
	} {
		_, err := postgres.Open(test.address)
		storagetest.WantError(t, err, store.Unavailable, test.message, servertest.Password)
	}
	s := open(t, "postgresql://u:"+servertest.Password+"@h:5433/db?sslmode=disable")
	if s.Location() != "postgres://h:5433/db" {
		t.Errorf("location %s", s.Location())
	}
	testkit.Must(t, s.Close())
}

// webServer returns the address of an HTTP server that rejects everything.
func webServer(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	var all sync.WaitGroup
	t.Cleanup(func() {
		testkit.Must(t, l.Close())
		all.Wait()
	})
	all.Go(func() {
		for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
			_, _ = conn.Read(make([]byte, 512)) // closing before a read would reset the connection
			_, _ = io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\n\r\n400 Bad Request")
			_ = conn.Close()
		}
	})
	return l.Addr().String()
}

func TestApply_ServerErrors(t *testing.T) {
	server := shared.Get(t)
	with := func(edit func(*url.URL)) *postgres.Store {
		u, err := url.Parse(newAddress(t, server))
		testkit.Must(t, err)
		edit(u)
		s := open(t, u.String())
		t.Cleanup(func() { testkit.Must(t, s.Close()) })
		return s
	}
	apply := func(s *postgres.Store) error { return s.Apply(t.Context(), key, firstChange()) }
	web := webServer(t)
	for name, test := range map[string]struct {
		edit    func(*url.URL)
		kind    store.ErrorKind
		message string
	}{
		"password":    {func(u *url.URL) { u.User = url.UserPassword("postgres", "x"+servertest.Password) }, store.Denied, "user or password rejected"},
		"database":    {func(u *url.URL) { u.Path = "/nowhere" }, store.Unavailable, "no such database"},
		"refused":     {func(u *url.URL) { u.Host = servertest.Refused(t) }, store.Unavailable, "cannot connect: connect: connection refused"},
		"host":        {func(u *url.URL) { u.Host = "no..where" }, store.Unavailable, "unknown host"}, // invalid, so never looked up
		"web server":  {func(u *url.URL) { u.Host = web }, store.Unavailable, "not a PostgreSQL server"},
		"search_path": {func(u *url.URL) { u.RawQuery += "&search_path=nowhere" }, store.Unavailable, "no such schema"},
	} {
		t.Run(name, func(t *testing.T) {
			storagetest.WantError(t, apply(with(test.edit)), test.kind, test.message, servertest.Password)
		})
	}
	t.Run("closed", func(t *testing.T) {
		s := open(t, newAddress(t, server))
		testkit.Must(t, s.Close())
		storagetest.WantError(t, apply(s), store.Unavailable, "the store is closed", servertest.Password)
	})
}

// execSQL runs statements on the store's database. %s is the prefix of its tables.
func execSQL(t *testing.T, address, statements string) {
	t.Helper()
	u, err := url.Parse(address)
	testkit.Must(t, err)
	q := u.Query()
	prefix := q.Get("table_prefix")
	q.Del("table_prefix")
	u.RawQuery = q.Encode()
	conn, err := pgx.Connect(t.Context(), u.String())
	testkit.Must(t, err)
	_, err = conn.Exec(t.Context(), strings.ReplaceAll(statements, "%s", prefix))
	testkit.Must(t, err)
	testkit.Must(t, conn.Close(t.Context()))
}

func TestApply_TableErrors(t *testing.T) {
	server := shared.Get(t)
	next := store.Change{Version: 7, Next: 8, State: store.State{First: 1}}
	raise := func(code string) string {
		return "CREATE FUNCTION %sraise() RETURNS trigger AS $$ BEGIN RAISE EXCEPTION 'no more' USING ERRCODE = '" + code +
			"'; END $$ LANGUAGE plpgsql; CREATE TRIGGER stop BEFORE UPDATE ON %ssessions FOR EACH ROW EXECUTE FUNCTION %sraise()"
	}
	for name, test := range map[string]struct {
		statements string
		kind       store.ErrorKind
		message    string
	}{
		"newer":   {"UPDATE %sformat SET version = 99", store.TooNew, "written by a newer version of qtype (format 99, this version supports up to 2)"},
		"no row":  {"DELETE FROM %sformat", store.Corrupt, "another program owns its table"},
		"other":   {"DROP TABLE %sformat", store.Corrupt, "set table_prefix in the URL"},
		"foreign": {"ALTER TABLE %sformat RENAME COLUMN version TO colour", store.Corrupt, "another program owns its table"},
		"missing": {"DROP TABLE %ssessions", store.Corrupt, "a table is missing"},
		"column":  {"ALTER TABLE %ssessions DROP COLUMN state", store.Corrupt, "a table lacks a column that qtype created"},
		"full":    {raise("53100"), store.Full, "the server's disk is full (no more)"},
		"lock":    {raise("55P03"), store.Locked, "locked by another process"},
		"rights":  {raise("42501"), store.Denied, "the user lacks permission"},
		"standby": {raise("25006"), store.Denied, "the server is read-only"},
	} {
		t.Run(name, func(t *testing.T) {
			address := newAddress(t, server)
			first := open(t, address)
			testkit.Must(t, first.Apply(t.Context(), key, firstChange()))
			testkit.Must(t, first.Close())
			execSQL(t, address, test.statements)
			second := open(t, address)
			defer func() { testkit.Must(t, second.Close()) }()
			storagetest.WantError(t, second.Apply(t.Context(), key, next), test.kind, test.message, servertest.Password)
		})
	}
	t.Run("record", func(t *testing.T) {
		address := newAddress(t, server)
		s := open(t, address)
		defer func() { testkit.Must(t, s.Close()) }()
		testkit.Must(t, s.Apply(t.Context(), key, firstChange()))
		execSQL(t, address, "UPDATE %ssessions SET state = 'no JSON'")
		_, err := s.Head(t.Context(), key)
		storagetest.WantError(t, err, store.Corrupt, "cannot read a record", servertest.Password)
	})
}

// TestOpen_CreatesTablesOnFirstWrite checks that reading creates no tables.
func TestOpen_CreatesTablesOnFirstWrite(t *testing.T) {
	address := newAddress(t, shared.Get(t))
	s := open(t, address)
	defer func() { testkit.Must(t, s.Close()) }()
	if head, err := s.Head(t.Context(), key); err != nil || head.Version != 0 {
		t.Errorf("%v, %v", head, err)
	}
	testkit.Must(t, s.Delete(t.Context(), key))
	execSQL(t, address, "DO $$ BEGIN ASSERT to_regclass('%sformat') IS NULL; END $$")
	testkit.Must(t, s.Apply(t.Context(), key, firstChange()))
	execSQL(t, address, "DO $$ BEGIN ASSERT to_regclass('%sformat') IS NOT NULL; END $$")
}

// TestOpen_Concurrent checks that stores that find an empty database at the same
// moment create its tables once.
func TestOpen_Concurrent(t *testing.T) {
	address := newAddress(t, shared.Get(t))
	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() {
			s, err := postgres.Open(address)
			if err == nil {
				err = s.Apply(context.Background(), store.Key{Memory: "m", Session: fmt.Sprint(i)}, firstChange())
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
	defer func() { testkit.Must(t, s.Close()) }()
	n := 0
	for _, err := range s.Sessions(t.Context(), "m") {
		testkit.Must(t, err)
		n++
	}
	if n != 12 {
		t.Errorf("%d sessions, want 12", n)
	}
}

// TestDelete_Complete checks that no row of a deleted session remains, despite
// concurrent writers.
func TestDelete_Complete(t *testing.T) {
	address := newAddress(t, shared.Get(t))
	s := open(t, address)
	defer func() { testkit.Must(t, s.Close()) }()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 50 {
				head, err := s.Head(t.Context(), key)
				if err == nil {
					c := store.Change{Version: head.Version, Next: head.Version + 1, State: head.State, Values: map[string][]byte{"a": {1}},
						Events: []store.Event{{Kind: store.EventSet}}}
					err = s.Apply(t.Context(), key, c)
				}
				if err != nil && !errors.Is(err, store.ErrConflict) {
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
	testkit.Must(t, s.Delete(t.Context(), key))
	execSQL(t, address, "DO $$ BEGIN ASSERT (SELECT count(*) FROM %sevents) = 0; ASSERT (SELECT count(*) FROM %snamed) = 0; END $$")
}
