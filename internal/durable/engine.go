package durable

import (
	"context"
	"log/slog"

	"github.com/qtype-dev/qtype/internal/batch"
	"github.com/qtype-dev/qtype/internal/parts"
	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
)

// Engine runs rows on workers. It is safe for concurrent use.
type Engine interface {
	// Batch returns what runs the rows of files.
	Batch(cfg Config) batch.Engine
	// Serve connects what runs the requests of a server.
	Serve(ctx context.Context, cfg Config, log *slog.Logger) (Server, error)
	// Work runs chunks of an application until the context ends.
	Work(ctx context.Context, app *runtime.App, cfg WorkerConfig) error
	// List returns the runs that the filter selects, the newest first.
	List(ctx context.Context, cfg Config, filter Filter) ([]Run, error)
	// Show returns a run with what it has finished.
	Show(ctx context.Context, cfg Config, id string) (*Run, error)
	// Answer answers requests of a run. Either all are taken, or none.
	Answer(ctx context.Context, cfg Config, id string, answers []Answer) error
	// Cancel ends a run, which can be resumed.
	Cancel(ctx context.Context, cfg Config, id string) error
	// Retry continues a run that has ended, with the rows that are not finished.
	// app is another version of its document, to which it moves, also if it has not ended; nil for the same document.
	Retry(ctx context.Context, cfg Config, id string, app *spec.Application) error
}

// Server runs the requests of a server on workers.
type Server interface {
	runs.Engine
	// Check logs whether a worker has the document, and which flows workers cannot run.
	Check(ctx context.Context, app *runtime.App)
	// Close ends the connection.
	Close()
}

type key struct{}

// With returns a context of a program with an engine; nil for none.
func With(ctx context.Context, e Engine) context.Context { return context.WithValue(ctx, key{}, e) }

// Has reports whether the program of a context has an engine.
func Has(ctx context.Context) bool {
	e, _ := ctx.Value(key{}).(Engine)
	return e != nil
}

// From returns the engine of the program of a context. The error, for a program without one, is a
// *parts.MissingError.
func From(ctx context.Context) (Engine, error) {
	if e, _ := ctx.Value(key{}).(Engine); e != nil {
		return e, nil
	}
	return nil, &parts.MissingError{Kind: parts.Engine, Name: Temporal}
}
