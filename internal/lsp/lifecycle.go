package lsp

import (
	"context"
	"encoding/json"

	"github.com/sourcegraph/jsonrpc2"
)

// initialize learns what the editor can do and says what the server can.
func (s *server) initialize(ctx context.Context, conn *jsonrpc2.Conn, raw json.RawMessage) (any, error) {
	if err := decode(raw, &s.editor); err != nil {
		return nil, err
	}
	var folders []string
	for _, f := range s.editor.WorkspaceFolders {
		folders = append(folders, pathOf(f.URI))
	}
	if len(folders) == 0 && s.editor.RootURI != "" {
		folders = append(folders, pathOf(s.editor.RootURI))
	}
	if len(folders) == 0 && s.editor.RootPath != "" {
		folders = append(folders, s.editor.RootPath)
	}
	s.space.setFolders(folders, nil)
	s.space.far.start = func(job func(context.Context)) { s.group.Go(func() { job(ctx) }) }
	s.space.far.arrived = func(address string) { s.space.remoteChanged(address); s.checkAgain(ctx) }
	s.space.far.setEnabled(s.opts.Remote)
	s.configure(s.editor.Options)
	s.ready.Store(true)
	s.group.Go(func() { s.publisher.run(ctx, conn) })
	return map[string]any{
		"serverInfo":   map[string]string{"name": "qtype", "version": s.opts.Version},
		"capabilities": capabilities(),
	}, nil
}

// capabilities are what the server can do.
func capabilities() map[string]any {
	return map[string]any{
		"positionEncoding": "utf-16",
		"textDocumentSync": map[string]any{"openClose": true, "change": 2, "save": map[string]bool{"includeText": false}},
		"completionProvider": map[string]any{
			"triggerCharacters": []string{" ", ":", "-", "{", "[", ","},
		},
		"hoverProvider":              true,
		"definitionProvider":         true,
		"referencesProvider":         true,
		"documentHighlightProvider":  true,
		"documentSymbolProvider":     true,
		"documentFormattingProvider": true,
		"renameProvider":             map[string]bool{"prepareProvider": true},
		"codeActionProvider":         map[string]any{"codeActionKinds": []string{kindQuickFix}},
		"diagnosticProvider": map[string]any{
			"identifier": "qtype", "interFileDependencies": true, "workspaceDiagnostics": false,
		},
		"semanticTokensProvider": map[string]any{
			"legend": map[string]any{"tokenTypes": tokenTypes(), "tokenModifiers": tokenModifiers()},
			"full":   true, "range": true,
		},
		"workspace": map[string]any{
			"workspaceFolders": map[string]any{"supported": true, "changeNotifications": true},
		},
	}
}

// initialized asks to be told of files that change outside of the editor.
func (s *server) initialized(ctx context.Context, _ json.RawMessage) {
	if !s.editor.Capabilities.Workspace.DidChangeWatchedFiles.DynamicRegistration {
		return
	}
	s.publisher.ask(ctx, "client/registerCapability", map[string]any{"registrations": []any{map[string]any{
		"id": "qtype-files", "method": "workspace/didChangeWatchedFiles",
		"registerOptions": map[string]any{"watchers": []any{
			map[string]string{"globPattern": "**/*.{yaml,yml}"}, map[string]string{"globPattern": "**/.env"},
		}},
	}}})
}

// didOpen takes a document that the editor opened.
func (s *server) didOpen(_ context.Context, p didOpenParams) {
	d := p.TextDocument
	s.space.open(newDocument(d.URI, pathOf(d.URI), d.Version, d.LanguageID, d.Text))
	s.publisher.notify()
}

// didChange takes edits. Those of a document that is not open, or that end before
// they start, are dropped: the editor's next whole text puts it right.
func (s *server) didChange(_ context.Context, p didChangeParams) {
	d := s.space.document(pathOf(p.TextDocument.URI))
	if d == nil {
		return
	}
	if next, err := d.edit(p.TextDocument.Version, p.Changes); err == nil {
		s.space.open(next)
		s.publisher.notify()
	}
}

// didSave reads again what depends on a file that was saved.
func (s *server) didSave(_ context.Context, p documentParams) {
	s.space.diskChanged([]string{pathOf(p.TextDocument.URI)})
	s.space.far.expire()
	s.publisher.notify()
}

// didClose goes back to the file on disk.
func (s *server) didClose(_ context.Context, p documentParams) {
	s.space.close(pathOf(p.TextDocument.URI))
	s.publisher.notify()
}

// didConfigure takes settings that were changed. A wrong one is shown to the user,
// for a notification has no answer.
func (s *server) didConfigure(ctx context.Context, raw json.RawMessage) {
	var p didConfigureParams
	if err := decode(raw, &p); err != nil {
		s.publisher.ask(ctx, "window/showMessageRequest", map[string]any{"type": severityError, "message": "qtype: " + err.Error()})
		return
	}
	if s.configure(p.Settings.Qtype) {
		s.space.remoteChanged("")
		s.checkAgain(ctx)
	}
}

// configure takes settings, and tells whether one changed.
func (s *server) configure(chosen settings) bool {
	return chosen.RemoteIncludes != nil && s.space.far.setEnabled(*chosen.RemoteIncludes)
}

// checkAgain has open documents checked after something changed that the editor
// does not know of. One that pulls is asked to pull.
func (s *server) checkAgain(ctx context.Context) {
	s.publisher.notify()
	if s.pulls() && s.editor.Capabilities.Workspace.Diagnostics.RefreshSupport {
		s.publisher.ask(ctx, "workspace/diagnostic/refresh", nil)
	}
}

// didChangeFiles takes changes that were made outside of the editor. It does not
// say which documents they concern, so all are looked at.
func (s *server) didChangeFiles(ctx context.Context, p watchedParams) {
	var paths []string
	for _, c := range p.Changes {
		paths = append(paths, pathOf(c.URI))
	}
	s.space.diskChanged(paths)
	s.checkAgain(ctx)
}

// didChangeFolders takes folders that were opened and closed.
func (s *server) didChangeFolders(_ context.Context, p foldersParams) {
	var add, remove []string
	for _, f := range p.Event.Added {
		add = append(add, pathOf(f.URI))
	}
	for _, f := range p.Event.Removed {
		remove = append(remove, pathOf(f.URI))
	}
	s.space.setFolders(add, remove)
	s.publisher.notify()
}

// pulls tells whether the editor asks for diagnostics itself.
func (s *server) pulls() bool { return s.editor.Capabilities.TextDocument.Diagnostic != nil }
