// Package diag is what the checking wing says about a document: diagnostics with
// a code, a place and advice, and the forms in which they are printed (text, JSON,
// SARIF, GitHub annotations).
//
// All types are plain values. A List is not safe for concurrent writing.
package diag

import (
	"fmt"
	"strings"

	"github.com/qtype-dev/qtype/spec/source"
)

// Severity tells whether a finding makes the document unusable.
type Severity string

// The severities.
const (
	Error   Severity = "error"   // the document cannot be used
	Warning Severity = "warning" // the document works, but something is doubtful
)

// Diagnostic is one finding in a document.
type Diagnostic struct {
	Code       string      // the rule's code, such as QT202
	Severity   Severity    // error or warning
	Span       source.Span // the word at fault; zero where there is no place
	Message    string      // what is wrong, one line, starts lower case
	Hint       string      // what to do, one line, shown under the caret; may be empty
	Suggestion string      // the text that should stand in place of the span's; empty where none is known
	Related    []Related   // other places that help to understand
	Fixes      []Fix       // the one safe mending, all of it; empty where there is none or a choice
}

// Related is another place that helps to understand a diagnostic.
type Related struct {
	Span    source.Span // the place
	Message string      // what stands there, such as "first declared here"
}

// Error is the diagnostic as one line: "file:line:column: message; hint [CODE]".
// Control characters are escaped.
func (d Diagnostic) Error() string {
	line := d.Message
	if d.Hint != "" {
		line += "; " + d.Hint
	}
	if place := d.Span.String(); place != "" && !strings.HasPrefix(line, place+" ") {
		line = place + ": " + line
	}
	return escapeControl(fmt.Sprintf("%s [%s]", line, d.Code))
}

// Is reports whether target is a Diagnostic of the same code, position and message.
func (d Diagnostic) Is(target error) bool {
	other, ok := target.(Diagnostic)
	return ok && d.Code == other.Code && d.Span == other.Span && d.Message == other.Message
}

// WithHint answers the diagnostic with its hint set.
func (d Diagnostic) WithHint(format string, args ...any) Diagnostic {
	d.Hint = fmt.Sprintf(format, args...)
	return d
}

// WithSuggestion answers the diagnostic with a replacement for the span's text
// and, where no hint is there yet, the question whether it was meant. An empty
// name changes nothing, so that Nearest's answer can be handed on as it is.
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

// WithRelated answers the diagnostic with one more related place.
func (d Diagnostic) WithRelated(span source.Span, message string) Diagnostic {
	d.Related = append(d.Related[:len(d.Related):len(d.Related)], Related{Span: span, Message: message})
	return d
}

// WithSeverity answers the diagnostic with another severity than its rule's.
func (d Diagnostic) WithSeverity(s Severity) Diagnostic {
	d.Severity = s
	return d
}
