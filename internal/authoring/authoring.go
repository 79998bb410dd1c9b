// Package authoring has what documents, tests and evaluations need without being run: reading
// within the limits that a user or an organization sets, checking, comparing and drawing.
// The programs qtype and qtype-check, and the Go API, build on it.
package authoring

import (
	"bytes"
	"compress/gzip"
	"context"
	_ "embed"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/qtype-dev/qtype/internal/apptest"
	"github.com/qtype-dev/qtype/internal/diagram"
	"github.com/qtype-dev/qtype/internal/eval"
	"github.com/qtype-dev/qtype/internal/lint"
	"github.com/qtype-dev/qtype/internal/parts"
	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/semdiff"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/internal/trust"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
	"github.com/qtype-dev/qtype/validate"
)

//go:embed schema.json.gz
var compressedSchema []byte

// Schema returns the JSON schema of a document, for editors.
func Schema() string { return schema() }

type schemaKey struct{}

// WithSchema returns a context of a program whose documents have another schema, which extend makes.
func WithSchema(ctx context.Context, extend func() (string, error)) context.Context {
	return context.WithValue(ctx, schemaKey{}, extend)
}

// SchemaOf returns the JSON schema of the documents of the program of a context.
func SchemaOf(ctx context.Context) (string, error) {
	if extend, ok := ctx.Value(schemaKey{}).(func() (string, error)); ok && extend != nil {
		return extend()
	}
	return Schema(), nil
}

var schema = sync.OnceValue(func() string {
	unzip, err := gzip.NewReader(bytes.NewReader(compressedSchema))
	if err != nil {
		return "" // unreachable: the file is generated and tested
	}
	text, err := io.ReadAll(unzip)
	if err != nil {
		return ""
	}
	return string(text)
})

// Options are how a document is read. The zero value reads a file of the user.
type Options struct {
	Loader  loader.Options
	Edit    func(*spec.Document) // changes the document before it is checked; may be nil
	Grants  trust.Grants         // what a restricted document may reach in addition
	Sandbox bool                 // restricts a local document
	Trusted bool                 // trusts a document from an address
}

// Program is a document that has been read, checked and linked.
type Program struct {
	Document *spec.Document                   // the document; empty if nothing could be read
	Files    []*source.File                   // all files that were read, the root first
	Lookup   func(name string) (string, bool) // the environment of the document, .env files included
	User     func(name string) (string, bool) // the environment of the user; see loader.Result
	Policy   *trust.Policy                    // what the document may reach; nil for everything
	Redactor *redact.Redactor                 // knows the secrets of the document
}

// Check reads a document, checks it and links its references. It returns all errors
// and warnings in file order. The program is complete if there are no errors.
func Check(ctx context.Context, path string, o Options) (*Program, diag.List) {
	ctx, redactor := redact.Ensure(ctx)
	loaded, policy, list := o.load(ctx, path)
	if o.Edit != nil && list.Errors() == 0 {
		o.Edit(loaded.Document)
	}
	p := &Program{Document: loaded.Document, Files: loaded.Files, Lookup: loaded.Lookup, User: loaded.User, Policy: policy, Redactor: redactor}
	list = append(list, validate.CheckFor(loaded.Document, parts.From(ctx))...)
	// A comment can silence a warning, but not an error: the document could not run.
	list = lint.IgnoreWarnings(p.Files, list)
	list.Sort()
	return p, list
}

// Version is a document to compare, and how it is read.
type Version struct {
	Path    string  // the path or address
	Options Options // the zero value reads a file of the user
}

// Diff compares two documents by their meaning. If one of them has errors, Diff
// returns these as a diag.List.
func Diff(ctx context.Context, before, after Version) ([]semdiff.Change, error) {
	documents := make([]*spec.Document, 2)
	var errs diag.List
	for i, v := range []Version{before, after} {
		p, list := Check(ctx, v.Path, v.Options)
		if list.Errors() > 0 {
			errs.Add(list...)
		}
		documents[i] = p.Document
	}
	if err := errs.Err(); err != nil {
		return nil, err
	}
	return semdiff.Documents(documents[0], documents[1]), nil
}

// Draw writes a diagram of a document: its flows with their steps, the data between
// them, and the models, memories and tools that they use. Secrets are not drawn.
func Draw(ctx context.Context, w io.Writer, path string, format diagram.Format, o Options) error {
	p, list := Check(ctx, path, o)
	if err := list.Err(); err != nil {
		return err
	}
	if err := diagram.Write(w, p.Document, format); err != nil {
		return fmt.Errorf("%s: %w", remotefs.Redacted(path), err)
	}
	return nil
}

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
		{Suffixes: apptest.Suffixes(), Command: "test", Check: tests, Rules: apptest.Rules, Content: &spec.Suite{}, Schema: apptest.Schema(), Document: apptest.Application},
		{Suffixes: eval.Suffixes(), Command: "eval", Check: evaluations, Rules: eval.Rules, Content: &spec.Evaluation{}, Schema: eval.Schema(), Document: eval.Application},
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
