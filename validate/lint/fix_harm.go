package lint

import (
	"fmt"

	"github.com/qtype-dev/qtype/spec/diag"
)

// appliedFix is an edit of a fix that was applied.
type appliedFix struct {
	key    string // keyOfFix of its diagnostic
	real   string // the file
	line   int    // the line of the edit
	column int    // the column of the edit
	isForm bool   // it corrects the form of the document, so that parts become readable
}

// keyOfFix identifies the fix of a diagnostic.
func keyOfFix(d diag.Diagnostic) string {
	at := d.Fixes[0].Span
	return fmt.Sprintf("%s:%d:%d %s %s", realPath(at.File.Path), at.Start.Line, at.Start.Column, d.Code, d.Fixes[0].NewText)
}

// keyOfDiagnostic identifies a diagnostic without its position, which a fix may move.
func keyOfDiagnostic(d diag.Diagnostic) string {
	file := ""
	if d.Span.File != nil {
		file = realPath(d.Span.File.Path)
	}
	return fmt.Sprintf("%s %s %s %s", file, d.Severity, d.Code, d.Message)
}

func countDiagnostics(results []Result) map[string]int {
	counts := map[string]int{}
	for _, d := range Diagnostics(results) {
		counts[keyOfDiagnostic(d)]++
	}
	return counts
}

// codeOfUnreadable is the code of an include that cannot be read, which no fix causes: the
// file was not looked for before its tag was fixed.
const codeOfUnreadable = "QT006"

// refuseHarmful refuses the fixes that caused a new diagnostic, and reports whether there
// were any. A fix of the form makes other diagnostics visible, so that only a new error on
// its line, or a diagnostic at the place of the fix itself, is its consequence; every diagnostic that is new since the form was fixed is the
// consequence of a fix of meaning, such as that of a reference.
func (m *fixer) refuseHarmful(results []Result) bool {
	found := false
	left := map[string]int{}
	for _, d := range Diagnostics(results) {
		key := keyOfDiagnostic(d)
		left[key]++
		if d.Span.File == nil || d.Code == codeOfUnreadable {
			continue
		}
		isNew, isNewMeaning := left[key] > m.initial[key], left[key] > m.readable[key]
		for _, a := range m.applied {
			sameLine := a.real == realPath(d.Span.File.Path) && a.line == d.Span.Start.Line
			onForm := a.isForm && sameLine && (d.Severity == diag.Error || a.column == d.Span.Start.Column)
			caused := isNewMeaning && !a.isForm || isNew && onForm
			if caused && !m.refused[a.key] {
				m.refused[a.key] = true
				found = true
			}
		}
	}
	return found
}
