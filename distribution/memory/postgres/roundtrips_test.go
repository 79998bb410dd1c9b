package postgres_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory/storetest"
)

// queryCounter counts the queries sent to the server.
type queryCounter struct{ n atomic.Int64 }

func (s *queryCounter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	s.n.Add(1)
	return ctx
}

func (*queryCounter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TestStore_Roundtrips checks that a turn is two statements.
func TestStore_Roundtrips(t *testing.T) {
	s := open(t, newAddress(t, shared.Get(t)))
	defer func() { testkit.Must(t, s.Close()) }()
	var sent queryCounter
	s.Trace(&sent)
	storetest.RunTrips(t, s, func() int { return int(sent.n.Load()) })
}

func TestStore_RoundtripsIndependentOfLength(t *testing.T) {
	s := open(t, newAddress(t, shared.Get(t)))
	defer func() { testkit.Must(t, s.Close()) }()
	var sent queryCounter
	s.Trace(&sent)
	storetest.RunFlat(t, s, func() int { return int(sent.n.Load()) })
}
