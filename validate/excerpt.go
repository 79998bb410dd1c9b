package validate

import (
	"strings"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/spec/source"
)

// excerpt is a part of a value's text. It is described by its context, so that it can
// be found in the document, which has indentation and quotes between the lines.
type excerpt struct {
	word    string
	context string // the word and the rest of its line
	before  int    // the number of occurrences of context in the text before it
	// The number of occurrences of the word in the text before it and in all. They find the
	// word where the lines of the document are not those of the text: in a folded scalar.
	wordsBefore, words int
}

// excerptAt returns the excerpt of n bytes of text at a byte offset.
func excerptAt(text string, at, n int) excerpt {
	context, _, _ := strings.Cut(text[at:], "\n")
	context = strings.TrimSuffix(context, "\r") // as source.File.Line does
	e := excerpt{word: text[at : at+n], context: context}
	if len(e.word) > len(context) { // of a word over two lines, the first line is marked
		e.word = context
	}
	e.before = strings.Count(text[:at], context)
	e.wordsBefore, e.words = strings.Count(text[:at], e.word), strings.Count(text, e.word)
	return e
}

// within narrows the span of a text to an excerpt, so that an error in a long text is
// reported at its line; that of a text of !include_raw is in the included file. It returns
// the span itself if the excerpt is not found: escapes and variables may have changed the text.
func within(span source.Span, e excerpt) source.Span {
	if span.File == nil || e.context == "" {
		return span
	}
	if whole, found := span.Text(); found {
		if part := within(whole, e); part != whole {
			return part
		}
		return span
	}
	if found, ok, _ := find(span, e.context, e.word, e.before); ok {
		return found
	}
	if found, ok, _ := find(span, e.word, e.word, e.wordsBefore); ok {
		if _, more, all := find(span, e.word, e.word, e.words); !more && all == e.words {
			return found
		}
	}
	return span
}

// find returns the position of a word at the start of the occurrence of context after the
// first skip ones in the text of a span, and the number of occurrences before it.
func find(span source.Span, context, word string, skip int) (found source.Span, ok bool, passed int) {
	for n := span.Start.Line; n <= max(span.End.Line, span.Start.Line); n++ {
		line := span.File.Line(n)
		from, to := 0, len(line)
		if n == span.Start.Line {
			from = byteAt(line, span.Start.Column)
		}
		if n == span.End.Line {
			to = max(from, byteAt(line, span.End.Column))
		}
		at, inLine := occurrence(line[from:to], context, skip-passed)
		passed += inLine
		if at >= 0 {
			return wordAt(span.File, n, line[:from+at], word), true, passed
		}
	}
	return source.Span{}, false, passed
}

// occurrence returns the offset of the occurrence of word in text after the first
// skip ones, or -1, and the number of occurrences before it.
func occurrence(text, word string, skip int) (at, passed int) {
	for from := 0; ; passed++ {
		n := strings.Index(text[from:], word)
		switch {
		case n < 0:
			return -1, passed
		case passed == skip:
			return from + n, passed
		}
		from += n + len(word)
	}
}

// wordAt returns the span of a word after some text of a line.
func wordAt(f *source.File, line int, before, word string) source.Span {
	column := utf8.RuneCountInString(before) + 1
	return source.Span{File: f, Start: source.Pos{Line: line, Column: column},
		End: source.Pos{Line: line, Column: column + utf8.RuneCountInString(word)}}
}

// byteAt returns the byte offset of a column, or the length of a shorter line.
func byteAt(line string, column int) int {
	for i := range line {
		if column--; column == 0 {
			return i
		}
	}
	return len(line)
}
