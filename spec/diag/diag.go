// Package diag represents the diagnostics of documents and prints them as text,
// JSON, SARIF and GitHub annotations.
//
// All types are plain values. A List is not safe for concurrent modification.
package diag

import (
	"fmt"
	"strings"

	"github.com/qtype-dev/qtype/spec/source"
)

// Severity is the severity of a diagnostic.
type Severity string

// The severities.
const (
	Error   Severity = "error"   // the document cannot be used
	Warning Severity = "warning" // the document works but is questionable
)

// Diagnostic is a problem at a position of a document.
type Diagnostic struct {
	Code       string      // the code of the rule, such as QT202
	Severity   Severity    // error or warning
	Span       source.Span // the text in question; zero if there is none
	Message    string      // what is wrong: one line, lower case start
	Hint       string      // what to do: one line, shown under the caret; may be empty
	Suggestion string      // replacement for the text of Span; empty if none is known
	Related    []Related   // other positions that explain the problem
	Fixes      []Fix       // together the only safe fix; empty if there is none or a choice
}

// Related is another position that explains a diagnostic.
type Related struct {
	Span    source.Span // the position
	Message string      // what is there, such as "first declared here"
}

// Error returns the diagnostic as one line, "file:line:column: message; hint
// [CODE]", with control characters escaped.
func (d Diagnostic) Error() string {
	line := d.Message
	if d.Hint != "" {
		line += "; " + d.Hint
	}
	if position := d.Span.String(); position != "" && !strings.HasPrefix(line, position+" ") {
		line = position + ": " + line
	}
	return escapeControl(fmt.Sprintf("%s [%s]", line, d.Code))
}

// Is reports whether target is a Diagnostic with the same code, position and
// message.
func (d Diagnostic) Is(target error) bool {
	other, ok := target.(Diagnostic)
	return ok && d.Code == other.Code && d.Span == other.Span && d.Message == other.Message
}

// WithHint returns the diagnostic with a hint, formatted as by fmt.Sprintf.
func (d Diagnostic) WithHint(format string, args ...any) Diagnostic {
	d.Hint = fmt.Sprintf(format, args...)
	return d
}

// WithSuggestion returns the diagnostic with a replacement for the text of its
// span, and a hint that proposes it if there is no other hint. An empty name
// changes nothing, so the result of Nearest can be passed unchecked.
func (d Diagnostic) WithSuggestion(name string) Diagnostic {
	if name == "" {
		return d
	}
	d.Suggestion = name
	if d.Hint == "" {
		d.Hint = fmt.Sprintf("did you mean %q?", name)
	}
	return d
}

// WithRelated returns the diagnostic with another related position.
func (d Diagnostic) WithRelated(span source.Span, message string) Diagnostic {
	d.Related = append(d.Related[:len(d.Related):len(d.Related)], Related{Span: span, Message: message})
	return d
}

// WithSeverity returns the diagnostic with a severity other than that of its rule.
func (d Diagnostic) WithSeverity(s Severity) Diagnostic {
	d.Severity = s
	return d
}
