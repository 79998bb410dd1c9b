package redis_test

import (
	"testing"
	"time"

	"github.com/qtype-dev/qtype/distribution/memory/redis"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/memory/storetest"
)

func TestStore_Network(t *testing.T) {
	t.Parallel()
	const timeout = 5 * time.Second
	storetest.RunNetwork(t, shared.Get(t).Address(), timeout, func(address string) store.Store {
		return open(t, addressAt(address), redis.Timeout(timeout))
	})
}
