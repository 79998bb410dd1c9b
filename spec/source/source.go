// Package source represents files and positions in them: line, column, and the
// includes that led to the file. Diagnostics, entities of the language and
// run-time errors use it to point to the text.
//
// Lines and columns count from 1; columns count characters (Unicode code
// points), not bytes. All types are safe to share once complete.
package source

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// File is a file that was read completely.
type File struct {
	Path string // relative to the working directory if it is inside it
	Text []byte // UTF-8, without a byte order mark
	From Span   // the include directive that names the file; zero for the root document

	hidden []Span // secrets
	lines  lineIndex
	shared []Span  // values that aliases use elsewhere too
	texts  []*File // files whose text is a value of this one
}

// Pos is the position of a character. The zero Pos is no position.
type Pos struct {
	Line   int // from 1
	Column int // from 1, in characters
}

// Span is a range of a file, from Start up to but not including End.
type Span struct {
	File  *File // nil for the zero Span
	Start Pos   // the first character
	End   Pos   // the character after the last one
}

// IsZero reports whether the span has no file.
func (s Span) IsZero() bool { return s.File == nil }

// String returns "file:line:column", only the file if there is no line, and "" for
// the zero span.
func (s Span) String() string {
	switch {
	case s.File == nil:
		return ""
	case s.Start.Line == 0:
		return s.File.Path
	}
	return fmt.Sprintf("%s:%d:%d", s.File.Path, s.Start.Line, s.Start.Column)
}

// Compare orders spans in reading order: the content of an included file is at the
// position of the include. It is meant for slices.SortStableFunc.
func Compare(s, t Span) int {
	a, b := s.trail(), t.trail()
	for i := 0; i < len(a) && i < len(b); i++ {
		if a[i].File != b[i].File {
			return strings.Compare(path(a[i].File), path(b[i].File))
		}
		if c := comparePos(a[i].Start, b[i].Start); c != 0 {
			return c
		}
	}
	return len(a) - len(b)
}

// Includes returns the include directives that led to the span's file, innermost
// first.
func (s Span) Includes() []Span {
	var chain []Span
	for f := s.File; f != nil && f.From.File != nil; f = f.From.File {
		chain = append(chain, f.From)
	}
	return chain
}

// Line returns line n without its line ending, "" if there is none.
func (f *File) Line(n int) string {
	start, found := f.lines.start(f.Text, max(n, 1))
	if !found {
		return ""
	}
	line, _, _ := bytes.Cut(f.Text[start:], []byte{'\n'})
	return strings.TrimSuffix(string(line), "\r")
}

// MarkSecret marks a secret, so that no excerpt shows it. It is not safe for
// concurrent use.
func (f *File) MarkSecret(s Span) { f.hidden = append(f.hidden, s) }

// Hidden returns the secrets of the file in the order of MarkSecret.
func (f *File) Hidden() []Span { return f.hidden }

// MarkAliased marks a value that aliases use elsewhere too. It is not safe for
// concurrent use.
func (f *File) MarkAliased(s Span) { f.shared = append(f.shared, s) }

// IsShared reports whether a span is within a value that aliases use elsewhere too.
func (f *File) IsShared(s Span) bool {
	for _, whole := range f.shared {
		if comparePos(whole.Start, s.Start) <= 0 && comparePos(s.End, whole.End) <= 0 {
			return true
		}
	}
	return false
}

// MarkText records a file whose text is the value at the directive that includes it. It is not
// safe for concurrent use.
func (f *File) MarkText(included *File) { f.texts = append(f.texts, included) }

// Text returns all of the file whose text is the value at a span, and whether there is one:
// the value is in the file as a directive only.
func (s Span) Text() (whole Span, found bool) {
	if s.File == nil {
		return Span{}, false
	}
	for _, f := range s.File.texts {
		if f.From == s {
			last := bytes.Count(f.Text, []byte{'\n'}) + 1
			return Span{File: f, Start: Pos{Line: 1, Column: 1}, End: Pos{Line: last, Column: utf8.RuneCountInString(f.Line(last)) + 1}}, true
		}
	}
	return Span{}, false
}

// trail returns the span preceded by the includes that lead to it, outermost first.
func (s Span) trail() []Span {
	chain := s.Includes()
	trail := make([]Span, 0, len(chain)+1)
	for i := len(chain) - 1; i >= 0; i-- {
		trail = append(trail, chain[i])
	}
	return append(trail, s)
}

func path(f *File) string {
	if f == nil {
		return ""
	}
	return f.Path
}

func comparePos(a, b Pos) int {
	if a.Line != b.Line {
		return a.Line - b.Line
	}
	return a.Column - b.Column
}
