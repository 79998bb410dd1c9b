// Package distribution is the core of qtype with all other parts: what implements the providers,
// stores and addresses that the language has. Its command is the program of releases.
//
// A Go program that imports only the module at the root has the parts of the core. With adds the
// others:
//
//	app, err := qtype.Open(distribution.With(ctx), "app.qtype.yaml")
package distribution

import (
	"context"

	"github.com/qtype-dev/qtype/distribution/awssdk"
	"github.com/qtype-dev/qtype/distribution/buckets"
	"github.com/qtype-dev/qtype/distribution/converters"
	"github.com/qtype-dev/qtype/distribution/hugot"
	indexservers "github.com/qtype-dev/qtype/distribution/index/servers"
	memoryservers "github.com/qtype-dev/qtype/distribution/memory/servers"
	"github.com/qtype-dev/qtype/distribution/model/providers"
	"github.com/qtype-dev/qtype/distribution/parquet"
	sqlservers "github.com/qtype-dev/qtype/distribution/sqldb/servers"
	"github.com/qtype-dev/qtype/internal/convert"
	"github.com/qtype-dev/qtype/internal/records"
	"github.com/qtype-dev/qtype/internal/telemetry"
	"github.com/qtype-dev/qtype/internal/telemetry/metrics"
	"github.com/qtype-dev/qtype/internal/telemetry/otlp"
	"github.com/qtype-dev/qtype/runtime"
)

// Parts returns the table of all parts that documents name.
func Parts() runtime.Parts {
	p := runtime.Parts{
		Models: providers.Clients(), Stores: memoryservers.Openers(), Indexes: indexservers.Builders(), Databases: sqlservers.Drivers(),
		Buckets: buckets.All(), AWS: awssdk.Builder,
	}
	p.Models["hugot"] = hugot.Client()
	p.Formats = records.Codecs{records.Parquet: parquet.Codec()}
	return p
}

// Telemetry returns what sends traces and serves metrics.
func Telemetry() telemetry.Parts {
	return telemetry.Parts{OTLP: otlp.Encode, Metrics: func(process bool) telemetry.Metrics { return metrics.New(process) }}
}

// With returns a context in which documents are read and run with all parts.
func With(ctx context.Context) context.Context {
	return convert.With(telemetry.WithParts(runtime.WithParts(ctx, Parts()), Telemetry()), Converters())
}

// Converters returns the table of all converters.
func Converters() convert.Converters { return converters.Converters() }
