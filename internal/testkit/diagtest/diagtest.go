// Package diagtest checks diagnostics against comments in the documents:
//
//	token_limits: 5 # want QT103 "has no key"
//
// expects a diagnostic of that code on that line whose message or hint matches the
// regular expression. A line may expect several. The package is for tests only.
package diagtest

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

const marker = "# want "

// want is an expected diagnostic.
type want struct {
	line    int // counted from 1
	code    string
	message *regexp.Regexp // matches message and hint
}

// parseWants reads the comments of a text.
func parseWants(text string) ([]want, error) {
	var wants []want
	for i, line := range strings.Split(text, "\n") {
		_, rest, found := strings.Cut(line, marker)
		if !found {
			continue
		}
		for rest = strings.TrimSpace(rest); rest != ""; rest = strings.TrimSpace(rest) {
			code, after, _ := strings.Cut(rest, " ")
			quoted, err := strconv.QuotedPrefix(strings.TrimSpace(after))
			if err != nil {
				return nil, fmt.Errorf("line %d: expected a quoted regular expression after %s", i+1, code)
			}
			pattern, _ := strconv.Unquote(quoted)
			message, err := regexp.Compile(pattern)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", i+1, err)
			}
			wants = append(wants, want{line: i + 1, code: code, message: message})
			rest = strings.TrimPrefix(strings.TrimSpace(after), quoted)
		}
	}
	return wants, nil
}

// Check reports an error for every missing and every unexpected diagnostic.
func Check(t testing.TB, files []*source.File, got diag.List) {
	t.Helper()
	found := make([]bool, len(got))
	checked := map[string]bool{}
	for _, file := range files {
		if checked[file.Path] {
			continue
		}
		checked[file.Path] = true
		wants, err := parseWants(string(file.Text))
		if err != nil {
			t.Errorf("%s: %v", file.Path, err)
		}
		for _, want := range wants {
			if !match(want, file.Path, got, found) {
				t.Errorf("%s:%d: missing diagnostic %s that matches %q", file.Path, want.line, want.code, want.message)
			}
		}
	}
	for i, d := range got {
		if !found[i] {
			t.Errorf("unexpected %s: %v", d.Severity, d)
		}
	}
}

// match marks the diagnostics that match want: all equal ones, as a file that is
// included twice is read twice.
func match(want want, path string, got diag.List, found []bool) bool {
	matched := false
	for i, d := range got {
		fits := !found[i] && d.Code == want.code && d.Span.File != nil && d.Span.File.Path == path && d.Span.Start.Line == want.line
		if fits && want.message.MatchString(d.Message+"; "+d.Hint) && (!matched || len(d.Span.Includes()) > 0) {
			found[i], matched = true, true
		}
	}
	return matched
}
