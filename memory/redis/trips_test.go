package redis_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	driver "github.com/redis/go-redis/v9"

	"github.com/qtype-dev/qtype/memory/storetest"
)

// trips counts what is sent to the server; a pipeline is sent at once.
type trips struct{ n atomic.Int64 }

func (*trips) DialHook(next driver.DialHook) driver.DialHook {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		return next(ctx, network, address)
	}
}

func (h *trips) ProcessHook(next driver.ProcessHook) driver.ProcessHook {
	return func(ctx context.Context, c driver.Cmder) error {
		h.n.Add(1)
		return next(ctx, c)
	}
}

func (h *trips) ProcessPipelineHook(next driver.ProcessPipelineHook) driver.ProcessPipelineHook {
	return func(ctx context.Context, c []driver.Cmder) error {
		h.n.Add(1)
		return next(ctx, c)
	}
}

// TestTrips: a turn is two commands, each one round trip.
func TestTrips(t *testing.T) {
	s := open(t, place(shared.Get(t)))
	defer func() { must(t, s.Close()) }()
	var sent trips
	must(t, s.Hook(&sent))
	storetest.RunTrips(t, s, func() int { return int(sent.n.Load()) })
}

// TestFlat: nothing costs more in a long session than in a short one.
func TestFlat(t *testing.T) {
	s := open(t, place(shared.Get(t)))
	defer func() { must(t, s.Close()) }()
	var sent trips
	must(t, s.Hook(&sent))
	storetest.RunFlat(t, s, func() int { return int(sent.n.Load()) })
}
