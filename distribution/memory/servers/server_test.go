package servers_test

import (
	"testing"

	"github.com/qtype-dev/qtype/distribution/memory/servers"
	"github.com/qtype-dev/qtype/internal/memory/storeurl"
	"github.com/qtype-dev/qtype/internal/server/isolationtest"
	"github.com/qtype-dev/qtype/internal/server/sessions/sessionstest"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
)

// Servers of applications that share a store on a server.
func TestApplications_OneDatabase(t *testing.T) {
	for name, newAddress := range newStores(t) {
		address := newAddress()
		t.Run(name, func(t *testing.T) {
			isolationtest.OneDatabase(t, func() (store.Store, error) { return storeurl.Open(address, storeurl.Among(servers.Openers())) })
		})
	}
}

func TestSessions_Replicas(t *testing.T) {
	for name, newAddress := range newStores(t) {
		address := newAddress()
		t.Run(name, func(t *testing.T) {
			sessionstest.Replicas(t, func() (memory.Store, error) { return storeurl.Open(address, storeurl.Among(servers.Openers())) })
		})
	}
}

func BenchmarkSessionsOfServer(b *testing.B) {
	for name, address := range newStores(b) {
		b.Run(name, func(b *testing.B) { sessionstest.Measure(b, openStore(b, address())) })
	}
}
