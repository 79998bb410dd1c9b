package main

import (
	"context"

	"github.com/qtype-dev/qtype/internal/telemetry"
	"github.com/qtype-dev/qtype/runtime"
)

// startTraces returns a context whose runs are sent to the telemetry of an application,
// and a function that sends the rest and must be called at the end. A telemetry that
// cannot be used is a warning: the run does not need it.
func (s *streams) startTraces(ctx context.Context, app *runtime.App, log *logLevel) (context.Context, func()) {
	o := telemetry.Options{Version: version()}
	if log.warnings() {
		o.Warn = s.Logger("warning: ")
	}
	e, err := telemetry.Open(ctx, app, o)
	if err != nil && o.Warn != nil {
		o.Warn(err.Error() + "; no traces are sent")
	}
	return e.Context(ctx), func() { e.Close(ctx) }
}
