package protocol

import "encoding/json"

// Hover is the result of textDocument/hover.
type Hover struct {
	Contents *MarkupContent `json:"contents"`        // the text
	Range    *Range         `json:"range,omitempty"` // what it describes; nil for the word at the cursor
}

// CompletionList is the result of textDocument/completion.
type CompletionList struct {
	IsIncomplete bool             `json:"isIncomplete"` // whether the editor requests the list again after the next character
	Items        []CompletionItem `json:"items"`        // the proposals
}

// CompletionItem is a proposal.
type CompletionItem struct {
	Label          string         `json:"label"`                    // the text of the list
	Kind           int            `json:"kind"`                     // its symbol, one of the kinds below
	Detail         string         `json:"detail,omitempty"`         // a few words after the label
	Documentation  *MarkupContent `json:"documentation,omitempty"`  // the text next to the list
	Preselect      bool           `json:"preselect,omitempty"`      // whether it is selected first
	SortText       string         `json:"sortText,omitempty"`       // the order of the list; empty for the label
	FilterText     string         `json:"filterText,omitempty"`     // what is compared with the typed text; empty for the label
	TextEdit       *TextEdit      `json:"textEdit,omitempty"`       // the change that inserts it
	InsertTextMode int            `json:"insertTextMode,omitempty"` // InsertTextModeAsIs, or 0 for the editor's
}

// InsertTextModeAsIs makes editors insert several lines without changing their
// indentation.
const InsertTextModeAsIs = 1

// The kinds of completion items.
const (
	CompletionItemKindFunction   = 3
	CompletionItemKindVariable   = 6
	CompletionItemKindClass      = 7
	CompletionItemKindModule     = 9
	CompletionItemKindProperty   = 10
	CompletionItemKindValue      = 12
	CompletionItemKindFile       = 17
	CompletionItemKindReference  = 18
	CompletionItemKindFolder     = 19
	CompletionItemKindEnumMember = 20
	CompletionItemKindStruct     = 22
)

// ReferenceParams are the parameters of textDocument/references.
type ReferenceParams struct {
	TextDocumentPositionParams
	Context ReferenceContext `json:"context"` // which references are listed
}

// ReferenceContext selects the references.
type ReferenceContext struct {
	IncludeDeclaration bool `json:"includeDeclaration"` // whether the declaration is listed too
}

// DocumentHighlight is a range that editors mark together with the one at the
// cursor.
type DocumentHighlight struct {
	Range Range `json:"range"` // what is marked
	Kind  int   `json:"kind"`  // one of the kinds below
}

// The kinds of document highlights.
const (
	DocumentHighlightKindRead  = 2
	DocumentHighlightKindWrite = 3
)

// PrepareRenameResult is the result of textDocument/prepareRename.
type PrepareRenameResult struct {
	Range       Range  `json:"range"`       // the name at the cursor
	Placeholder string `json:"placeholder"` // the name to begin with
}

// RenameParams are the parameters of textDocument/rename.
type RenameParams struct {
	TextDocumentPositionParams
	NewName string `json:"newName"` // the name that replaces the one at the position
}

// DocumentSymbol is an entity in the editor's outline.
type DocumentSymbol struct {
	Name           string           `json:"name"`               // the id, or the name of a part
	Detail         string           `json:"detail,omitempty"`   // a few words after the name
	Kind           int              `json:"kind"`               // its symbol, one of the kinds below
	Range          Range            `json:"range"`              // the whole entity
	SelectionRange Range            `json:"selectionRange"`     // its name
	Children       []DocumentSymbol `json:"children,omitempty"` // its parts
}

// SymbolInformation is a symbol for editors that show no tree.
type SymbolInformation struct {
	Name          string   `json:"name"`                    // the id, or the name of a part
	Kind          int      `json:"kind"`                    // its symbol, one of the kinds below
	Location      Location `json:"location"`                // the whole entity
	ContainerName string   `json:"containerName,omitempty"` // the entity that it is a part of
}

// DocumentSymbolResult is the result of textDocument/documentSymbol: Tree, or Flat
// if it is not nil.
type DocumentSymbolResult struct {
	Tree []DocumentSymbol    // for editors that show a tree
	Flat []SymbolInformation // for others
}

// MarshalJSON encodes one of the two lists.
func (r DocumentSymbolResult) MarshalJSON() ([]byte, error) {
	if r.Flat != nil {
		return json.Marshal(r.Flat)
	}
	return json.Marshal(r.Tree)
}

// The kinds of symbols.
const (
	SymbolKindModule   = 2
	SymbolKindMethod   = 6
	SymbolKindField    = 8
	SymbolKindFunction = 12
	SymbolKindVariable = 13
	SymbolKindObject   = 19
	SymbolKindKey      = 20
	SymbolKindStruct   = 23
)

// SemanticTokensParams are the parameters of textDocument/semanticTokens/full and
// textDocument/semanticTokens/range.
type SemanticTokensParams struct {
	TextDocument TextDocumentIdentifier `json:"textDocument"` // the document
	Range        *Range                 `json:"range"`        // nil for the whole document
}

// SemanticTokens are encoded tokens, five numbers each.
type SemanticTokens struct {
	Data []uint32 `json:"data"` // line and column after the token before, length, type and modifiers
}

// DocumentLink is a text that opens another file.
type DocumentLink struct {
	Range  Range  `json:"range"`  // the text
	Target string `json:"target"` // the URI of the file
}

// FoldingRange is a part of a document that editors can hide, whole lines from 0.
type FoldingRange struct {
	StartLine int `json:"startLine"` // stays visible
	EndLine   int `json:"endLine"`   // the last hidden line
}

// WorkspaceSymbolParams are the parameters of workspace/symbol.
type WorkspaceSymbolParams struct {
	Query string `json:"query"` // a part of the names; empty for all
}

// DocumentLinkOptions are the options of document links.
type DocumentLinkOptions struct {
	ResolveProvider bool `json:"resolveProvider"` // whether targets are computed later
}

// CodeLens is a command that editors offer above a line.
type CodeLens struct {
	Range   Range   `json:"range"`   // what it is about
	Command Command `json:"command"` // what it does
}

// Command is a command of the editor.
type Command struct {
	Title     string         `json:"title"`     // the text for the user
	Command   string         `json:"command"`   // its name
	Arguments []ProgramToRun `json:"arguments"` // one argument
}

// ProgramToRun is a command line of the program that the server is a part of.
type ProgramToRun struct {
	Args   []string     `json:"args"`   // the arguments of the program
	Cwd    string       `json:"cwd"`    // the folder that it is started in
	Inputs []InputToAsk `json:"inputs"` // the values that the user gives: -i with a JSON object of them
}

// InputToAsk is an input of a flow.
type InputToAsk struct {
	Name string `json:"name"` // the key in the JSON object
	Type string `json:"type"` // such as text or list[int]
}

// CodeLensOptions are the options of code lenses.
type CodeLensOptions struct {
	ResolveProvider bool `json:"resolveProvider"` // whether commands are computed later
}

// InlayHintParams are the parameters of textDocument/inlayHint.
type InlayHintParams struct {
	TextDocument TextDocumentIdentifier `json:"textDocument"` // the document
	Range        Range                  `json:"range"`        // the visible part
}

// InlayHint is a text that editors show within a line, which is not a part of it.
type InlayHint struct {
	Position    Position `json:"position"`    // where it is shown
	Label       string   `json:"label"`       // the text
	PaddingLeft bool     `json:"paddingLeft"` // whether a space is shown before it
}

// Diagnostic is a problem of a document.
type Diagnostic struct {
	Range              Range                          `json:"range"`                        // where the problem is
	Severity           int                            `json:"severity"`                     // one of the severities below
	Code               string                         `json:"code"`                         // the code, such as QT205
	CodeDescription    *CodeDescription               `json:"codeDescription,omitempty"`    // the page about the code
	Source             string                         `json:"source"`                       // the program that reports it: qtype
	Message            string                         `json:"message"`                      // the text for the user
	RelatedInformation []DiagnosticRelatedInformation `json:"relatedInformation,omitempty"` // other locations that explain it
	Tags               []int                          `json:"tags,omitempty"`               // how editors show the range
	Data               *DiagnosticData                `json:"data,omitempty"`               // what code actions need
}

// DiagnosticData is the data of this server's diagnostics. The editor sends it
// back with requests for code actions.
type DiagnosticData struct {
	Suggestion string `json:"suggestion,omitempty"` // the text that replaces the range; empty for none
}

// CodeDescription links to the page about a code.
type CodeDescription struct {
	Href string `json:"href"` // the address of the page
}

// DiagnosticRelatedInformation is another location that explains a diagnostic.
type DiagnosticRelatedInformation struct {
	Location Location `json:"location"` // where it is
	Message  string   `json:"message"`  // what is there
}

// The severities of diagnostics.
const (
	SeverityError       = 1
	SeverityWarning     = 2
	SeverityInformation = 3
)

// DiagnosticTagUnnecessary makes editors fade a range out.
const DiagnosticTagUnnecessary = 1

// DiagnosticTagDeprecated makes editors strike a range through.
const DiagnosticTagDeprecated = 2

// PublishDiagnosticsParams are all diagnostics of a document.
type PublishDiagnosticsParams struct {
	URI         string       `json:"uri"`               // the document
	Version     *int         `json:"version,omitempty"` // that of the text; nil for a document that is not open
	Diagnostics []Diagnostic `json:"diagnostics"`       // all, which replace the former ones
}

// FullDocumentDiagnosticReport is the result of textDocument/diagnostic.
type FullDocumentDiagnosticReport struct {
	Kind             string                                  `json:"kind"`                       // always full
	Items            []Diagnostic                            `json:"items"`                      // those of the document
	RelatedDocuments map[string]FullDocumentDiagnosticReport `json:"relatedDocuments,omitempty"` // those of other documents, by URI
}

// CodeActionParams are the parameters of textDocument/codeAction.
type CodeActionParams struct {
	TextDocument TextDocumentIdentifier `json:"textDocument"` // the document
	Range        Range                  `json:"range"`        // the selection
	Context      CodeActionContext      `json:"context"`      // the kinds that are requested
}

// CodeActionContext limits the kinds of code actions.
type CodeActionContext struct {
	Only []string `json:"only"` // the kinds; empty for all
}

// CodeActionQuickFix is the kind of actions that resolve a diagnostic.
const CodeActionQuickFix = "quickfix"

// CodeAction is a change that the user can apply.
type CodeAction struct {
	Title       string         `json:"title"`                 // the text of the menu
	Kind        string         `json:"kind"`                  // CodeActionQuickFix
	Diagnostics []Diagnostic   `json:"diagnostics,omitempty"` // those that it resolves
	IsPreferred bool           `json:"isPreferred,omitempty"` // whether a key may apply it without a menu
	Edit        *WorkspaceEdit `json:"edit,omitempty"`        // the change
}
