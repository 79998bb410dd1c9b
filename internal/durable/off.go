//go:build !temporal

package durable

import (
	"context"
	"log/slog"

	"github.com/qtype-dev/qtype/internal/batch"
	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/runtime"
)

// HasClient reports whether this build has the client of Temporal.
const HasClient = false

// NewEngine returns an error: this build has no client of Temporal.
func NewEngine(Config) (batch.Engine, error) { return nil, &BuildTagError{} }

// Server runs the requests of a server on Temporal.
type Server struct{ runs.Engine }

// NewServer returns an error: this build has no client of Temporal.
func NewServer(context.Context, Config, *slog.Logger) (*Server, error) { return nil, &BuildTagError{} }

// Check reports whether workers can run the flows of an application.
func (s *Server) Check(context.Context, *runtime.App) {}

// Close ends the connection.
func (s *Server) Close() {}

// Work returns an error: this build has no client of Temporal.
func Work(context.Context, *runtime.App, WorkerConfig) error { return &BuildTagError{} }

// List returns an error: this build has no client of Temporal.
func List(context.Context, Config, Filter) ([]Run, error) { return nil, &BuildTagError{} }

// Show returns an error: this build has no client of Temporal.
func Show(context.Context, Config, string) (*Run, error) { return nil, &BuildTagError{} }

// AnswerRequests returns an error: this build has no client of Temporal.
func AnswerRequests(context.Context, Config, string, []Answer) error { return &BuildTagError{} }

// Cancel returns an error: this build has no client of Temporal.
func Cancel(context.Context, Config, string) error { return &BuildTagError{} }

// Retry returns an error: this build has no client of Temporal.
func Retry(context.Context, Config, string) error { return &BuildTagError{} }
