// Package lsp is the language server behind `qtype lsp`. While a document is
// edited it reports what `qtype validate` would report, and completes, explains,
// finds, renames and formats.
//
// A document is read in two ways. Its meaning (which id refers to what, what is wrong)
// comes from packages loader and validate, so an editor never contradicts `qtype
// validate`. The position of the cursor (entity, key) comes from package outline: while
// the user types, the document is not valid YAML. See
// docs/decisions/009-two-parsers-in-the-language-server.md.
package lsp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/qtype-dev/qtype/internal/lint"
	"github.com/qtype-dev/qtype/internal/lsp/protocol"
	"github.com/qtype-dev/qtype/spec"
)

// Options configure a server.
type Options struct {
	Version string // the program's version, for the editor's log
	Schema  string // the JSON schema of documents, a part of the program: its descriptions are shown
	// Kinds are files other than documents that the server checks and completes.
	Kinds  []*lint.Kind
	Remote bool // read remote includes, unless the editor's settings say otherwise
	// Commands are the commands of the program, such as run; the server offers to run those
	// that it knows.
	Commands []string
	// Isolated makes the server read no files and no environment variables: a document
	// of anyone can be open.
	Isolated bool
	// Today returns the day for which documents are checked; nil is no day.
	Today func() time.Time
}

// ErrNoShutdown is returned by [Serve] if the editor ended the connection without
// a shutdown request. The protocol requires exit status 1 then.
var ErrNoShutdown = errors.New("the editor closed the connection without a shutdown request")

// shutdownTimeout is how long requests may continue after the editor has gone.
const shutdownTimeout = 2 * time.Second

// Serve serves one editor until it sends exit, the input ends, or ctx is done.
// When it returns, everything it started has ended except a blocked read of in.
func Serve(ctx context.Context, in io.Reader, out io.Writer, opts Options) error {
	// The descriptions are half of a megabyte: they are read with the first file, not before the editor has an answer.
	lang := sync.OnceValue(func() *language { return mustReadLanguage(spec.LanguageOf(ctx), opts.Schema, opts.Kinds) })
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := newServer(lang, opts)
	stream := protocol.NewStream(in, out, s.waitIdle) // an editor that closed its end may still read
	conn := jsonrpc2.NewConn(ctx, stream, s, jsonrpc2.SetLogger(discardLogger{}))
	defer s.jobs.Wait()
	defer cancel()
	defer func() { _ = conn.Close() }() // may be closed already
	select {
	case <-conn.DisconnectNotify():
		if err := stream.Err(); err != nil {
			return err
		}
	case <-s.exited:
		s.waitIdle()
	case <-ctx.Done():
		return nil
	}
	if !s.shutdownRequested.Load() {
		return ErrNoShutdown
	}
	return nil
}

// discardLogger drops the library's messages: editors show standard error in
// their log.
type discardLogger struct{}

// Printf implements jsonrpc2.Logger.
func (discardLogger) Printf(string, ...any) {}

// requestHandler decodes the parameters of a request and returns its encoded result.
type requestHandler func(ctx context.Context, params json.RawMessage) (json.RawMessage, error)

// notificationHandler decodes and handles a notification.
type notificationHandler func(ctx context.Context, params json.RawMessage)

// handleRequest adapts a function with typed parameters and result.
func handleRequest[P, R any](f func(context.Context, P) (R, error)) requestHandler {
	return func(ctx context.Context, raw json.RawMessage) (json.RawMessage, error) {
		params, err := decodeParams[P](raw)
		if err != nil {
			return nil, err
		}
		result, err := f(ctx, params)
		if err != nil {
			return nil, err
		}
		return json.Marshal(result)
	}
}

// handleNotification adapts a function with typed parameters. Malformed
// notifications are dropped: they have no response.
func handleNotification[P any](f func(context.Context, P)) notificationHandler {
	return func(ctx context.Context, raw json.RawMessage) {
		if params, err := decodeParams[P](raw); err == nil {
			f(ctx, params)
		}
	}
}

// decodeParams decodes parameters. Its errors name keys of the protocol instead of
// Go types.
func decodeParams[P any](raw json.RawMessage) (params P, err error) {
	if len(raw) == 0 || string(raw) == "null" {
		return params, invalidParams("params are missing")
	}
	err = json.Unmarshal(raw, &params)
	var wrongType *json.UnmarshalTypeError
	var response *jsonrpc2.Error
	switch {
	case errors.As(err, &response):
		return params, response
	case errors.As(err, &wrongType) && wrongType.Field != "":
		return params, invalidParams("params.%s must not be of type %s", wrongType.Field, wrongType.Value)
	case err != nil:
		return params, invalidParams("params are malformed")
	}
	return params, nil
}

func invalidParams(format string, args ...any) error {
	return &jsonrpc2.Error{Code: jsonrpc2.CodeInvalidParams, Message: fmt.Sprintf(format, args...)}
}

// requestFailed returns the error of a well-formed request that cannot be served.
// Editors show its message.
func requestFailed(format string, args ...any) error {
	return &jsonrpc2.Error{Code: protocol.CodeRequestFailed, Message: fmt.Sprintf(format, args...)}
}

// openDocument returns the open document of a request.
func (s *server) openDocument(id protocol.TextDocumentIdentifier) (*document, error) {
	if d := s.workspace.document(pathOf(id.URI)); d != nil {
		return d, nil
	}
	return nil, requestFailed("the document %s is not open", id.URI)
}

// initialize starts the session.
func (s *server) initialize(ctx context.Context, conn *jsonrpc2.Conn, raw json.RawMessage) (json.RawMessage, error) {
	editor, err := decodeParams[protocol.InitializeParams](raw)
	if err != nil {
		return nil, err
	}
	var options settings
	if len(editor.InitializationOptions) > 0 {
		if err := options.UnmarshalJSON(editor.InitializationOptions); err != nil {
			return nil, err
		}
	}
	s.editor = editor
	s.workspace.setFolders(foldersOf(editor), nil)
	remote := s.workspace.remote
	remote.startJob = func(job func(context.Context)) { s.jobs.Go(func() { job(ctx) }) }
	remote.onChange = func(address string) { s.workspace.remoteChanged(address); s.recheck(ctx) }
	remote.setEnabled(s.opts.Remote)
	s.applySettings(options)
	s.initializeDone.Store(true)
	s.jobs.Go(func() { s.publisher.run(ctx, conn) })
	return encode(protocol.InitializeResult{
		ServerInfo:   protocol.ServerInfo{Name: "qtype", Version: s.opts.Version},
		Capabilities: s.capabilities(),
	}), nil
}

// foldersOf returns the paths of the open folders. Older editors send only one.
func foldersOf(p protocol.InitializeParams) []string {
	switch {
	case len(p.WorkspaceFolders) > 0:
		return folderPaths(p.WorkspaceFolders)
	case p.RootURI != "":
		return []string{pathOf(p.RootURI)}
	case p.RootPath != "":
		return []string{p.RootPath}
	}
	return nil
}

// capabilities returns the features of the server.
func (s *server) capabilities() protocol.ServerCapabilities {
	var lenses *protocol.CodeLensOptions
	if len(s.opts.Commands) > 0 {
		lenses = &protocol.CodeLensOptions{}
	}
	return protocol.ServerCapabilities{
		CodeLensProvider:           lenses,
		InlayHintProvider:          true,
		PositionEncoding:           "utf-16",
		TextDocumentSync:           protocol.TextDocumentSyncOptions{OpenClose: true, Change: protocol.TextDocumentSyncIncremental},
		CompletionProvider:         protocol.CompletionOptions{TriggerCharacters: []string{" ", ":", "-", "{", "[", ",", "/"}},
		HoverProvider:              true,
		DefinitionProvider:         true,
		ReferencesProvider:         true,
		DocumentHighlightProvider:  true,
		DocumentSymbolProvider:     true,
		FoldingRangeProvider:       true,
		WorkspaceSymbolProvider:    true,
		DocumentFormattingProvider: true,
		RenameProvider:             protocol.RenameOptions{PrepareProvider: true},
		CodeActionProvider:         protocol.CodeActionOptions{CodeActionKinds: []string{protocol.CodeActionQuickFix}},
		DiagnosticProvider:         protocol.DiagnosticOptions{Identifier: "qtype", InterFileDependencies: true},
		SemanticTokensProvider: protocol.SemanticTokensOptions{
			Legend: protocol.SemanticTokensLegend{TokenTypes: tokenTypes(), TokenModifiers: tokenModifiers()},
			Full:   true, Range: true,
		},
		Workspace: protocol.WorkspaceServerCapabilities{
			WorkspaceFolders: protocol.WorkspaceFoldersServerCapabilities{Supported: true, ChangeNotifications: true},
		},
	}
}

// initialized requests that the editor reports changes of files on disk.
func (s *server) initialized(ctx context.Context, _ json.RawMessage) {
	if !s.editor.Capabilities.Workspace.DidChangeWatchedFiles.DynamicRegistration {
		return
	}
	s.publisher.call(ctx, "client/registerCapability", encode(protocol.RegistrationParams{Registrations: []protocol.Registration{{
		ID: "qtype-files", Method: "workspace/didChangeWatchedFiles",
		RegisterOptions: protocol.DidChangeWatchedFilesRegistrationOptions{Watchers: []protocol.FileSystemWatcher{
			{GlobPattern: "**/*.{yaml,yml}"}, {GlobPattern: "**/.env"},
		}},
	}}}))
}

func (s *server) didOpen(_ context.Context, p protocol.DidOpenTextDocumentParams) {
	d := p.TextDocument
	s.workspace.open(newDocument(d.URI, pathOf(d.URI), d.Version, d.LanguageID, d.Text))
	s.publisher.notify()
}

// didChange applies edits. Edits of a document that is not open, and edits that
// end before they start, are ignored: the next whole text corrects them.
func (s *server) didChange(_ context.Context, p protocol.DidChangeTextDocumentParams) {
	d := s.workspace.document(pathOf(p.TextDocument.URI))
	if d == nil {
		return
	}
	if next, err := d.edit(p.TextDocument.Version, p.ContentChanges); err == nil {
		s.workspace.open(next)
		s.publisher.notify()
	}
}

func (s *server) didSave(_ context.Context, p protocol.TextDocumentParams) {
	s.workspace.diskChanged([]string{pathOf(p.TextDocument.URI)})
	s.workspace.remote.expire()
	s.publisher.notify()
}

func (s *server) didClose(_ context.Context, p protocol.TextDocumentParams) {
	s.workspace.close(pathOf(p.TextDocument.URI))
	s.publisher.notify()
}

// recheck checks the open documents after a change that the editor does not know
// of, such as a remote include. An editor that pulls diagnostics is asked to pull.
func (s *server) recheck(ctx context.Context) {
	s.publisher.notify()
	if s.pullsDiagnostics() && s.editor.Capabilities.Workspace.Diagnostics.RefreshSupport {
		s.publisher.call(ctx, "workspace/diagnostic/refresh", nil)
	}
}

// didChangeWatchedFiles handles changes on disk. All documents are rechecked: the
// notification does not say which of them include the files.
func (s *server) didChangeWatchedFiles(ctx context.Context, p protocol.DidChangeWatchedFilesParams) {
	var paths []string
	for _, c := range p.Changes {
		paths = append(paths, pathOf(c.URI))
	}
	s.workspace.diskChanged(paths)
	s.recheck(ctx)
}

func (s *server) didChangeWorkspaceFolders(_ context.Context, p protocol.DidChangeWorkspaceFoldersParams) {
	s.workspace.setFolders(folderPaths(p.Event.Added), folderPaths(p.Event.Removed))
	s.publisher.notify()
}

func folderPaths(folders []protocol.WorkspaceFolder) []string {
	var paths []string
	for _, f := range folders {
		paths = append(paths, pathOf(f.URI))
	}
	return paths
}

// pullsDiagnostics reports whether the editor requests diagnostics itself.
func (s *server) pullsDiagnostics() bool {
	return s.editor.Capabilities.TextDocument.Diagnostic != nil
}
