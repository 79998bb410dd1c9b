package postgres_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/qtype-dev/qtype/memory/storetest"
)

// statements counts what is sent to the server.
type statements struct{ n atomic.Int64 }

func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	s.n.Add(1)
	return ctx
}

func (*statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TestTrips: a turn is two statements, each one round trip.
func TestTrips(t *testing.T) {
	s := open(t, place(t, shared.Get(t)))
	defer func() { must(t, s.Close()) }()
	var sent statements
	s.Trace(&sent)
	storetest.RunTrips(t, s, func() int { return int(sent.n.Load()) })
}

// TestFlat: nothing costs more in a long session than in a short one.
func TestFlat(t *testing.T) {
	s := open(t, place(t, shared.Get(t)))
	defer func() { must(t, s.Close()) }()
	var sent statements
	s.Trace(&sent)
	storetest.RunFlat(t, s, func() int { return int(sent.n.Load()) })
}
