package runtime

import (
	"context"
	"maps"
	"net/http"

	indexstore "github.com/qtype-dev/qtype/index/store"
	"github.com/qtype-dev/qtype/internal/memory/storeurl"
	"github.com/qtype-dev/qtype/internal/model/provider"
	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/sqldb"
	"github.com/qtype-dev/qtype/internal/waves"
	"github.com/qtype-dev/qtype/spec"
)

// Parts are the tables of what a document can name: what implements providers, stores and
// addresses. A nil table is that of the core.
type Parts struct {
	Models    provider.Clients
	Stores    storeurl.Openers
	Indexes   indexstore.Builders
	Databases sqldb.Drivers
	Buckets   remotefs.Buckets
	Language  *spec.Language // has the declarations of parts that the program adds; nil for none

	inBatches func(m *spec.Model, api wire.Batches, next *http.Client) *http.Client // of the context; nil to make all calls at once
}

// CoreParts returns the tables of the core. The caller may add to them.
func CoreParts() Parts {
	return Parts{Models: provider.Core(), Stores: storeurl.Core(), Indexes: indexstore.Core(), Databases: sqldb.Core(), Buckets: remotefs.Buckets{}}
}

// Clone returns a copy to which parts can be added. Nil tables become those of the core.
func (p Parts) Clone() Parts {
	core := CoreParts()
	clone := Parts{Models: maps.Clone(p.Models), Stores: maps.Clone(p.Stores), Indexes: p.Indexes, Databases: p.Databases, Buckets: p.Buckets, Language: p.Language.Clone()}
	if clone.Models == nil {
		clone.Models = core.Models
	}
	if clone.Stores == nil {
		clone.Stores = core.Stores
	}
	return clone
}

type partsKey struct{}

// WithParts returns a context of a program with these parts.
func WithParts(ctx context.Context, p Parts) context.Context {
	ctx = sqldb.WithDrivers(remotefs.WithBuckets(ctx, p.Buckets), p.Databases)
	return context.WithValue(spec.WithLanguage(ctx, p.Language), partsKey{}, p)
}

// PartsOf returns the parts of the program of a context; those of the core without WithParts.
func PartsOf(ctx context.Context) Parts {
	p, _ := ctx.Value(partsKey{}).(Parts)
	p.inBatches = waves.ClientOf(ctx)
	return p
}
