package lsp

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sourcegraph/jsonrpc2"
)

// The protocol's own structures, those of LSP 3.17 that this server uses, with
// the fields that it reads or writes.

// position is a place in a document: line and UTF-16 unit, both from 0.
type position struct {
	Line      int `json:"line"`
	Character int `json:"character"`
}

// before tells whether p stands before q.
func (p position) before(q position) bool {
	return p.Line < q.Line || p.Line == q.Line && p.Character < q.Character
}

// textRange is a stretch of a document; its end is exclusive.
type textRange struct {
	Start position `json:"start"`
	End   position `json:"end"`
}

// holds tells whether p stands in the range or touches its end, where a cursor
// still belongs to the word before it.
func (r textRange) holds(p position) bool { return !p.before(r.Start) && !r.End.before(p) }

// meets tells whether two ranges share a place.
func (r textRange) meets(s textRange) bool { return !s.End.before(r.Start) && !r.End.before(s.Start) }

// location is a stretch of a certain document.
type location struct {
	URI   string    `json:"uri"`
	Range textRange `json:"range"`
}

// documentID names a document.
type documentID struct {
	URI string `json:"uri"`
}

// versionedID names a version of a document.
type versionedID struct {
	URI     string `json:"uri"`
	Version int    `json:"version"`
}

// positionParams ask about a place.
type positionParams struct {
	TextDocument documentID `json:"textDocument"`
	Position     position   `json:"position"`
}

// documentParams ask about a document.
type documentParams struct {
	TextDocument documentID `json:"textDocument"`
}

// initializeParams open the conversation.
type initializeParams struct {
	RootURI          string            `json:"rootUri"`
	RootPath         string            `json:"rootPath"`
	WorkspaceFolders []workspaceFolder `json:"workspaceFolders"`
	Options          settings          `json:"initializationOptions"`
	Capabilities     struct {
		Workspace struct {
			DidChangeWatchedFiles struct {
				DynamicRegistration bool `json:"dynamicRegistration"`
			} `json:"didChangeWatchedFiles"`
			Diagnostics struct {
				RefreshSupport bool `json:"refreshSupport"`
			} `json:"diagnostics"`
			WorkspaceEdit struct {
				DocumentChanges bool `json:"documentChanges"`
			} `json:"workspaceEdit"`
		} `json:"workspace"`
		TextDocument struct {
			Diagnostic     *struct{} `json:"diagnostic"` // the editor pulls
			DocumentSymbol struct {
				Hierarchical bool `json:"hierarchicalDocumentSymbolSupport"`
			} `json:"documentSymbol"`
		} `json:"textDocument"`
	} `json:"capabilities"`
}

// settings are what somebody may choose in an editor. Others than these, and a
// value that is no object, are the business of other servers.
type settings struct {
	RemoteIncludes *bool // includes of other machines are read; nil where nothing is said
}

// UnmarshalJSON reads settings, which an editor takes as they are from its user.
func (s *settings) UnmarshalJSON(raw []byte) error {
	var known struct {
		RemoteIncludes json.RawMessage `json:"remoteIncludes"`
	}
	if json.Unmarshal(raw, &known) != nil || len(known.RemoteIncludes) == 0 {
		return nil //nolint:nilerr // no settings of this server
	}
	if json.Unmarshal(known.RemoteIncludes, &s.RemoteIncludes) != nil {
		return &failure{jsonrpc2.CodeInvalidParams, fmt.Sprintf("the setting remoteIncludes must be true or false, not %s", known.RemoteIncludes)}
	}
	return nil
}

// didConfigureParams tell of changed settings.
type didConfigureParams struct {
	Settings sections `json:"settings"`
}

// sections are the settings of all servers.
type sections struct {
	Qtype settings `json:"qtype"`
}

// UnmarshalJSON passes over what is no object: some editors say [] for nothing.
func (s *sections) UnmarshalJSON(raw []byte) error {
	type plain sections
	var wrong *failure
	if err := json.Unmarshal(raw, (*plain)(s)); errors.As(err, &wrong) {
		return wrong
	}
	return nil
}

// workspaceFolder is a folder that the editor has open.
type workspaceFolder struct {
	URI string `json:"uri"`
}

// didOpenParams tell of a document that the editor now holds.
type didOpenParams struct {
	TextDocument struct {
		URI        string `json:"uri"`
		LanguageID string `json:"languageId"`
		Version    int    `json:"version"`
		Text       string `json:"text"`
	} `json:"textDocument"`
}

// didChangeParams tell of edits.
type didChangeParams struct {
	TextDocument versionedID `json:"textDocument"`
	Changes      []change    `json:"contentChanges"`
}

// change is one edit; without a range the text is the whole document.
type change struct {
	Range *textRange `json:"range"`
	Text  string     `json:"text"`
}

// watchedParams tell of files that changed on disk.
type watchedParams struct {
	Changes []struct {
		URI string `json:"uri"`
	} `json:"changes"`
}

// foldersParams tell of folders that were opened and closed.
type foldersParams struct {
	Event struct {
		Added   []workspaceFolder `json:"added"`
		Removed []workspaceFolder `json:"removed"`
	} `json:"event"`
}

// diagnostic is a finding as the editor shows it.
type diagnostic struct {
	Range    textRange                      `json:"range"`
	Severity int                            `json:"severity"`
	Code     string                         `json:"code"`
	About    *codeDescription               `json:"codeDescription,omitempty"`
	Source   string                         `json:"source"`
	Message  string                         `json:"message"`
	Related  []diagnosticRelatedInformation `json:"relatedInformation,omitempty"`
	Tags     []int                          `json:"tags,omitempty"`
	Data     *diagnosticData                `json:"data,omitempty"`
}

// diagnosticData is what comes back with a request for code actions.
type diagnosticData struct {
	Suggestion string `json:"suggestion,omitempty"`
}

// codeDescription links to a page about a code.
type codeDescription struct {
	Href string `json:"href"`
}

// diagnosticRelatedInformation is a place that helps to understand a finding.
type diagnosticRelatedInformation struct {
	Location location `json:"location"`
	Message  string   `json:"message"`
}

// The protocol's severities.
const (
	severityError       = 1
	severityWarning     = 2
	severityInformation = 3
)

// tagUnnecessary makes an editor fade a stretch out.
const tagUnnecessary = 1

// publishParams are all findings of one document.
type publishParams struct {
	URI         string       `json:"uri"`
	Version     *int         `json:"version,omitempty"`
	Diagnostics []diagnostic `json:"diagnostics"`
}

// diagnosticReport answers an editor that pulls.
type diagnosticReport struct {
	Kind    string                      `json:"kind"`
	Items   []diagnostic                `json:"items"`
	Related map[string]diagnosticReport `json:"relatedDocuments,omitempty"`
}

// markupContent is text for people.
type markupContent struct {
	Kind  string `json:"kind"`
	Value string `json:"value"`
}

// markdown makes markup of a text in Markdown.
func markdown(text string) *markupContent { return &markupContent{"markdown", text} }

// hover is what is said about a place.
type hover struct {
	Contents *markupContent `json:"contents"`
	Range    *textRange     `json:"range,omitempty"`
}

// textEdit replaces a stretch.
type textEdit struct {
	Range   textRange `json:"range"`
	NewText string    `json:"newText"`
}

// textDocumentEdit are the edits of one document.
type textDocumentEdit struct {
	TextDocument struct {
		URI     string `json:"uri"`
		Version *int   `json:"version"` // null for a document that is not open
	} `json:"textDocument"`
	Edits []textEdit `json:"edits"`
}

// workspaceEdit is edits of any number of documents, in one of two forms.
type workspaceEdit struct {
	Changes         map[string][]textEdit `json:"changes,omitempty"`
	DocumentChanges []textDocumentEdit    `json:"documentChanges,omitempty"`
}

// completionItem is a proposal.
type completionItem struct {
	Label         string         `json:"label"`
	Kind          int            `json:"kind"`
	Detail        string         `json:"detail,omitempty"`
	Documentation *markupContent `json:"documentation,omitempty"`
	Preselect     bool           `json:"preselect,omitempty"`
	SortText      string         `json:"sortText,omitempty"`
	FilterText    string         `json:"filterText,omitempty"`
	TextEdit      *textEdit      `json:"textEdit,omitempty"`
	Mode          int            `json:"insertTextMode,omitempty"`
}

// completionList is all proposals.
type completionList struct {
	IsIncomplete bool             `json:"isIncomplete"`
	Items        []completionItem `json:"items"`
}

// insertTextModeAsIs makes an editor insert several lines as they are, with their own indentation.
const insertTextModeAsIs = 1

// The protocol's kinds of proposals.
const (
	completionKindFunction = 3
	proposeVariable        = 6
	proposeClass           = 7
	proposeModule          = 9
	proposeProperty        = 10
	proposeValue           = 12
	proposeEnumMember      = 20
	proposeStruct          = 22
	proposeReference       = 18
)

// symbol is an entity in the outline that an editor shows.
type symbol struct {
	Name      string    `json:"name"`
	Detail    string    `json:"detail,omitempty"`
	Kind      int       `json:"kind"`
	Range     textRange `json:"range"`
	Selection textRange `json:"selectionRange"`
	Children  []symbol  `json:"children,omitempty"`
}

// symbolInformation is a symbol for editors that show no tree.
type symbolInformation struct {
	Name      string   `json:"name"`
	Kind      int      `json:"kind"`
	Location  location `json:"location"`
	Container string   `json:"containerName,omitempty"`
}

// codeAction is something that an editor can do on request.
type codeAction struct {
	Title       string         `json:"title"`
	Kind        string         `json:"kind"`
	Diagnostics []diagnostic   `json:"diagnostics,omitempty"`
	Preferred   bool           `json:"isPreferred,omitempty"`
	Edit        *workspaceEdit `json:"edit,omitempty"`
}

// codeActionParams ask what can be done about a stretch.
type codeActionParams struct {
	TextDocument documentID `json:"textDocument"`
	Range        textRange  `json:"range"`
	Context      struct {
		Only []string `json:"only"`
	} `json:"context"`
}

// referenceParams ask who names what stands at a place.
type referenceParams struct {
	positionParams
	Context struct {
		IncludeDeclaration bool `json:"includeDeclaration"`
	} `json:"context"`
}

// renameParams ask for another id.
type renameParams struct {
	positionParams
	NewName string `json:"newName"`
}

// formattingParams ask for a document in good form.
type formattingParams struct {
	TextDocument documentID `json:"textDocument"`
}

// semanticTokensParams ask for semantic tokens, of a stretch or of all.
type semanticTokensParams struct {
	TextDocument documentID `json:"textDocument"`
	Range        *textRange `json:"range"`
}

// semanticTokens are tokens as the protocol packs them, five numbers each.
type semanticTokens struct {
	Data []uint32 `json:"data"`
}

// documentHighlight is a stretch that an editor marks with the one under the cursor.
type documentHighlight struct {
	Range textRange `json:"range"`
	Kind  int       `json:"kind"`
}
