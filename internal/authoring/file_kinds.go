package authoring

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"

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
		e, list := eval.Load(ctx, eval.Request{Path: path}, read, func(ctx context.Context, path string, change eval.Change) (*spec.Application, diag.List) {
			using := with(read)
			using.Change(change)
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

// Change reads a document with a change.
func (o *Options) Change(c eval.Change) {
	o.Edit = c.Edit
	if len(c.Env) > 0 {
		o.Loader.Lookup = func(name string) (string, bool) {
			if v, ok := c.Env[name]; ok {
				return v, true
			}
			return os.LookupEnv(name)
		}
	}
	if len(c.Texts) == 0 {
		return
	}
	texts := map[string][]byte{}
	for path, text := range c.Texts {
		texts[absolute(path)] = text
	}
	open := o.Loader.Open
	o.Loader.Open = func(ctx context.Context, path string) (io.ReadCloser, error) {
		if text, ok := texts[absolute(path)]; ok {
			return io.NopCloser(bytes.NewReader(text)), nil
		}
		if open == nil {
			return nil, nil
		}
		return open(ctx, path)
	}
}

// absolute returns the absolute path, or the path if there is no working directory.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
