package qtype

import (
	"context"
	"slices"

	"github.com/qtype-dev/qtype/internal/apptest"
	"github.com/qtype-dev/qtype/internal/eval"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/validate/lint"
)

// FileKinds returns the kinds of files other than documents that lint can check: tests and
// evaluations, with their applications. Nothing is run.
func FileKinds(opts ...Option) []*lint.Kind {
	check := func(ctx context.Context, path string, open lint.Opener, more ...Option) (*Program, diag.List) {
		return Check(ctx, path, append(slices.Concat(opts, more), func(o *options) { o.loader.Open = open })...)
	}
	tests := func(ctx context.Context, path string, open lint.Opener) (string, diag.List) {
		file, list := apptest.Load(ctx, path, func(ctx context.Context, path string) (*apptest.Program, diag.List) {
			p, list := check(ctx, path, open)
			return &apptest.Program{App: p.Document.Application}, list
		})
		if file == nil {
			return "", list
		}
		return textfmt.Count(len(file.Suite.Tests), "test"), list
	}
	evaluations := func(ctx context.Context, path string, open lint.Opener) (string, diag.List) {
		e, list := eval.Load(ctx, eval.Config{Path: path}, func(ctx context.Context, path string, env map[string]string, edit func(*spec.Document)) (*eval.Program, diag.List) {
			p, list := check(ctx, path, open, withVariables(env), func(o *options) { o.edit = edit })
			return &eval.Program{App: p.Document.Application}, list
		})
		if e == nil {
			return "", list
		}
		return e.Summary(), list
	}
	return []*lint.Kind{{Suffixes: apptest.Suffixes(), Check: tests}, {Suffixes: eval.Suffixes(), Check: evaluations}}
}
