// Package allparts has the table of the parts of this module: those of the core, and those that a program of the core
// leaves out because their drivers are large. The distribution adds the parts of its own module.
package allparts

import (
	"context"

	"github.com/qtype-dev/qtype/internal/awsauth/awssdk"
	indexservers "github.com/qtype-dev/qtype/internal/index/servers"
	"github.com/qtype-dev/qtype/internal/model/allclients"
	"github.com/qtype-dev/qtype/runtime"
)

// Parts returns the table of what documents name. The caller may change it.
func Parts() runtime.Parts {
	p := runtime.CoreParts()
	p.Indexes = indexservers.Builders()
	p.Models, p.AWS = allclients.Clients(), awssdk.Builder
	return p
}

// With returns a context in which documents are read and run with these parts.
func With(ctx context.Context) context.Context { return runtime.WithParts(ctx, Parts()) }
