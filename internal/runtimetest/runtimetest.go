// Package runtimetest opens applications for tests of packages that package qtype imports: a test with
// files in its own package and qtype.Open would compile again all that is between both. It is for tests only.
package runtimetest

import (
	"context"

	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/validate"
)

// Open reads and checks a local document and makes an application of it, as qtype.Open does. Memories
// that name no store are in process. If the document has errors, the error is a diag.List.
func Open(ctx context.Context, path string, opts runtime.Options) (*runtime.App, error) {
	ctx, opts.Redactor = redact.Ensure(ctx)
	loaded, list := loader.Load(ctx, path, loader.Options{Strict: true})
	if err := append(list, validate.Check(loaded.Document)...).Err(); err != nil {
		return nil, err
	}
	if opts.Getenv == nil {
		opts.Getenv = func(name string) string { v, _ := loaded.Lookup(name); return v }
	}
	return runtime.New(loaded.Document.Application, opts)
}
