// Package allparts has the table of the parts of this module: those of the core, and those that a program of the core
// leaves out because their drivers are large. The distribution adds the parts of its own module.
package allparts

import (
	"context"

	indexservers "github.com/qtype-dev/qtype/index/servers"
	"github.com/qtype-dev/qtype/internal/convert"
	"github.com/qtype-dev/qtype/internal/convert/systems"
	sqlservers "github.com/qtype-dev/qtype/internal/sqldb/servers"
	memoryservers "github.com/qtype-dev/qtype/memory/servers"
	"github.com/qtype-dev/qtype/runtime"
)

// Parts returns the table of what documents name. The caller may change it.
func Parts() runtime.Parts {
	p := runtime.CoreParts()
	p.Stores, p.Indexes, p.Databases = memoryservers.Openers(), indexservers.Builders(), sqlservers.Drivers()
	return p
}

// With returns a context in which documents are read and run, and files converted, with these parts.
func With(ctx context.Context) context.Context {
	return convert.With(runtime.WithParts(ctx, Parts()), systems.Converters())
}
