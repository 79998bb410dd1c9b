package jsonpath

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Error is an error at a part of a path.
type Error struct {
	From, Len int // the part in the path without spaces around it, in bytes
	Message   string
}

func (e *Error) Error() string { return e.Message }

// errorAt returns an error at a part of the text from an offset on. At the end of the text, the part
// is the last character.
func (p *parser) errorAt(from, length int, format string, args ...any) error {
	if from >= len(p.text) {
		_, last := utf8.DecodeLastRuneInString(p.text)
		from, length = len(p.text)-last, last
	}
	return &Error{From: from, Len: min(length, len(p.text)-from), Message: fmt.Sprintf(format, args...)}
}

// errorAtRest returns an error at the text from an offset on.
func (p *parser) errorAtRest(from int, format string, args ...any) error {
	return p.errorAt(from, len(p.text), format, args...)
}

// locate adds the position to an error of the library, whose form is "MESSAGE at N in TEXT", where N is
// the number of the next byte from 1. The text that the library has read begins at an offset of the
// path; offsets has for each of its bytes the offset from there.
func (p *parser) locate(err error, read string, from int, offsets []int) error {
	message, rest, _ := strings.Cut(err.Error(), " at ")
	number, _, _ := strings.Cut(rest, " ")
	next, convErr := strconv.Atoi(number)
	if convErr != nil {
		return err
	}
	at, length := partOf(message, read, min(max(next-1, 0), len(read)))
	if at >= len(offsets) {
		return p.errorAt(len(p.text), 1, "%s", message)
	}
	begin := max(from+offsets[at], 0)
	if length == 0 {
		_, length = utf8.DecodeRuneInString(p.text[begin:])
	}
	if message == "parse error" {
		message = fmt.Sprintf("unexpected %q", p.text[begin:begin+length])
	}
	return p.errorAt(begin, length, "%s", message)
}

// partOf returns the part of a text that a message of the library is about, which has read the text up to
// an offset. The length is 0 for one character.
func partOf(message, read string, next int) (at, length int) {
	quoted, found := strings.CutPrefix(message, "'")
	part, _, isPart := strings.Cut(quoted, "' is not a")
	switch {
	case found && isPart && strings.HasSuffix(read[:next], part):
		return next - len(part), len(part)
	case found && isPart:
		return next, len(part)
	case strings.Contains(message, "number"), strings.Contains(message, "union"), strings.Contains(message, "fragment"):
		return max(next-1, 0), 0 // the byte that was read last
	}
	return next, 0
}

// offsetsOf returns for each byte that quoteNames has written the byte of the piece that it is from. quoteNames
// adds brackets with quotes, and leaves dots out.
func offsetsOf(piece, quoted string) []int {
	offsets, at := make([]int, len(quoted)), 0
	for i := range len(quoted) {
		if at < len(piece) && piece[at] == '.' && quoted[i] == '[' {
			at++
		}
		offsets[i] = min(at, max(len(piece)-1, 0))
		if at < len(piece) && piece[at] == quoted[i] {
			at++
		}
	}
	return offsets
}
