package protocol

import "encoding/json"

// InitializeParams are the parameters of initialize.
type InitializeParams struct {
	RootURI               string             `json:"rootUri"`               // the folder of editors without workspace folders
	RootPath              string             `json:"rootPath"`              // the same as a path, for older editors
	WorkspaceFolders      []WorkspaceFolder  `json:"workspaceFolders"`      // the open folders
	InitializationOptions json.RawMessage    `json:"initializationOptions"` // the settings of the user
	Capabilities          ClientCapabilities `json:"capabilities"`          // what the editor supports
}

// WorkspaceFolder is a folder that the editor has open.
type WorkspaceFolder struct {
	URI string `json:"uri"` // the folder
}

// ClientCapabilities are the capabilities of the editor.
type ClientCapabilities struct {
	Workspace    WorkspaceClientCapabilities    `json:"workspace"`    // of the workspace
	TextDocument TextDocumentClientCapabilities `json:"textDocument"` // of documents
}

// WorkspaceClientCapabilities are the capabilities of the editor's workspace.
type WorkspaceClientCapabilities struct {
	// DidChangeWatchedFiles reports whether the server may ask for changes of files.
	DidChangeWatchedFiles struct {
		DynamicRegistration bool `json:"dynamicRegistration"` // whether client/registerCapability is supported
	} `json:"didChangeWatchedFiles"`
	// Diagnostics reports whether the server may ask to pull again.
	Diagnostics struct {
		RefreshSupport bool `json:"refreshSupport"` // whether workspace/diagnostic/refresh is supported
	} `json:"diagnostics"`
	// WorkspaceEdit has the forms of edits.
	WorkspaceEdit struct {
		DocumentChanges bool `json:"documentChanges"` // whether edits may name versions
	} `json:"workspaceEdit"`
}

// TextDocumentClientCapabilities are the capabilities of the editor for documents.
type TextDocumentClientCapabilities struct {
	Diagnostic *struct{} `json:"diagnostic"` // not nil if the editor pulls diagnostics
	// DocumentSymbol has the forms of the outline.
	DocumentSymbol struct {
		HierarchicalDocumentSymbolSupport bool `json:"hierarchicalDocumentSymbolSupport"` // whether the outline is a tree
	} `json:"documentSymbol"`
}

// InitializeResult is the result of initialize.
type InitializeResult struct {
	ServerInfo   ServerInfo         `json:"serverInfo"`   // the name of the server
	Capabilities ServerCapabilities `json:"capabilities"` // its features
}

// ServerInfo names the server for the editor's log.
type ServerInfo struct {
	Name    string `json:"name"`    // qtype
	Version string `json:"version"` // that of the program
}

// ServerCapabilities are the features of the server.
type ServerCapabilities struct {
	PositionEncoding           string                      `json:"positionEncoding"`           // the unit of columns: utf-16
	TextDocumentSync           TextDocumentSyncOptions     `json:"textDocumentSync"`           // how changes are sent
	CompletionProvider         CompletionOptions           `json:"completionProvider"`         // textDocument/completion
	HoverProvider              bool                        `json:"hoverProvider"`              // textDocument/hover
	DefinitionProvider         bool                        `json:"definitionProvider"`         // textDocument/definition
	ReferencesProvider         bool                        `json:"referencesProvider"`         // textDocument/references
	DocumentHighlightProvider  bool                        `json:"documentHighlightProvider"`  // textDocument/documentHighlight
	DocumentSymbolProvider     bool                        `json:"documentSymbolProvider"`     // textDocument/documentSymbol
	DocumentLinkProvider       DocumentLinkOptions         `json:"documentLinkProvider"`       // textDocument/documentLink
	FoldingRangeProvider       bool                        `json:"foldingRangeProvider"`       // textDocument/foldingRange
	WorkspaceSymbolProvider    bool                        `json:"workspaceSymbolProvider"`    // workspace/symbol
	DocumentFormattingProvider bool                        `json:"documentFormattingProvider"` // textDocument/formatting
	RenameProvider             RenameOptions               `json:"renameProvider"`             // textDocument/rename
	CodeActionProvider         CodeActionOptions           `json:"codeActionProvider"`         // textDocument/codeAction
	CodeLensProvider           *CodeLensOptions            `json:"codeLensProvider,omitempty"` // textDocument/codeLens; nil if it is not supported
	InlayHintProvider          bool                        `json:"inlayHintProvider"`          // textDocument/inlayHint
	DiagnosticProvider         DiagnosticOptions           `json:"diagnosticProvider"`         // textDocument/diagnostic
	SemanticTokensProvider     SemanticTokensOptions       `json:"semanticTokensProvider"`     // textDocument/semanticTokens
	Workspace                  WorkspaceServerCapabilities `json:"workspace"`                  // of the workspace
}

// TextDocumentSyncOptions selects how the editor sends changes of documents.
type TextDocumentSyncOptions struct {
	OpenClose bool        `json:"openClose"` // whether opened and closed documents are reported
	Change    int         `json:"change"`    // TextDocumentSyncIncremental
	Save      SaveOptions `json:"save"`      // what is sent when a document is saved
}

// TextDocumentSyncIncremental makes the editor send edits instead of whole texts.
const TextDocumentSyncIncremental = 2

// SaveOptions selects what the editor sends when a document is saved.
type SaveOptions struct {
	IncludeText bool `json:"includeText"` // whether the text is sent
}

// CompletionOptions are the options of completion.
type CompletionOptions struct {
	TriggerCharacters []string `json:"triggerCharacters"` // characters after which the editor requests completion
}

// RenameOptions are the options of renames.
type RenameOptions struct {
	PrepareProvider bool `json:"prepareProvider"` // whether textDocument/prepareRename is supported
}

// CodeActionOptions are the options of code actions.
type CodeActionOptions struct {
	CodeActionKinds []string `json:"codeActionKinds"` // the kinds that the server offers
}

// DiagnosticOptions are the options of pulled diagnostics.
type DiagnosticOptions struct {
	Identifier            string `json:"identifier"`            // names the diagnostics of this server
	InterFileDependencies bool   `json:"interFileDependencies"` // whether a change of one file may change the diagnostics of another
	WorkspaceDiagnostics  bool   `json:"workspaceDiagnostics"`  // whether workspace/diagnostic is supported
}

// SemanticTokensOptions are the options of semantic tokens.
type SemanticTokensOptions struct {
	Legend SemanticTokensLegend `json:"legend"` // the names of types and modifiers
	Full   bool                 `json:"full"`   // whether all tokens of a document can be requested
	Range  bool                 `json:"range"`  // whether those of a range can be requested
}

// SemanticTokensLegend names the types and modifiers that tokens refer to by index.
type SemanticTokensLegend struct {
	TokenTypes     []string `json:"tokenTypes"`     // the types, by index
	TokenModifiers []string `json:"tokenModifiers"` // the modifiers, by bit
}

// WorkspaceServerCapabilities are the features of the server for workspaces.
type WorkspaceServerCapabilities struct {
	WorkspaceFolders WorkspaceFoldersServerCapabilities `json:"workspaceFolders"` // of folders
}

// WorkspaceFoldersServerCapabilities are the features of the server for folders.
type WorkspaceFoldersServerCapabilities struct {
	Supported           bool `json:"supported"`           // whether several folders may be open
	ChangeNotifications bool `json:"changeNotifications"` // whether changes of the list are reported
}

// DidChangeWatchedFilesParams are the parameters of workspace/didChangeWatchedFiles.
type DidChangeWatchedFilesParams struct {
	Changes []FileEvent `json:"changes"` // what has changed
}

// FileEvent is a change of a file on disk.
type FileEvent struct {
	URI string `json:"uri"` // the file
}

// DidChangeWorkspaceFoldersParams are the parameters of
// workspace/didChangeWorkspaceFolders.
type DidChangeWorkspaceFoldersParams struct {
	Event WorkspaceFoldersChangeEvent `json:"event"` // the change of the list
}

// WorkspaceFoldersChangeEvent lists the folders that were opened and closed.
type WorkspaceFoldersChangeEvent struct {
	Added   []WorkspaceFolder `json:"added"`   // the opened folders
	Removed []WorkspaceFolder `json:"removed"` // the closed folders
}

// RegistrationParams are the parameters of client/registerCapability.
type RegistrationParams struct {
	Registrations []Registration `json:"registrations"` // the requests for notifications
}

// Registration requests that the editor sends notifications about files.
type Registration struct {
	ID              string                                   `json:"id"`              // names the registration
	Method          string                                   `json:"method"`          // the notification: workspace/didChangeWatchedFiles
	RegisterOptions DidChangeWatchedFilesRegistrationOptions `json:"registerOptions"` // the files
}

// DidChangeWatchedFilesRegistrationOptions selects the files to watch.
type DidChangeWatchedFilesRegistrationOptions struct {
	Watchers []FileSystemWatcher `json:"watchers"` // the patterns
}

// FileSystemWatcher selects files by a pattern.
type FileSystemWatcher struct {
	GlobPattern string `json:"globPattern"` // the pattern, such as **/.env
}

// ShowMessageRequestParams are the parameters of window/showMessageRequest.
type ShowMessageRequestParams struct {
	Type    int    `json:"type"`    // MessageTypeError
	Message string `json:"message"` // the text for the user
}

// MessageTypeError is the type of error messages.
const MessageTypeError = 1
