package protocol

// Diagnostic is a problem of a document.
type Diagnostic struct {
	Range              Range                          `json:"range"`
	Severity           int                            `json:"severity"`
	Code               string                         `json:"code"`
	CodeDescription    *CodeDescription               `json:"codeDescription,omitempty"`
	Source             string                         `json:"source"`
	Message            string                         `json:"message"`
	RelatedInformation []DiagnosticRelatedInformation `json:"relatedInformation,omitempty"`
	Tags               []int                          `json:"tags,omitempty"`
	Data               *DiagnosticData                `json:"data,omitempty"`
}

// DiagnosticData is the data of this server's diagnostics. The editor sends it
// back with requests for code actions.
type DiagnosticData struct {
	Suggestion string `json:"suggestion,omitempty"`
}

// CodeDescription links to the page about a code.
type CodeDescription struct {
	Href string `json:"href"`
}

// DiagnosticRelatedInformation is another location that explains a diagnostic.
type DiagnosticRelatedInformation struct {
	Location Location `json:"location"`
	Message  string   `json:"message"`
}

// The severities of diagnostics.
const (
	SeverityError       = 1
	SeverityWarning     = 2
	SeverityInformation = 3
)

// DiagnosticTagUnnecessary makes editors fade a range out.
const DiagnosticTagUnnecessary = 1

// PublishDiagnosticsParams are all diagnostics of a document.
type PublishDiagnosticsParams struct {
	URI         string       `json:"uri"`
	Version     *int         `json:"version,omitempty"`
	Diagnostics []Diagnostic `json:"diagnostics"`
}

// FullDocumentDiagnosticReport is the result of textDocument/diagnostic.
type FullDocumentDiagnosticReport struct {
	Kind             string                                  `json:"kind"`
	Items            []Diagnostic                            `json:"items"`
	RelatedDocuments map[string]FullDocumentDiagnosticReport `json:"relatedDocuments,omitempty"`
}

// CodeActionParams are the parameters of textDocument/codeAction.
type CodeActionParams struct {
	TextDocument TextDocumentIdentifier `json:"textDocument"`
	Range        Range                  `json:"range"`
	Context      CodeActionContext      `json:"context"`
}

// CodeActionContext limits the kinds of code actions.
type CodeActionContext struct {
	Only []string `json:"only"`
}

// CodeActionQuickFix is the kind of actions that resolve a diagnostic.
const CodeActionQuickFix = "quickfix"

// CodeAction is a change that the user can apply.
type CodeAction struct {
	Title       string         `json:"title"`
	Kind        string         `json:"kind"`
	Diagnostics []Diagnostic   `json:"diagnostics,omitempty"`
	IsPreferred bool           `json:"isPreferred,omitempty"`
	Edit        *WorkspaceEdit `json:"edit,omitempty"`
}
