package diag

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/spec/source"
)

// Fix is a replacement of text. The fixes of a diagnostic belong together: they are
// applied all at once.
type Fix struct {
	Span    source.Span // the text to replace; empty to insert
	NewText string      // the replacement, verbatim
}

// WithFix returns the diagnostic with a single fix that replaces the text of its
// span. It does nothing if aliases use the text elsewhere too, where it may be
// correct.
func (d Diagnostic) WithFix(newText string) Diagnostic {
	if d.Span.File != nil && d.Span.File.IsShared(d.Span) {
		return d
	}
	d.Fixes = []Fix{{Span: d.Span, NewText: newText}}
	return d
}

// WithoutFix returns the diagnostic without its fixes. The suggestion remains.
func (d Diagnostic) WithoutFix() Diagnostic {
	d.Fixes = nil
	return d
}

// WithoutSuggestion returns the diagnostic without its suggestion, hint and fixes.
func (d Diagnostic) WithoutSuggestion() Diagnostic {
	d.Suggestion, d.Hint, d.Fixes = "", "", nil
	return d
}

// WithNearest returns the diagnostic with the candidate nearest to name as
// suggestion (see Nearest), and as fix if it is unambiguous. It does nothing if no
// candidate is near.
func (d Diagnostic) WithNearest(name string, candidates []string) Diagnostic {
	return d.WithNear(name, Nearest(name, candidates), candidates)
}

// WithNear is WithNearest for what Nearest has returned for the name.
func (d Diagnostic) WithNear(name, near string, candidates []string) Diagnostic {
	d = d.WithSuggestion(near)
	if IsUnambiguous(name, near, candidates) {
		d = d.WithReplacement(name, near)
	}
	return d
}

// WithReplacement returns the diagnostic with a fix that replaces the scalar old at
// its span and keeps the quotes. It does nothing if the source text
// differs from old because of escapes, aliases, includes or variables.
func (d Diagnostic) WithReplacement(old, replacement string) Diagnostic {
	const quotes = `"'`
	is := written(d.Span)
	switch {
	case replacement == "" || old == "" || strings.ContainsAny(replacement, quotes+"\\") || !printable(replacement):
	case is == old && (plain(replacement) || isTag(old) && isTag(replacement)):
		return d.WithFix(replacement)
	case is == old || is == `"`+old+`"`:
		return d.WithFix(`"` + replacement + `"`)
	case is == `'`+old+`'`:
		return d.WithFix(`'` + replacement + `'`)
	}
	return d
}

// WithNumber returns the diagnostic with a fix that replaces a whole number at its span. It
// does nothing if the source text is written otherwise.
func (d Diagnostic) WithNumber(old, replacement int) Diagnostic {
	if written(d.Span) != strconv.Itoa(old) {
		return d
	}
	return d.WithFix(strconv.Itoa(replacement))
}

// WithQuotes returns the diagnostic with a fix that quotes the scalar at its span.
func (d Diagnostic) WithQuotes(scalar string) Diagnostic {
	if written(d.Span) != scalar || strings.ContainsAny(scalar, "\"\\") || !printable(scalar) {
		return d
	}
	return d.WithFix(`"` + scalar + `"`)
}

// WithBrackets returns the diagnostic with a fix that makes the word at its span a
// list with one element.
func (d Diagnostic) WithBrackets(word string) Diagnostic {
	is := written(d.Span)
	if is == word && plain(word) || is == `"`+word+`"` || is == `'`+word+`'` {
		return d.WithFix("[" + is + "]")
	}
	return d
}

// WithInside returns the diagnostic with a fix that replaces a part of a longer
// scalar, old as written, by the suggestion.
func (d Diagnostic) WithInside(old string) Diagnostic {
	if written(d.Span) != old || d.Suggestion == "" || strings.ContainsAny(d.Suggestion, "\"'\\#:") || !printable(d.Suggestion) {
		return d
	}
	return d.WithFix(d.Suggestion)
}

// IsUnambiguous reports whether near is so similar to name, and every other
// candidate so much less, that a fix can be applied without asking. It allows a
// difference in letter case or one edit, two in a long word, but never in a digit.
// Every other candidate must be an edit further away.
func IsUnambiguous(name, near string, candidates []string) bool {
	const shortest, long = 3, 8 // characters
	n := utf8.RuneCountInString(name)
	if near == "" || n < shortest || digits(name) != digits(near) {
		return false // part_1 is not a misspelled part_2
	}
	reach := 2 // half edits
	if n >= long {
		reach = 4
	}
	cost := distance(name, near, reach+1)
	if cost > reach {
		return false
	}
	letters := lettersOf(name)
	for _, c := range candidates {
		if c == near || c == "" || 2*leastEdits(letters, lettersOf(c)) >= cost+2 {
			continue
		}
		if distance(name, c, cost+2) < cost+2 {
			return false
		}
	}
	return true
}

func digits(name string) string {
	return strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, name)
}

// maxFixLine is the length in bytes up to which lines are fixed. Longer lines are
// generated, and counting their columns takes time.
const maxFixLine = 4096

// written returns the source text of a span within one line, "" if it is not
// available.
func written(s source.Span) string {
	if s.File == nil || s.Start.Line == 0 || s.End.Line != s.Start.Line {
		return ""
	}
	line := s.File.Line(s.Start.Line)
	if len(line) > maxFixLine {
		return ""
	}
	runes := []rune(line)
	if s.Start.Column < 1 || s.End.Column < s.Start.Column || s.End.Column > len(runes)+1 {
		return ""
	}
	return string(runes[s.Start.Column-1 : s.End.Column-1])
}

// plainScalar matches texts that YAML reads as the same string in every context
// without quotes.
var plainScalar = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`) })

// plain reports whether a string needs no quotes in YAML 1.1 and 1.2.
func plain(s string) bool {
	switch strings.ToLower(s) {
	case "y", "n", "yes", "no", "on", "off", "true", "false", "null":
		return false
	}
	return plainScalar().MatchString(s)
}

// isTag reports whether a string is a tag of the language, such as !include.
func isTag(s string) bool { return strings.HasPrefix(s, "!") && plain(s[1:]) }

func printable(s string) bool {
	return !strings.ContainsFunc(s, unprintable) && !strings.Contains(s, "\t")
}
