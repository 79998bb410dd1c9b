package lsp

import (
	"context"
	"encoding/json"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/qtype-dev/qtype/internal/lsp/protocol"
)

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
