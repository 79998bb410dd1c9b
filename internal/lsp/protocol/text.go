// Package protocol holds the messages of the Language Server Protocol 3.17 that
// the server exchanges, and their transport.
//
// Types have the names of the specification and the fields that this server reads
// or writes: https://microsoft.github.io/language-server-protocol/specifications/lsp/3.17/specification/.
package protocol

// Position is a position in a text document: line and UTF-16 code unit, from 0.
type Position struct {
	Line      int `json:"line"`      // the line, from 0
	Character int `json:"character"` // the UTF-16 code unit of the line, from 0
}

// Before reports whether p is before q.
func (p Position) Before(q Position) bool {
	return p.Line < q.Line || p.Line == q.Line && p.Character < q.Character
}

// Range is a range in a text document; its end is exclusive.
type Range struct {
	Start Position `json:"start"` // the first position
	End   Position `json:"end"`   // the position after the last one
}

// Contains reports whether p is in r or at its end: a cursor at the end of a word
// belongs to that word.
func (r Range) Contains(p Position) bool { return !p.Before(r.Start) && !r.End.Before(p) }

// Overlaps reports whether two ranges share or touch a position.
func (r Range) Overlaps(s Range) bool { return !s.End.Before(r.Start) && !r.End.Before(s.Start) }

// Location is a range in a document.
type Location struct {
	URI   string `json:"uri"`   // the document
	Range Range  `json:"range"` // the part of it
}

// TextDocumentIdentifier names a document.
type TextDocumentIdentifier struct {
	URI string `json:"uri"` // the document
}

// VersionedTextDocumentIdentifier names a version of a document.
type VersionedTextDocumentIdentifier struct {
	URI     string `json:"uri"`     // the document
	Version int    `json:"version"` // increases with each change
}

// OptionalVersionedTextDocumentIdentifier names a document, and its version if
// the editor has it open.
type OptionalVersionedTextDocumentIdentifier struct {
	URI     string `json:"uri"`     // the document
	Version *int   `json:"version"` // null for a document that is not open
}

// TextDocumentItem is a document that the editor opened.
type TextDocumentItem struct {
	URI        string `json:"uri"`        // the document
	LanguageID string `json:"languageId"` // the editor's name of its language
	Version    int    `json:"version"`    // increases with each change
	Text       string `json:"text"`       // the whole text
}

// TextDocumentParams are the parameters of requests and notifications about a
// document: didSave, didClose, diagnostic, documentSymbol and formatting.
type TextDocumentParams struct {
	TextDocument TextDocumentIdentifier `json:"textDocument"` // the document
}

// TextDocumentPositionParams are the parameters of requests about a position.
type TextDocumentPositionParams struct {
	TextDocument TextDocumentIdentifier `json:"textDocument"` // the document
	Position     Position               `json:"position"`     // the cursor
}

// DidOpenTextDocumentParams are the parameters of textDocument/didOpen.
type DidOpenTextDocumentParams struct {
	TextDocument TextDocumentItem `json:"textDocument"` // the document with its text
}

// DidChangeTextDocumentParams are the parameters of textDocument/didChange.
type DidChangeTextDocumentParams struct {
	TextDocument   VersionedTextDocumentIdentifier  `json:"textDocument"`   // the document and its version after the edits
	ContentChanges []TextDocumentContentChangeEvent `json:"contentChanges"` // the edits, each on the result of the one before
}

// TextDocumentContentChangeEvent is one edit.
type TextDocumentContentChangeEvent struct {
	Range *Range `json:"range"` // nil if Text is the whole document
	Text  string `json:"text"`  // the text that replaces the range
}

// TextEdit replaces a range.
type TextEdit struct {
	Range   Range  `json:"range"`   // what is replaced
	NewText string `json:"newText"` // the text that replaces it
}

// TextDocumentEdit are the edits of one document.
type TextDocumentEdit struct {
	TextDocument OptionalVersionedTextDocumentIdentifier `json:"textDocument"` // the document
	Edits        []TextEdit                              `json:"edits"`        // the edits, which all refer to the text before them
}

// WorkspaceEdit are edits of several documents, in one of two forms.
type WorkspaceEdit struct {
	Changes         map[string][]TextEdit `json:"changes,omitempty"`         // the edits by URI
	DocumentChanges []TextDocumentEdit    `json:"documentChanges,omitempty"` // for editors with the capability
}

// MarkupContent is formatted text.
type MarkupContent struct {
	Kind  string `json:"kind"`  // plaintext or markdown
	Value string `json:"value"` // the text
}

// Markdown returns Markdown content.
func Markdown(text string) *MarkupContent { return &MarkupContent{"markdown", text} }
