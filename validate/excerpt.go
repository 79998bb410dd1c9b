package validate

import (
	"strings"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/source"
)

// within narrows a span to the first place where word stands in its text, so
// that a fault inside a long text is shown at its line. It answers the span
// itself where the word is not found: escapes, variables and includes may have
// changed the text.
func within(span source.Span, word string) source.Span {
	if span.File == nil {
		return span
	}
	last := max(span.End.Line, span.Start.Line)
	for n := span.Start.Line; n <= last; n++ {
		line, skip := span.File.Line(n), 0
		if n == span.Start.Line {
			skip = byteAt(line, span.Start.Column)
		}
		limit := len(line)
		if n == span.End.Line {
			limit = max(skip, byteAt(line, span.End.Column))
		}
		at := strings.Index(line[skip:limit], word)
		if at < 0 {
			continue
		}
		start := utf8.RuneCountInString(line[:skip+at]) + 1
		return source.Span{File: span.File, Start: source.Pos{Line: n, Column: start},
			End: source.Pos{Line: n, Column: start + utf8.RuneCountInString(word)}}
	}
	return span
}

// byteAt is the offset of a column, the line's length where it ends before.
func byteAt(line string, column int) int {
	for i := range line {
		if column--; column == 0 {
			return i
		}
	}
	return len(line)
}
