package input

import (
	"strings"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/spec/source"
)

// Bytes returns the place of some bytes of a file, up to the end of the line.
func Bytes(file *source.File, at, length int) source.Span {
	before := file.Text[:at]
	line := 1 + strings.Count(string(before), "\n")
	start := strings.LastIndexByte(string(before), '\n') + 1
	column := 1 + utf8.RuneCount(before[start:])
	text, _, _ := strings.Cut(string(file.Text[at:min(len(file.Text), at+length)]), "\n")
	return source.Span{File: file, Start: source.Pos{Line: line, Column: column}, End: source.Pos{Line: line, Column: column + max(1, utf8.RuneCountInString(text))}}
}
