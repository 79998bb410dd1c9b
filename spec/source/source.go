// Package source knows texts and places in them: the file a word stands in, its
// line and column, and through which includes it came. Every diagnostic, every
// entity of the language and every run-time error points with its types.
//
// Lines and columns count from 1; columns count characters (Unicode code
// points), not bytes. All types are plain values, safe to share once filled.
package source

import (
	"bytes"
	"fmt"
	"strings"
)

// File is one text that was read, whole.
type File struct {
	Path string // as a user would name it, relative to the working directory where it lies below it
	Text []byte // UTF-8, without a byte order mark
	From Span   // the include that asked for it; zero for the root document

	hidden []Span // where secrets stand
	shared []Span // what stands in other places, too
}

// Pos is a character's place. The zero Pos is no place.
type Pos struct {
	Line   int // from 1
	Column int // from 1, in characters
}

// Span is a stretch of one file, from Start up to but without End.
type Span struct {
	File  *File // nil for no stretch at all
	Start Pos   // its first character
	End   Pos   // the character behind its last
}

// IsZero tells whether the span points nowhere.
func (s Span) IsZero() bool { return s.File == nil }

// String prints "file:line:column", the file alone where there is no line, and
// nothing for the zero span.
func (s Span) String() string {
	switch {
	case s.File == nil:
		return ""
	case s.Start.Line == 0:
		return s.File.Path
	}
	return fmt.Sprintf("%s:%d:%d", s.File.Path, s.Start.Line, s.Start.Column)
}

// Compare orders spans as a reader meets them: an included file's stretch stands
// where the include stands. It is fit for slices.SortStableFunc.
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

// Includes lists the include directives that led to the span's file, innermost first.
func (s Span) Includes() []Span {
	var chain []Span
	for f := s.File; f != nil && f.From.File != nil; f = f.From.File {
		chain = append(chain, f.From)
	}
	return chain
}

// Line is the text of line n, without its end; empty where there is none.
func (f *File) Line(n int) string {
	rest := f.Text
	for ; n > 1; n-- {
		_, after, found := bytes.Cut(rest, []byte{'\n'})
		if !found {
			return ""
		}
		rest = after
	}
	line, _, _ := bytes.Cut(rest, []byte{'\n'})
	return strings.TrimSuffix(string(line), "\r")
}

// MarkSecret says that a secret stands in the stretch, so that no excerpt shows it.
// It must not be called once the file is shared.
func (f *File) MarkSecret(s Span) { f.hidden = append(f.hidden, s) }

// Hidden lists the stretches that no excerpt may show, in the order in which they were found.
func (f *File) Hidden() []Span { return f.hidden }

// MarkAliased says that aliases put what stands in the stretch in other places, too.
// It must not be called once the file is shared.
func (f *File) MarkAliased(s Span) { f.shared = append(f.shared, s) }

// IsShared tells whether a stretch of the file lies in one that stands in other places, too.
func (f *File) IsShared(s Span) bool {
	for _, whole := range f.shared {
		if comparePos(whole.Start, s.Start) <= 0 && comparePos(s.End, whole.End) <= 0 {
			return true
		}
	}
	return false
}

// trail is the span preceded by the includes that lead to it, outermost first.
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
