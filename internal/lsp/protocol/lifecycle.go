package protocol

import "encoding/json"

// InitializeParams are the parameters of initialize.
type InitializeParams struct {
	RootURI               string             `json:"rootUri"`
	RootPath              string             `json:"rootPath"`
	WorkspaceFolders      []WorkspaceFolder  `json:"workspaceFolders"`
	InitializationOptions json.RawMessage    `json:"initializationOptions"`
	Capabilities          ClientCapabilities `json:"capabilities"`
}

// WorkspaceFolder is a folder that the editor has open.
type WorkspaceFolder struct {
	URI string `json:"uri"`
}

// ClientCapabilities are the capabilities of the editor.
type ClientCapabilities struct {
	Workspace    WorkspaceClientCapabilities    `json:"workspace"`
	TextDocument TextDocumentClientCapabilities `json:"textDocument"`
}

// WorkspaceClientCapabilities are the capabilities of the editor's workspace.
type WorkspaceClientCapabilities struct {
	DidChangeWatchedFiles struct {
		DynamicRegistration bool `json:"dynamicRegistration"`
	} `json:"didChangeWatchedFiles"`
	Diagnostics struct {
		RefreshSupport bool `json:"refreshSupport"`
	} `json:"diagnostics"`
	WorkspaceEdit struct {
		DocumentChanges bool `json:"documentChanges"`
	} `json:"workspaceEdit"`
}

// TextDocumentClientCapabilities are the capabilities of the editor for documents.
type TextDocumentClientCapabilities struct {
	Diagnostic     *struct{} `json:"diagnostic"` // not nil if the editor pulls diagnostics
	DocumentSymbol struct {
		HierarchicalDocumentSymbolSupport bool `json:"hierarchicalDocumentSymbolSupport"`
	} `json:"documentSymbol"`
}

// InitializeResult is the result of initialize.
type InitializeResult struct {
	ServerInfo   ServerInfo         `json:"serverInfo"`
	Capabilities ServerCapabilities `json:"capabilities"`
}

// ServerInfo names the server for the editor's log.
type ServerInfo struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// ServerCapabilities are the features of the server.
type ServerCapabilities struct {
	PositionEncoding           string                      `json:"positionEncoding"`
	TextDocumentSync           TextDocumentSyncOptions     `json:"textDocumentSync"`
	CompletionProvider         CompletionOptions           `json:"completionProvider"`
	HoverProvider              bool                        `json:"hoverProvider"`
	DefinitionProvider         bool                        `json:"definitionProvider"`
	ReferencesProvider         bool                        `json:"referencesProvider"`
	DocumentHighlightProvider  bool                        `json:"documentHighlightProvider"`
	DocumentSymbolProvider     bool                        `json:"documentSymbolProvider"`
	DocumentFormattingProvider bool                        `json:"documentFormattingProvider"`
	RenameProvider             RenameOptions               `json:"renameProvider"`
	CodeActionProvider         CodeActionOptions           `json:"codeActionProvider"`
	DiagnosticProvider         DiagnosticOptions           `json:"diagnosticProvider"`
	SemanticTokensProvider     SemanticTokensOptions       `json:"semanticTokensProvider"`
	Workspace                  WorkspaceServerCapabilities `json:"workspace"`
}

// TextDocumentSyncOptions selects how the editor sends changes of documents.
type TextDocumentSyncOptions struct {
	OpenClose bool        `json:"openClose"`
	Change    int         `json:"change"`
	Save      SaveOptions `json:"save"`
}

// TextDocumentSyncIncremental makes the editor send edits instead of whole texts.
const TextDocumentSyncIncremental = 2

// SaveOptions selects what the editor sends when a document is saved.
type SaveOptions struct {
	IncludeText bool `json:"includeText"`
}

// CompletionOptions are the options of completion.
type CompletionOptions struct {
	TriggerCharacters []string `json:"triggerCharacters"`
}

// RenameOptions are the options of renames.
type RenameOptions struct {
	PrepareProvider bool `json:"prepareProvider"`
}

// CodeActionOptions are the options of code actions.
type CodeActionOptions struct {
	CodeActionKinds []string `json:"codeActionKinds"`
}

// DiagnosticOptions are the options of pulled diagnostics.
type DiagnosticOptions struct {
	Identifier            string `json:"identifier"`
	InterFileDependencies bool   `json:"interFileDependencies"`
	WorkspaceDiagnostics  bool   `json:"workspaceDiagnostics"`
}

// SemanticTokensOptions are the options of semantic tokens.
type SemanticTokensOptions struct {
	Legend SemanticTokensLegend `json:"legend"`
	Full   bool                 `json:"full"`
	Range  bool                 `json:"range"`
}

// SemanticTokensLegend names the types and modifiers that tokens refer to by index.
type SemanticTokensLegend struct {
	TokenTypes     []string `json:"tokenTypes"`
	TokenModifiers []string `json:"tokenModifiers"`
}

// WorkspaceServerCapabilities are the features of the server for workspaces.
type WorkspaceServerCapabilities struct {
	WorkspaceFolders WorkspaceFoldersServerCapabilities `json:"workspaceFolders"`
}

// WorkspaceFoldersServerCapabilities are the features of the server for folders.
type WorkspaceFoldersServerCapabilities struct {
	Supported           bool `json:"supported"`
	ChangeNotifications bool `json:"changeNotifications"`
}

// DidChangeWatchedFilesParams are the parameters of workspace/didChangeWatchedFiles.
type DidChangeWatchedFilesParams struct {
	Changes []FileEvent `json:"changes"`
}

// FileEvent is a change of a file on disk.
type FileEvent struct {
	URI string `json:"uri"`
}

// DidChangeWorkspaceFoldersParams are the parameters of
// workspace/didChangeWorkspaceFolders.
type DidChangeWorkspaceFoldersParams struct {
	Event WorkspaceFoldersChangeEvent `json:"event"`
}

// WorkspaceFoldersChangeEvent lists the folders that were opened and closed.
type WorkspaceFoldersChangeEvent struct {
	Added   []WorkspaceFolder `json:"added"`
	Removed []WorkspaceFolder `json:"removed"`
}

// RegistrationParams are the parameters of client/registerCapability.
type RegistrationParams struct {
	Registrations []Registration `json:"registrations"`
}

// Registration requests that the editor sends notifications about files.
type Registration struct {
	ID              string                                   `json:"id"`
	Method          string                                   `json:"method"`
	RegisterOptions DidChangeWatchedFilesRegistrationOptions `json:"registerOptions"`
}

// DidChangeWatchedFilesRegistrationOptions selects the files to watch.
type DidChangeWatchedFilesRegistrationOptions struct {
	Watchers []FileSystemWatcher `json:"watchers"`
}

// FileSystemWatcher selects files by a pattern.
type FileSystemWatcher struct {
	GlobPattern string `json:"globPattern"`
}

// ShowMessageRequestParams are the parameters of window/showMessageRequest.
type ShowMessageRequestParams struct {
	Type    int    `json:"type"`
	Message string `json:"message"`
}

// MessageTypeError is the type of error messages.
const MessageTypeError = 1
