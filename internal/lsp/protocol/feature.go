package protocol

import "encoding/json"

// Hover is the result of textDocument/hover.
type Hover struct {
	Contents *MarkupContent `json:"contents"`
	Range    *Range         `json:"range,omitempty"`
}

// CompletionList is the result of textDocument/completion.
type CompletionList struct {
	IsIncomplete bool             `json:"isIncomplete"`
	Items        []CompletionItem `json:"items"`
}

// CompletionItem is a proposal.
type CompletionItem struct {
	Label          string         `json:"label"`
	Kind           int            `json:"kind"`
	Detail         string         `json:"detail,omitempty"`
	Documentation  *MarkupContent `json:"documentation,omitempty"`
	Preselect      bool           `json:"preselect,omitempty"`
	SortText       string         `json:"sortText,omitempty"`
	FilterText     string         `json:"filterText,omitempty"`
	TextEdit       *TextEdit      `json:"textEdit,omitempty"`
	InsertTextMode int            `json:"insertTextMode,omitempty"`
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
	CompletionItemKindReference  = 18
	CompletionItemKindEnumMember = 20
	CompletionItemKindStruct     = 22
)

// ReferenceParams are the parameters of textDocument/references.
type ReferenceParams struct {
	TextDocumentPositionParams
	Context ReferenceContext `json:"context"`
}

// ReferenceContext selects the references.
type ReferenceContext struct {
	IncludeDeclaration bool `json:"includeDeclaration"`
}

// DocumentHighlight is a range that editors mark together with the one at the
// cursor.
type DocumentHighlight struct {
	Range Range `json:"range"`
	Kind  int   `json:"kind"`
}

// The kinds of document highlights.
const (
	DocumentHighlightKindRead  = 2
	DocumentHighlightKindWrite = 3
)

// PrepareRenameResult is the result of textDocument/prepareRename.
type PrepareRenameResult struct {
	Range       Range  `json:"range"`
	Placeholder string `json:"placeholder"`
}

// RenameParams are the parameters of textDocument/rename.
type RenameParams struct {
	TextDocumentPositionParams
	NewName string `json:"newName"`
}

// DocumentSymbol is an entity in the editor's outline.
type DocumentSymbol struct {
	Name           string           `json:"name"`
	Detail         string           `json:"detail,omitempty"`
	Kind           int              `json:"kind"`
	Range          Range            `json:"range"`
	SelectionRange Range            `json:"selectionRange"`
	Children       []DocumentSymbol `json:"children,omitempty"`
}

// SymbolInformation is a symbol for editors that show no tree.
type SymbolInformation struct {
	Name          string   `json:"name"`
	Kind          int      `json:"kind"`
	Location      Location `json:"location"`
	ContainerName string   `json:"containerName,omitempty"`
}

// DocumentSymbolResult is the result of textDocument/documentSymbol: Tree, or Flat
// if it is not nil.
type DocumentSymbolResult struct {
	Tree []DocumentSymbol
	Flat []SymbolInformation
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
	TextDocument TextDocumentIdentifier `json:"textDocument"`
	Range        *Range                 `json:"range"` // nil for the whole document
}

// SemanticTokens are encoded tokens, five numbers each.
type SemanticTokens struct {
	Data []uint32 `json:"data"`
}
