package postgres_test

import (
	"net/url"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory/postgres"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/memory/storetest"
)

func TestStore_Network(t *testing.T) {
	const timeout = 5 * time.Second
	server := shared.Get(t)
	storetest.RunNetwork(t, server.Address(), timeout, func(address string) store.Store {
		u, err := url.Parse(newAddress(t, server))
		testkit.Must(t, err)
		u.Host = address
		return open(t, u.String(), postgres.Timeout(timeout))
	})
}
