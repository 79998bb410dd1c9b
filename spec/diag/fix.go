package diag

import (
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/spec/source"
)

// Fix is one replacement of text. A diagnostic's fixes together are its one safe
// mending: applied all at once, with nothing else to choose from.
type Fix struct {
	Span    source.Span // the text that goes; empty where text is only put in
	NewText string      // what comes in its place, as it is to stand in the file
}

// WithFix answers the diagnostic with the one fix that its span is replaced by a
// text, taken as it is. Nothing changes where aliases put the span's text in
// other places, too: there it may be right.
func (d Diagnostic) WithFix(newText string) Diagnostic {
	if d.Span.File != nil && d.Span.File.IsShared(d.Span) {
		return d
	}
	d.Fixes = []Fix{{Span: d.Span, NewText: newText}}
	return d
}

// WithoutFix answers the diagnostic without its fixes: the suggestion stays
// advice, and nothing is mended by itself.
func (d Diagnostic) WithoutFix() Diagnostic {
	d.Fixes = nil
	return d
}

// WithNearest answers the diagnostic with the suggestion of what a writer of
// name most likely meant among candidates (see Nearest), and with a fix where
// nothing else can have been meant. Nothing changes where no candidate is near.
func (d Diagnostic) WithNearest(name string, candidates []string) Diagnostic {
	near := Nearest(name, candidates)
	d = d.WithSuggestion(near)
	if IsUnambiguous(name, near, candidates) {
		d = d.WithReplacement(name, near)
	}
	return d
}

// WithReplacement answers the diagnostic with the fix that the span's scalar,
// which is old, becomes what is meant. The scalar stays quoted where it is; nothing
// changes where the span's text is not plainly that scalar: escapes, aliases,
// includes and variables are left to the writer.
func (d Diagnostic) WithReplacement(old, meant string) Diagnostic {
	const quotes = `"'`
	is := written(d.Span)
	switch {
	case meant == "" || old == "" || strings.ContainsAny(meant, quotes+"\\") || !printable(meant):
	case is == old && (plain(meant) || isTag(old) && isTag(meant)):
		return d.WithFix(meant)
	case is == old || is == `"`+old+`"`:
		return d.WithFix(`"` + meant + `"`)
	case is == `'`+old+`'`:
		return d.WithFix(`'` + meant + `'`)
	}
	return d
}

// WithQuotes answers the diagnostic with the fix that a scalar, as it is written
// in its span, gets quotes.
func (d Diagnostic) WithQuotes(scalar string) Diagnostic {
	if written(d.Span) != scalar || strings.ContainsAny(scalar, "\"\\") || !printable(scalar) {
		return d
	}
	return d.WithFix(`"` + scalar + `"`)
}

// WithBrackets answers the diagnostic with the fix that a word, as it is written
// in its span, becomes a list of that one word.
func (d Diagnostic) WithBrackets(word string) Diagnostic {
	is := written(d.Span)
	if is == word && plain(word) || is == `"`+word+`"` || is == `'`+word+`'` {
		return d.WithFix("[" + is + "]")
	}
	return d
}

// WithInside answers the diagnostic with the fix that a part of a longer text,
// old as it is written, becomes what is suggested.
func (d Diagnostic) WithInside(old string) Diagnostic {
	if written(d.Span) != old || d.Suggestion == "" || strings.ContainsAny(d.Suggestion, "\"'\\#:") || !printable(d.Suggestion) {
		return d
	}
	return d.WithFix(d.Suggestion)
}

// IsUnambiguous tells whether near is so like name, and everything else so much less,
// that it alone can have been meant: a mistake in letter case or one wrong
// letter, two in a long word, never in a digit, and every other candidate a letter
// further away.
func IsUnambiguous(name, near string, candidates []string) bool {
	const shortest, long = 3, 8 // characters
	n := utf8.RuneCountInString(name)
	if near == "" || n < shortest || digits(name) != digits(near) {
		return false // part_1 is no mistyped part_2
	}
	reach := 2 // half edits
	if n >= long {
		reach = 4
	}
	cost := distance(name, near, reach+1)
	if cost > reach {
		return false
	}
	for _, c := range candidates {
		if c != near && c != "" && distance(name, c, cost+2) < cost+2 {
			return false
		}
	}
	return true
}

// digits are the digits of a name, in order.
func digits(name string) string {
	return strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, name)
}

// maxFixLine is the longest line, in bytes, in which a fix is looked for:
// nobody wrote a longer one by hand, and counting its columns takes time.
const maxFixLine = 4096

// written is the text of a span of one line as it stands in the file; empty
// where it is not at hand.
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

// plainScalar is what YAML reads as the text that it is, without quotes, in every place.
var plainScalar = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`) })

// plain tells whether a text needs no quotes in YAML 1.1 or 1.2.
func plain(s string) bool {
	switch strings.ToLower(s) {
	case "y", "n", "yes", "no", "on", "off", "true", "false", "null":
		return false
	}
	return plainScalar().MatchString(s)
}

// isTag tells whether a text is a YAML tag of ours, such as !include.
func isTag(s string) bool { return strings.HasPrefix(s, "!") && plain(s[1:]) }

func printable(s string) bool {
	return !strings.ContainsFunc(s, unprintable) && !strings.Contains(s, "\t")
}
