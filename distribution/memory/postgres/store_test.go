package postgres_test

import (
	"fmt"
	"net/url"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/distribution/memory/postgres"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/storage/storagetest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/memory/storetest"
)

// shared is the server of all tests that do not stop theirs.
var shared = servertest.Shared{Start: func() (*servertest.Server, error) { return servertest.Postgres() }}

// prefixes numbers the stores of a server.
var prefixes atomic.Int64

func TestMain(m *testing.M) {
	storetest.WriterMain(func(newAddress string) (store.Store, error) { return postgres.Open(newAddress) })
	testkit.AllowWaiting()
	goleak.VerifyTestMain(shared.Around(m))
}

// newAddress returns the address of an empty store on a server.
func newAddress(t testing.TB, s *servertest.Server) string {
	t.Helper()
	u, err := url.Parse(s.URL())
	testkit.Must(t, err)
	q := u.Query()
	q.Set("table_prefix", fmt.Sprintf("t%d_", prefixes.Add(1)))
	u.RawQuery = q.Encode()
	return u.String()
}

// through returns the address of a store by way of a proxy.
func through(t testing.TB, address, proxy string) string {
	t.Helper()
	u, err := url.Parse(address)
	testkit.Must(t, err)
	u.Host = proxy
	return u.String()
}

func open(t testing.TB, newAddress string, opts ...postgres.Option) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(newAddress, opts...)
	testkit.Must(t, err)
	return s
}

func TestStore_Contract(t *testing.T) {
	t.Parallel()
	s := shared.Get(t)
	storagetest.RunDurable(t, func() string { return newAddress(t, s) },
		func(t *testing.T, address string) store.Store { return open(t, address) })
}

func TestStore_Processes(t *testing.T) {
	s := shared.Get(t)
	storetest.RunProcesses(t, func(t *testing.T) string { return newAddress(t, s) },
		func(t *testing.T, newAddress string) store.Store { return open(t, newAddress) })
}

func TestStore_Kills(t *testing.T) {
	s, err := servertest.Postgres()
	servertest.Need(t, err)
	defer func() { testkit.Must(t, s.Close()) }()
	address := newAddress(t, s)
	storetest.RunKills(t, s, s.Address(), func(proxy string) string { return through(t, address, proxy) }, func(t *testing.T, address string) store.Store { return open(t, address) })
}
