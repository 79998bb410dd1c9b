package postgres_test

import (
	"testing"
	"time"

	"github.com/qtype-dev/qtype/distribution/memory/postgres"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/memory/storetest"
)

func TestStore_Network(t *testing.T) {
	t.Parallel()
	const timeout = 5 * time.Second
	server := shared.Get(t)
	storetest.RunNetwork(t, server.Address(), timeout, func(address string) store.Store {
		return open(t, through(t, newAddress(t, server), address), postgres.Timeout(timeout))
	})
}
