package lint

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/spec/diag"
)

// appliedFix is an edit of a fix that was applied.
type appliedFix struct {
	key    string // keyOfFix of its diagnostic
	real   string // the file
	line   int    // the line of the edit
	column int    // the column of the edit
	text   string // the new text
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
// were any.
func (m *fixer) refuseHarmful(results []Result) bool {
	found := false
	left := map[string]int{}
	for _, r := range results {
		for _, d := range r.Diagnostics {
			key := keyOfDiagnostic(d)
			left[key]++
			if d.Span.File == nil || d.Code == codeOfUnreadable {
				continue
			}
			for _, a := range m.causesOf(d, realPath(r.Document.Path), left[key] > m.initial[key], left[key] > m.readable[key]) {
				if !m.refused[a.key] {
					m.refused[a.key] = true
					found = true
				}
			}
		}
	}
	return found
}

// causesOf returns the fixes that may have caused a diagnostic of a document, which is new
// since the start, or since the form was fixed. A fix of the form makes other diagnostics
// visible, so that only a new error on its line, or a diagnostic at the place of the fix
// itself, is its consequence. A diagnostic that is new since the form was fixed is the
// consequence of a fix of meaning, such as that of a reference: of one in the same document,
// if there is any.
func (m *fixer) causesOf(d diag.Diagnostic, document string, isNew, isNewMeaning bool) []appliedFix {
	var ofForm, near, far []appliedFix
	for _, a := range m.applied {
		sameLine := a.real == realPath(d.Span.File.Path) && a.line == d.Span.Start.Line
		switch {
		case a.isForm && isNew && sameLine && (d.Severity == diag.Error || a.column == d.Span.Start.Column):
			ofForm = append(ofForm, a)
		case a.isForm || !isNewMeaning:
		case a.real == document:
			near = append(near, a)
		default:
			far = append(far, a)
		}
	}
	if len(near) == 0 {
		near = far
	}
	return append(ofForm, m.mostLikely(near, d)...)
}

// mostLikely returns the fixes whose text a diagnostic mentions, or else those in its line; all
// if there are none of these, or if too many attempts were made.
func (m *fixer) mostLikely(fixes []appliedFix, d diag.Diagnostic) []appliedFix {
	if m.isLast {
		return fixes
	}
	var mentioned, inLine []appliedFix
	for _, a := range fixes {
		if strings.Contains(d.Message, strconv.Quote(a.text)) {
			mentioned = append(mentioned, a)
		}
		if a.real == realPath(d.Span.File.Path) && a.line == d.Span.Start.Line {
			inLine = append(inLine, a)
		}
	}
	for _, likely := range [][]appliedFix{mentioned, inLine} {
		if len(likely) > 0 {
			return likely
		}
	}
	return fixes
}
