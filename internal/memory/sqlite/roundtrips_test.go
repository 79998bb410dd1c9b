package sqlite_test

import (
	"context"
	"iter"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/qtype-dev/qtype/internal/memory/sqlite"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/memory/storetest"
)

// counted counts the transactions on a file.
type counted struct {
	*sqlite.Store
	n atomic.Int64
}

func (c *counted) Head(ctx context.Context, key store.Key) (store.Head, error) {
	c.n.Add(1)
	return c.Store.Head(ctx, key)
}

func (c *counted) Entries(ctx context.Context, key store.Key, q store.Query) iter.Seq2[*store.Entry, error] {
	c.n.Add(1)
	return c.Store.Entries(ctx, key, q)
}

func (c *counted) Apply(ctx context.Context, key store.Key, change store.Change) error {
	c.n.Add(1)
	return c.Store.Apply(ctx, key, change)
}

// TestRoundtrips checks that a turn is one read and one commit.
func TestRoundtrips(t *testing.T) {
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "memory.db"))
	testkit.Must(t, err)
	c := &counted{Store: s}
	defer func() { testkit.Must(t, c.Close()) }()
	storetest.RunTrips(t, c, func() int { return int(c.n.Load()) })
}

// TestRoundtrips_IndependentOfLength compares a long session with a short one.
func TestRoundtrips_IndependentOfLength(t *testing.T) {
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "memory.db"))
	testkit.Must(t, err)
	c := &counted{Store: s}
	defer func() { testkit.Must(t, c.Close()) }()
	storetest.RunFlat(t, c, func() int { return int(c.n.Load()) })
}
