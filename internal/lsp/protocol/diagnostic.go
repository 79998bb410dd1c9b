package protocol

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
