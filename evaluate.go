package qtype

import (
	"context"
	"os"
	"slices"

	"github.com/qtype-dev/qtype/internal/eval"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
)

// EvaluationConfig describes what Evaluate runs.
type EvaluationConfig = eval.Config

// EvaluationReport is the result of Evaluate.
type EvaluationReport = eval.Report

// Evaluate runs a data set through a flow of an application and scores the results by
// metrics. Each row runs by itself, with memories in process. If the document or the
// evaluation has errors, the error is a diag.List. Failed of the report is
// true if the evaluation does not succeed.
func Evaluate(ctx context.Context, cfg EvaluationConfig, opts ...Option) (*EvaluationReport, error) {
	e, list := eval.Load(ctx, cfg, loader.Options{}, func(ctx context.Context, path string, env map[string]string, edit func(*spec.Document)) (*eval.Program, diag.List) {
		return openVariant(ctx, path, env, append(slices.Clone(opts), func(o *options) { o.edit = edit }))
	})
	if err := list.Err(); err != nil {
		return nil, err
	}
	return e.Run(ctx)
}

// openVariant is an eval.Opener.
func openVariant(ctx context.Context, path string, env map[string]string, opts []Option) (*eval.Program, diag.List) {
	opts = append(opts, WithStrict(), WithEphemeral())
	opts = append(opts, withVariables(env))
	p, list := Check(ctx, path, opts...)
	return &eval.Program{App: p.Document.Application, New: func() (*runtime.App, error) { return New(p, opts...) }}, list
}

// withVariables sets environment variables for a document.
func withVariables(env map[string]string) Option {
	return func(o *options) {
		if len(env) == 0 {
			return
		}
		o.loader.Lookup = func(name string) (string, bool) {
			if v, ok := env[name]; ok {
				return v, true
			}
			return os.LookupEnv(name)
		}
	}
}
