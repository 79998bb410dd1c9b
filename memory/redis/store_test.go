package redis_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/redis"
	"github.com/qtype-dev/qtype/memory/storetest"
)

// shared is one server for all tests that do not put theirs down.
var shared = servertest.Shared{Start: func() (*servertest.Server, error) { return servertest.Redis() }}

// prefixes gives every store keys of its own.
var prefixes atomic.Int64

func TestMain(m *testing.M) {
	storetest.WriterMain(func(place string) (memory.Store, error) { return redis.Open(place) })
	redis.Quiet()
	goleak.VerifyTestMain(shared.Around(m))
}

// place is an empty store's address on a server.
func place(s *servertest.Server) string {
	return fmt.Sprintf("redis://%s/0?key_prefix=t%d:", s.Address(), prefixes.Add(1))
}

func open(t testing.TB, place string, opts ...redis.Option) *redis.Store {
	t.Helper()
	s, err := redis.Open(place, opts...)
	must(t, err)
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func contract(t *testing.T, place func() string) {
	places := map[string]string{}
	storetest.RunDurable(t, func(t *testing.T, folder string) memory.Store {
		if places[folder] == "" {
			places[folder] = place()
		}
		return open(t, places[folder])
	})
}

func TestContract(t *testing.T) {
	s := shared.Get(t)
	contract(t, func() string { return place(s) })
}

func TestProcesses(t *testing.T) {
	s := shared.Get(t)
	storetest.RunProcesses(t, func(*testing.T) string { return place(s) },
		func(t *testing.T, place string) memory.Store { return open(t, place) })
}
