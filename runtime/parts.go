package runtime

import (
	"context"

	indexstore "github.com/qtype-dev/qtype/index/store"
	"github.com/qtype-dev/qtype/internal/memory/storeurl"
	"github.com/qtype-dev/qtype/internal/model/provider"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/sqldb"
)

// Parts are the tables of what a document can name: what implements providers, stores and
// addresses. A nil table is that of the core.
type Parts struct {
	Models    provider.Clients
	Stores    storeurl.Openers
	Indexes   indexstore.Builders
	Databases sqldb.Drivers
	Buckets   remotefs.Buckets
}

// CoreParts returns the tables of the core. The caller may add to them.
func CoreParts() Parts {
	return Parts{Models: provider.Core(), Stores: storeurl.Core(), Indexes: indexstore.Core(), Databases: sqldb.Core(), Buckets: remotefs.Buckets{}}
}

type partsKey struct{}

// WithParts returns a context of a program with these parts.
func WithParts(ctx context.Context, p Parts) context.Context {
	ctx = sqldb.WithDrivers(remotefs.WithBuckets(ctx, p.Buckets), p.Databases)
	return context.WithValue(ctx, partsKey{}, p)
}

// PartsOf returns the parts of the program of a context; those of the core without WithParts.
func PartsOf(ctx context.Context) Parts {
	p, _ := ctx.Value(partsKey{}).(Parts)
	return p
}
