//go:build !temporal

package durable

import (
	"context"

	"github.com/qtype-dev/qtype/internal/batch"
	"github.com/qtype-dev/qtype/runtime"
)

// HasClient reports whether this build has the client of Temporal.
const HasClient = false

// NewEngine returns an error: this build has no client of Temporal.
func NewEngine(Config) (batch.Engine, error) { return nil, &BuildTagError{} }

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
