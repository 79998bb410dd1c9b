package redis_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/distribution/memory/redis"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/storage/storagetest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/memory/storetest"
)

// shared is the server of all tests that do not stop theirs.
var shared = servertest.Shared{Start: func() (*servertest.Server, error) { return servertest.Redis() }}

// prefixes numbers the stores of a server.
var prefixes atomic.Int64

func TestMain(m *testing.M) {
	redis.Quiet()
	storetest.WriterMain(func(newAddress string) (store.Store, error) { return redis.Open(newAddress) })
	testkit.AllowWaiting()
	goleak.VerifyTestMain(shared.Around(m))
}

// newAddress returns the address of an empty store on a server.
func newAddress(s *servertest.Server) string { return addressAt(s.Address()) }

// addressAt returns the address of an empty store on a server with an address.
func addressAt(address string) string {
	return fmt.Sprintf("redis://%s/0?key_prefix=t%d:", address, prefixes.Add(1))
}

func open(t testing.TB, newAddress string, opts ...redis.Option) *redis.Store {
	t.Helper()
	s, err := redis.Open(newAddress, opts...)
	testkit.Must(t, err)
	return s
}

func runContract(t *testing.T, newAddress func() string) {
	storagetest.RunDurable(t, newAddress, func(t *testing.T, address string) store.Store { return open(t, address) })
}

func TestStore_Contract(t *testing.T) {
	t.Parallel()
	s := shared.Get(t)
	runContract(t, func() string { return newAddress(s) })
}

func TestStore_Processes(t *testing.T) {
	s := shared.Get(t)
	storetest.RunProcesses(t, func(*testing.T) string { return newAddress(s) },
		func(t *testing.T, newAddress string) store.Store { return open(t, newAddress) })
}

func TestStore_Kills(t *testing.T) {
	s, err := servertest.Redis("--appendfsync", "always")
	servertest.Need(t, err)
	defer func() { testkit.Must(t, s.Close()) }()
	storetest.RunKills(t, s, s.Address(), addressAt, func(t *testing.T, address string) store.Store { return open(t, address) })
}
