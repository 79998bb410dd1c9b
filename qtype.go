// Package qtype is the front door of the library: load a document, get an App,
// run its flows.
//
//	app, err := qtype.Open(ctx, "app.qtype.yaml")
//	…
//	defer app.Close(ctx)
//	rows := slices.Values([]runtime.Input{{Session: "c-014", Values: map[string]any{"message": "Where is my parcel?"}}})
//	for row, err := range app.Run(ctx, "triage", rows) {
//		…
//	}
//	window, err := app.Memory("chat_memory").Window(ctx, "c-014")
//
// Checking and running are two wings that meet only here and in the language's
// structs: Check needs no driver and no database, a running App no parser.
package qtype

import (
	"context"
	_ "embed" // schema.json is part of the program
	"fmt"
	"net/http"

	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/sqlite"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
	"github.com/qtype-dev/qtype/tool"
	"github.com/qtype-dev/qtype/validate"
	"github.com/qtype-dev/qtype/validate/lint"
)

// DefaultStore is where memories live unless the document or an Option says otherwise: a SQLite
// file below the working directory, made with the first message.
const DefaultStore = ".qtype/memory.db"

//go:embed schema.json
var schemaJSON string

// Schema is the JSON schema of a document, for editors.
func Schema() string { return schemaJSON }

// Program is a document that was read, checked and linked.
type Program struct {
	Document *spec.Document // what was read; empty where nothing could be
	Files    []*source.File // every file that was read, the root first

	lookup func(name string) (string, bool) // the environment that the document saw, .env files included
}

// options is what the Options set.
type options struct {
	load loader.Options
	run  runtime.Options
}

// Option changes how a document is read or run.
type Option func(*options)

// WithStrict makes an environment variable that is not set an error, as a run needs it.
func WithStrict() Option { return func(o *options) { o.load.Strict = true } }

// WithStore keeps all memories in s, whatever stores the document names. The
// App closes it.
func WithStore(s memory.Store) Option { return func(o *options) { o.run.Store = s } }

// WithEphemeral keeps memories in the process: they end with the App.
func WithEphemeral() Option { return WithStore(memory.NewInProcess()) }

// WithWarnings tells, in one line each, of stores that are set up such that they
// may lose conversations. It may be called at any time.
func WithWarnings(tell func(string)) Option { return func(o *options) { o.run.Warn = tell } }

// WithClientTool answers the ClientTool of that id; an empty id stands for all of
// those that nothing else answers. What answer returns is checked against the
// tool's outputs.
func WithClientTool(id string, answer tool.ClientHandler) Option {
	return func(o *options) {
		others := o.run.Clients
		o.run.Clients = func(asked string) tool.ClientHandler {
			if asked == id {
				return answer
			}
			if others != nil {
				if other := others(asked); other != nil {
					return other
				}
			}
			if id == "" {
				return answer
			}
			return nil
		}
	}
}

// WithApproval asks approve before an Agent calls a tool that its approve lists.
func WithApproval(approve tool.Approver) Option { return func(o *options) { o.run.Approve = approve } }

// WithLog tells, in one line each, what Python functions print. It may be called
// at any time, from several goroutines at once.
func WithLog(tell func(line string)) Option { return func(o *options) { o.run.Log = tell } }

// WithMocks lets others answer in place of models and tools, for tests.
func WithMocks(d runtime.Mocks) Option { return func(o *options) { o.run.Mocks = d } }

// WithHTTP makes models and tools use c.
func WithHTTP(c *http.Client) Option { return func(o *options) { o.run.HTTP = c } }

// Check reads a document, checks all of it and links its references. The list
// holds every fault and warning in file order; the program is complete where
// the list has no errors.
func Check(ctx context.Context, path string, opts ...Option) (*Program, diag.List) {
	var o options
	for _, f := range opts {
		f(&o)
	}
	loaded, faults := loader.Load(ctx, path, o.load)
	p := &Program{Document: loaded.Document, Files: loaded.Files, lookup: loaded.Lookup}
	faults = append(faults, validate.Check(loaded.Document)...)
	// A comment can hide a warning; an error it cannot, for what is wrong cannot run.
	faults = lint.IgnoreWarnings(p.Files, faults)
	faults.Sort()
	return p, faults
}

// Open reads, checks and readies an application. Its error holds every fault of
// the document: errors.As finds a diag.List in it.
func Open(ctx context.Context, path string, opts ...Option) (*runtime.App, error) {
	p, faults := Check(ctx, path, append(opts[:len(opts):len(opts)], WithStrict())...)
	if err := faults.Err(); err != nil {
		return nil, err
	}
	return New(p, opts...)
}

// New makes an App of a program that was checked without errors.
func New(p *Program, opts ...Option) (*runtime.App, error) {
	var o options
	for _, f := range opts {
		f(&o)
	}
	if p.Document.Application == nil {
		return nil, fmt.Errorf("the document is not an application: only an application can run")
	}
	if o.run.Store == nil {
		store, err := sqlite.Open(DefaultStore)
		if err != nil {
			return nil, err
		}
		o.run.Default = store
	}
	if o.run.Getenv == nil && p.lookup != nil {
		o.run.Getenv = func(name string) string { v, _ := p.lookup(name); return v }
	}
	return runtime.New(p.Document.Application, o.run)
}
