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

	"github.com/qtype-dev/qtype/distribution/buckets"
	"github.com/qtype-dev/qtype/distribution/hugot"
	"github.com/qtype-dev/qtype/distribution/parquet"
	"github.com/qtype-dev/qtype/internal/allparts"
	"github.com/qtype-dev/qtype/internal/convert"
	"github.com/qtype-dev/qtype/internal/convert/systems"
	"github.com/qtype-dev/qtype/internal/records"
	"github.com/qtype-dev/qtype/internal/telemetry"
	"github.com/qtype-dev/qtype/internal/telemetry/metrics"
	"github.com/qtype-dev/qtype/internal/telemetry/otlp"
	"github.com/qtype-dev/qtype/runtime"
)

// Parts returns the table of all parts that documents name.
func Parts() runtime.Parts {
	p := allparts.Parts()
	p.Models["hugot"] = hugot.Client()
	p.Buckets = buckets.All()
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
func Converters() convert.Converters { return systems.Converters() }
