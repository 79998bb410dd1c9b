package authoring

import (
	"context"
	"os"

	"github.com/qtype-dev/qtype/internal/apptest"
	"github.com/qtype-dev/qtype/internal/eval"
	"github.com/qtype-dev/qtype/internal/lint"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
)

// FileKinds returns the kinds of files other than documents that lint can check: tests and
// evaluations, with their applications. Nothing is run.
func FileKinds(o Options) []*lint.Kind {
	with := func(read loader.Options) Options {
		using := o
		using.Loader.Open, using.Loader.Fetch = read.Open, read.Fetch
		return using
	}
	tests := func(ctx context.Context, path string, read loader.Options) (string, diag.List) {
		file, list := apptest.Load(ctx, path, read, func(ctx context.Context, path string) (*spec.Application, diag.List) {
			p, list := Check(ctx, path, with(read))
			return p.Document.Application, list
		})
		if file == nil {
			return "", list
		}
		return textfmt.Count(len(file.Suite.Tests), "test"), list
	}
	evaluations := func(ctx context.Context, path string, read loader.Options) (string, diag.List) {
		e, list := eval.Load(ctx, eval.Request{Path: path}, read, func(ctx context.Context, path string, env map[string]string, edit func(*spec.Document)) (*spec.Application, diag.List) {
			using := with(read)
			using.Edit = edit
			using.SetVariables(env)
			p, list := Check(ctx, path, using)
			return p.Document.Application, list
		})
		if e == nil {
			return "", list
		}
		return e.Summary(), list
	}
	return []*lint.Kind{
		{Suffixes: apptest.Suffixes(), Command: "test", Check: tests, Rules: apptest.Rules(), Content: &spec.Suite{}, Schema: apptest.Schema(), Document: apptest.Application},
		{Suffixes: eval.Suffixes(), Command: "eval", Check: evaluations, Rules: eval.Rules(), Content: &spec.Evaluation{}, Schema: eval.Schema(), Document: eval.Application},
	}
}

// SetVariables sets environment variables for a document.
func (o *Options) SetVariables(env map[string]string) {
	if len(env) == 0 {
		return
	}
	o.Loader.Lookup = func(name string) (string, bool) {
		if v, ok := env[name]; ok {
			return v, true
		}
		return os.LookupEnv(name)
	}
}
