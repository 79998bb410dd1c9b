package diag

import (
	"fmt"

	"github.com/qtype-dev/qtype/spec/source"
)

// Rule declares a code once: the text of `qtype explain CODE`, and the examples
// that are its tests.
type Rule struct {
	Code     string   // QT and three digits; a code once given keeps its meaning
	Severity Severity // what its diagnostics are, unless a place says otherwise
	Title    string   // what is wrong, in a few words that never vary
	Doc      string   // why it is wrong and what to do, a few sentences
	Wrong    string   // a document that breaks the rule; empty where no text can
	Right    string   // the same document mended
}

// At makes a diagnostic of the rule. The message is formatted as by fmt.Sprintf.
func (r Rule) At(span source.Span, format string, args ...any) Diagnostic {
	return Diagnostic{Code: r.Code, Severity: r.Severity, Span: span, Message: fmt.Sprintf(format, args...)}
}
