package redis_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	driver "github.com/redis/go-redis/v9"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory/storetest"
)

// roundtripCounter counts commands; a pipeline is one.
type roundtripCounter struct{ n atomic.Int64 }

func (*roundtripCounter) DialHook(next driver.DialHook) driver.DialHook {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		return next(ctx, network, address)
	}
}

func (h *roundtripCounter) ProcessHook(next driver.ProcessHook) driver.ProcessHook {
	return func(ctx context.Context, c driver.Cmder) error {
		h.n.Add(1)
		return next(ctx, c)
	}
}

func (h *roundtripCounter) ProcessPipelineHook(next driver.ProcessPipelineHook) driver.ProcessPipelineHook {
	return func(ctx context.Context, c []driver.Cmder) error {
		h.n.Add(1)
		return next(ctx, c)
	}
}

// TestStore_Roundtrips checks that a turn is two commands.
func TestStore_Roundtrips(t *testing.T) {
	s := open(t, newAddress(shared.Get(t)))
	defer func() { testkit.Must(t, s.Close()) }()
	var sent roundtripCounter
	testkit.Must(t, s.Hook(&sent))
	storetest.RunTrips(t, s, func() int { return int(sent.n.Load()) })
}

func TestStore_RoundtripsIndependentOfLength(t *testing.T) {
	s := open(t, newAddress(shared.Get(t)))
	defer func() { testkit.Must(t, s.Close()) }()
	var sent roundtripCounter
	testkit.Must(t, s.Hook(&sent))
	storetest.RunFlat(t, s, func() int { return int(sent.n.Load()) })
}
