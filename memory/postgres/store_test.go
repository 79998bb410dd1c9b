package postgres_test

import (
	"fmt"
	"net/url"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/postgres"
	"github.com/qtype-dev/qtype/memory/storetest"
)

// shared is one server for all tests that do not put theirs down.
var shared = servertest.Shared{Start: func() (*servertest.Server, error) { return servertest.Postgres() }}

// prefixes gives every store tables of its own.
var prefixes atomic.Int64

func TestMain(m *testing.M) {
	storetest.WriterMain(func(place string) (memory.Store, error) { return postgres.Open(place) })
	goleak.VerifyTestMain(shared.Around(m))
}

// place is an empty store's address on a server.
func place(t testing.TB, s *servertest.Server) string {
	t.Helper()
	u, err := url.Parse(s.URL())
	must(t, err)
	q := u.Query()
	q.Set("table_prefix", fmt.Sprintf("t%d_", prefixes.Add(1)))
	u.RawQuery = q.Encode()
	return u.String()
}

func open(t testing.TB, place string, opts ...postgres.Option) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(place, opts...)
	must(t, err)
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestContract(t *testing.T) {
	s := shared.Get(t)
	places := map[string]string{}
	storetest.RunDurable(t, func(t *testing.T, folder string) memory.Store {
		if places[folder] == "" {
			places[folder] = place(t, s)
		}
		return open(t, places[folder])
	})
}

func TestProcesses(t *testing.T) {
	s := shared.Get(t)
	storetest.RunProcesses(t, func(t *testing.T) string { return place(t, s) },
		func(t *testing.T, place string) memory.Store { return open(t, place) })
}
