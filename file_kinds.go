package qtype

import (
	"context"
	"slices"

	"github.com/qtype-dev/qtype/internal/apptest"
	"github.com/qtype-dev/qtype/internal/eval"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/validate/lint"
)

// FileKinds returns the kinds of files other than documents that lint can check: tests and
// evaluations, with their applications. Nothing is run.
func FileKinds(opts ...Option) []*lint.Kind {
	check := func(ctx context.Context, path string, read loader.Options, more ...Option) (*Program, diag.List) {
		return Check(ctx, path, append(slices.Concat(opts, more), func(o *options) { o.loader.Open, o.loader.Fetch = read.Open, read.Fetch })...)
	}
	tests := func(ctx context.Context, path string, read loader.Options) (string, diag.List) {
		file, list := apptest.Load(ctx, path, read, func(ctx context.Context, path string) (*apptest.Program, diag.List) {
			p, list := check(ctx, path, read)
			return &apptest.Program{App: p.Document.Application}, list
		})
		if file == nil {
			return "", list
		}
		return textfmt.Count(len(file.Suite.Tests), "test"), list
	}
	evaluations := func(ctx context.Context, path string, read loader.Options) (string, diag.List) {
		e, list := eval.Load(ctx, eval.Config{Path: path}, read, func(ctx context.Context, path string, env map[string]string, edit func(*spec.Document)) (*eval.Program, diag.List) {
			p, list := check(ctx, path, read, withVariables(env), func(o *options) { o.edit = edit })
			return &eval.Program{App: p.Document.Application}, list
		})
		if e == nil {
			return "", list
		}
		return e.Summary(), list
	}
	return []*lint.Kind{
		{Suffixes: apptest.Suffixes(), Check: tests, Rules: apptest.Rules(), Content: &spec.Suite{}, Schema: apptest.Schema(), Document: apptest.Application},
		{Suffixes: eval.Suffixes(), Check: evaluations, Rules: eval.Rules(), Content: &spec.Evaluation{}, Schema: eval.Schema(), Document: eval.Application},
	}
}
