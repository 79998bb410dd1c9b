// Package qtype is the entry point of the library: it loads a document, makes an
// application of it and runs its flows.
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
// Checking and running are independent and share only package spec: Check needs no
// driver and no database, a running application no parser.
//
// Diff, Draw, Convert and Test are the tools around documents that the command qtype
// has.
package qtype

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"

	"github.com/qtype-dev/qtype/internal/auditlog"
	"github.com/qtype-dev/qtype/internal/authoring"
	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/internal/server"
	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/subprocess"
	"github.com/qtype-dev/qtype/internal/tool/factory"
	"github.com/qtype-dev/qtype/internal/tool/mockstate"
	"github.com/qtype-dev/qtype/internal/trust"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
	"github.com/qtype-dev/qtype/steps"
	"github.com/qtype-dev/qtype/tool"
)

// Schema returns the JSON schema of a document, for editors.
func Schema() string { return authoring.Schema() }

// Program is a document that has been read, checked and linked.
type Program struct {
	Document *spec.Document // the document; empty if nothing could be read
	Files    []*source.File // all files that were read, the root first

	checked    *authoring.Program
	supervisor *subprocess.Supervisor // starts the programs of tools; may be nil
	parts      runtime.Parts          // of this program
}

type options struct {
	check        authoring.Options
	run          runtime.Options
	ephemeral    bool             // nothing is stored
	storeAddress string           // see WithDefaultStore
	tools        []*spec.ToolMock // see WithToolMocks
	state        *mockstate.State // that they read and change; nil for none
	dependent    []func(*spec.Application) ([]Option, error)
}

// Option changes how a document is read or run.
type Option func(*options)

func optionsOf(opts []Option) options {
	var o options
	for _, f := range opts {
		f(&o)
	}
	return o
}

// WithStrict makes an unset environment variable an error. Runs need it.
func WithStrict() Option { return func(o *options) { o.check.Loader.Strict = true } }

// WithStore stores all memories in s instead of the stores that the document names.
// The App closes it.
func WithStore(s memory.Store) Option { return func(o *options) { o.run.Store = s } }

// WithEphemeral keeps memories in RAM: they are lost when the App is closed.
// Vectors of embedding models are not cached on disk.
func WithEphemeral() Option {
	return func(o *options) { o.run.Store, o.ephemeral = memory.NewInProcess(), true }
}

// WithWarnings calls warn with one line for what may lose conversations or makes results incomplete,
// such as a search in an index without entries. warn must be safe for concurrent use.
func WithWarnings(warn func(line string)) Option { return func(o *options) { o.run.Warn = warn } }

// WithClientTool sets the handler of the ClientTool with that id. An empty id means
// all client tools that have no other handler. The handler's result is checked
// against the tool's outputs.
func WithClientTool(id string, handler tool.ClientHandler) Option {
	return func(o *options) {
		others := o.run.Clients
		o.run.Clients = func(called string) tool.ClientHandler {
			if called == id {
				return handler
			}
			if others != nil {
				if other := others(called); other != nil {
					return other
				}
			}
			if id == "" {
				return handler
			}
			return nil
		}
	}
}

// WithApproval sets the func that approves calls of tools that an Agent lists under approve.
func WithApproval(approve tool.Approver) Option { return func(o *options) { o.run.Approve = approve } }

// WithLog calls log with each line that Python functions print. log must be safe for
// concurrent use.
func WithLog(log func(line string)) Option { return func(o *options) { o.run.Log = log } }

// WithFlowModel lets another chat model of the document answer in a flow, instead of the one
// that the document names: the steps whose text is the flow's answer call it.
func WithFlowModel(flow, model string) Option {
	return func(o *options) {
		o.check.Edit = func(d *spec.Document) {
			if d.Application != nil {
				d.Application.UseModel(flow, model)
			}
		}
	}
}

// WithMocks replaces models and tools, for tests.
func WithMocks(d runtime.Mocks) Option { return func(o *options) { o.run.Mocks = d } }

// WithOptionsFor adds the options that of returns for the application, after it is checked.
func WithOptionsFor(of func(*spec.Application) ([]Option, error)) Option {
	return func(o *options) { o.dependent = append(o.dependent, of) }
}

// WithToolMocks replaces tools by results: they are not called, and their calls need no approval.
// They precede the tools of WithMocks.
func WithToolMocks(mocks ...*spec.ToolMock) Option {
	return func(o *options) { o.tools = append(o.tools, mocks...) }
}

// applyToolMocks adds the mocks of WithToolMocks to what replaces tools.
func (o *options) applyToolMocks() {
	if len(o.tools) == 0 {
		return
	}
	others, approve := o.run.Mocks.Tool, o.run.Approve
	o.run.Mocks.Tool = func(t spec.Tool) tool.Tool {
		switch mocks := factory.MocksOf(o.tools, t.EntityID()); {
		case mocks != nil:
			return factory.NewMock(cmp.Or(o.state, mockstate.New()), t, mocks...)
		case others != nil:
			return others(t)
		}
		return nil
	}
	o.run.Approve = func(ctx context.Context, call tool.Request) (bool, string, error) {
		switch {
		case factory.MocksOf(o.tools, call.Tool.ID) != nil:
			return true, "", nil
		case approve == nil:
			return false, "no approver is configured", nil
		}
		return approve(ctx, call)
	}
}

// WithAudit records approvals, calls and results of tools. Approvals and calls are recorded before they
// have an effect: after an error the tool is not called. write must be safe for concurrent use.
func WithAudit(write func(tool.AuditRecord) error) Option {
	return func(o *options) { o.run.Audit = write }
}

// WithAuditLog is WithAudit with a file, to which each record is appended as a line of JSON. The
// error is that the file cannot be written.
func WithAuditLog(file string) (Option, error) {
	log := auditlog.New(file)
	return WithAudit(func(r tool.AuditRecord) error { return log.Append(r) }), log.Check()
}

// WithObserver reports the operations of all runs to o, for traces and metrics.
func WithObserver(o steps.Observer) Option { return func(opts *options) { opts.run.Observer = o } }

// WithFlex requests the tier flex of chat models that have it: cheaper answers, which may take minutes. It is for the
// commands.
func WithFlex() Option { return func(o *options) { o.run.Flex = true } }

// WithHTTP sets the HTTP client of models and tools.
func WithHTTP(c *http.Client) Option { return func(o *options) { o.run.HTTP = c } }

// Supervise returns a context for reading documents whose tools start programs: on Linux,
// all processes that a program starts end with it, and with this process. Call it first in
// main, because it runs this executable again as the supervisor of each program, in which it
// does not return. Other processes of the user cannot read the memory of this one any more.
func Supervise(ctx context.Context) context.Context {
	return subprocess.With(ctx, subprocess.Supervise())
}

// Check reads a document, checks it and links its references. It returns all errors
// and warnings in file order. The program is complete if there are no errors; a
// document that is not an application can be checked, but not run.
func Check(ctx context.Context, path string, opts ...Option) (*Program, diag.List) {
	o := optionsOf(opts)
	checked, list := authoring.Check(ctx, path, o.check)
	return &Program{Document: checked.Document, Files: checked.Files, checked: checked, supervisor: subprocess.SupervisorOf(ctx), parts: runtime.PartsOf(ctx)}, list
}

// Open reads and checks a document and makes an application of it. If the document
// has errors, the error is a diag.List with all of them: errors.As finds it.
func Open(ctx context.Context, path string, opts ...Option) (*runtime.App, error) {
	p, list := Check(ctx, path, append(opts[:len(opts):len(opts)], WithStrict())...)
	if err := list.Err(); err != nil {
		return nil, err
	}
	return New(p, opts...)
}

// New makes an application of a program that Check has returned without errors.
func New(p *Program, opts ...Option) (*runtime.App, error) {
	o := optionsOf(opts)
	if p.Document.Application == nil {
		return nil, fmt.Errorf("the document is not an application: only an application can run")
	}
	for _, of := range o.dependent {
		more, err := of(p.Document.Application)
		if err != nil {
			return nil, err
		}
		for _, f := range more {
			f(&o)
		}
	}
	if o.run.Store == nil {
		store, err := o.defaultStore(p)
		if err != nil {
			return nil, err
		}
		o.run.Default = store
	}
	if p.checked.Lookup != nil {
		o.run.Getenv, o.run.DocumentEnv = p.environment(o.run.Warn)
	}
	o.applyToolMocks()
	o.run.Parts = p.parts
	httpx.Pin(context.Background(), p.checked.Policy)
	o.run.Cache, o.run.Policy, o.run.Redactor, o.run.Supervisor = !o.ephemeral, p.checked.Policy, p.checked.Redactor, p.supervisor
	return runtime.New(p.Document.Application, o.run)
}

// environment returns the environment of the user and that of the document. warn, which may
// be nil, receives what a .env file sets and the user does not.
func (p *Program) environment(warn func(string)) (user, document func(name string) string) {
	document = func(name string) string { v, _ := p.checked.Lookup(name); return v }
	var warned sync.Map
	return func(name string) string {
		v, found := p.checked.User(name)
		if !found && warn != nil && document(name) != "" {
			if _, again := warned.LoadOrStore(name, true); !again {
				warn(fmt.Sprintf("%s of the .env file is not used: the document is restricted, and its .env file does not choose where your credentials go; set %s in the environment", name, name))
			}
		}
		return v
	}, document
}

// Grants are what a user allows a document that is untrusted or sandboxed.
type Grants = trust.Grants

// RefusedError reports what a document may not do; it names the flag of the command that
// would allow it.
type RefusedError = trust.RefusedError

// WithGrants allows a document from an address, or one of WithSandbox, what g lists. OutDir
// is where files of any document are written; see docs/security.md.
func WithGrants(g Grants) Option { return func(o *options) { o.check.Grants = g } }

// WithSandbox restricts a local document as if it were from an address, except that it may
// read the files in its folder and below it.
func WithSandbox() Option { return func(o *options) { o.check.Sandbox = true } }

// WithTrust trusts a document from an address as if it were a local file, and records its
// digest: until the document or one of its includes changes, it is trusted without this
// option, too.
func WithTrust() Option { return func(o *options) { o.check.Trusted = true } }

// Policy returns what the document may reach; nil if there is no limit.
func (p *Program) Policy() *trust.Policy { return p.checked.Policy }

// Server serves an application over HTTP: it is the http.Handler of qtype serve. Its
// Shutdown ends it; the application stays open.
type Server = server.Server

// Access authenticates the callers of a Server and limits what they may use.
type Access = access.Control

// AccessConfig configures an Access.
type AccessConfig = access.Config

// NewAccess returns an Access for a Handler. An error means that a key, a certificate or
// another setting is invalid.
func NewAccess(cfg AccessConfig) (*Access, error) { return access.New(cfg) }

// HandlerOptions configures a Handler. The zero value serves all callers: use it only on
// loopback, or behind a proxy with authentication.
type HandlerOptions struct {
	Access *Access      // authentication and limits; nil: none
	Store  memory.Store // state of the server, such as runs that wait; nil: the store of the application's memories
	Log    *slog.Logger // nil: nothing is logged
	NoUI   bool         // no web interface

	// MaxRuns is the number of runs at once, beyond which requests are refused; 0: 4,096.
	MaxRuns int
}

// Handler returns the http.Handler of an application, for a Go program that serves it in
// its own server:
//
//	handler := qtype.Handler(app, qtype.HandlerOptions{})
//	defer handler.Shutdown(ctx)
//	mux.Handle("/assistant/", http.StripPrefix("/assistant", handler))
func Handler(app *runtime.App, o HandlerOptions) *Server {
	return server.New(app, server.Options{Access: o.Access, Store: o.Store, Log: o.Log, NoUI: o.NoUI, MaxRuns: o.MaxRuns})
}
