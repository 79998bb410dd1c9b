package postgres_test

import (
	"net/url"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/postgres"
	"github.com/qtype-dev/qtype/memory/storetest"
)

func TestNetwork(t *testing.T) {
	const patience = 5 * time.Second
	server := shared.Get(t)
	storetest.RunNetwork(t, server.Address(), patience, func(address string) memory.Store {
		u, err := url.Parse(place(t, server))
		must(t, err)
		u.Host = address
		return open(t, u.String(), postgres.Timeout(patience))
	})
}
