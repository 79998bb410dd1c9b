package input

import (
	"embed"

	"github.com/qtype-dev/qtype/internal/ruletext"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// Problem is a kind of diagnostic of the converters.
type Problem int

// The problems.
const (
	Malformed      Problem = iota // the other system would reject the value
	UnknownKey                    // the converter does not know the key
	Unsupported                   // there is no counterpart, so the document behaves differently
	Untranslatable                // a jq expression cannot be translated
	Ignored                       // a part is left out without effect on the answers
	Assumed                       // the file leaves a value open
)

// At returns a diagnostic of the problem. The message is formatted as by fmt.Sprintf.
func (p Problem) At(at source.Span, format string, args ...any) diag.Diagnostic {
	return rules[p].At(at, format, args...)
}

var rules = [...]diag.Rule{
	Malformed:      {Code: "QT701", Severity: diag.Error},
	UnknownKey:     {Code: "QT702", Severity: diag.Warning},
	Unsupported:    {Code: "QT703", Severity: diag.Error},
	Untranslatable: {Code: "QT704", Severity: diag.Error},
	Ignored:        {Code: "QT705", Severity: diag.Warning},
	Assumed:        {Code: "QT706", Severity: diag.Warning},
}

//go:embed rules/*.md
var texts embed.FS

// Rules lists the diagnostic codes of the converters in order. Their examples are
// files of the other systems.
func Rules() []diag.Rule { return ruletext.Must(texts, rules[:]...) }
