package diag

import (
	"fmt"

	"github.com/qtype-dev/qtype/spec/source"
)

// Rule declares a diagnostic code: the text of `qtype explain CODE`, and examples
// that are its tests.
type Rule struct {
	Code     string   // QT and three digits; the meaning of a code never changes
	Severity Severity // default severity
	Title    string   // what is wrong, in a few fixed words
	Doc      string   // why it is wrong and what to do, a few sentences
	Wrong    string   // a document that breaks the rule; empty if none can
	Right    string   // the same document, corrected
}

// At returns a diagnostic of the rule. The message is formatted as by fmt.Sprintf.
func (r Rule) At(span source.Span, format string, args ...any) Diagnostic {
	return Diagnostic{Code: r.Code, Severity: r.Severity, Span: span, Message: fmt.Sprintf(format, args...)}
}
