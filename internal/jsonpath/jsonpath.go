// Package jsonpath parses and evaluates the paths of FieldExtractors: JSONPath with
// the extensions of jsonpath-ng that documents for QType (Python) use. These are
// arithmetic with paths, numbers and strings ($.price * 2, $.first + ' ' + $.last)
// and functions in backquotes ($.items.`len`). Plain paths are those of
// github.com/ohler55/ojg/jp; no library has the extensions
// (docs/decisions/024-jsonpath.md).
package jsonpath

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ohler55/ojg/jp"
)

// Find returns the matches of a plain path in document order. Objects are
// map[string]any or jp.Keyed. It must not change the document.
type Find func(path jp.Expr, doc any) []any

// Path is a parsed path. It is safe for concurrent use.
type Path struct{ root node }

// node is a part of a path with arithmetic and functions.
type node interface {
	find(doc any, with Find) ([]any, error)
}

// Parse parses a path; the leading $ is optional. An error at a part of the path is an [*Error].
func Parse(text string) (path *Path, err error) {
	defer func() { // the parser of the library may panic
		if p := recover(); p != nil {
			path, err = nil, fmt.Errorf("not a JSONPath")
		}
	}()
	p := &parser{text: strings.TrimSpace(text)}
	if p.text == "" {
		return nil, fmt.Errorf("empty path")
	}
	root, err := p.sum()
	if err != nil {
		return nil, err
	}
	if p.at < len(p.text) {
		return nil, p.errorAtRest(p.at, "unexpected %q", p.text[p.at:])
	}
	if _, constant := root.(literal); constant {
		return nil, fmt.Errorf("a constant is not a path")
	}
	return &Path{root}, nil
}

// Find returns the matches of the path in document order. Operands of arithmetic
// with the wrong type do not match. The error is that of a function.
func (p *Path) Find(doc any, with Find) ([]any, error) { return p.root.find(doc, with) }

// plain is a plain JSONPath.
type plain struct{ path jp.Expr }

func (n plain) find(doc any, with Find) ([]any, error) { return with(n.path, doc), nil }

// literal is a number or a string.
type literal struct{ value any }

func (n literal) find(any, Find) ([]any, error) { return []any{n.value}, nil }

// functionCall applies a function to each match of a path.
type functionCall struct {
	of   node
	name string // as written
	do   function
}

func (n functionCall) find(doc any, with Find) ([]any, error) {
	found, err := n.of.find(doc, with)
	var all []any
	for _, v := range found {
		if err != nil {
			break
		}
		var made []any
		made, err = n.do(v)
		all = append(all, made...)
	}
	if err != nil {
		return nil, fmt.Errorf("`%s`: %w", n.name, err)
	}
	return all, nil
}

// continuation is a plain path that begins at each match of another path.
type continuation struct {
	of   node
	path jp.Expr
}

func (n continuation) find(doc any, with Find) ([]any, error) {
	found, err := n.of.find(doc, with)
	var all []any
	for _, v := range found {
		all = append(all, with(n.path, v)...)
	}
	return all, err
}

// operation is arithmetic: pairwise if both operands have the same number of
// matches, with every match if one operand is a literal, else without a result.
type operation struct {
	sign        byte
	left, right node
}

func (n operation) find(doc any, with Find) ([]any, error) {
	left, err := n.left.find(doc, with)
	if err != nil {
		return nil, err
	}
	right, err := n.right.find(doc, with)
	if err != nil {
		return nil, err
	}
	left, right = n.even(left, right)
	if len(left) != len(right) {
		return nil, nil
	}
	all := make([]any, len(left))
	for i := range left {
		v, ok := evaluate(n.sign, left[i], right[i])
		if !ok {
			return nil, nil
		}
		all[i] = v
	}
	return all, nil
}

// even repeats a literal operand for each match of the other one.
func (n operation) even(left, right []any) (l, r []any) {
	if _, constant := n.left.(literal); constant {
		left = repeated(left[0], len(right))
	}
	if _, constant := n.right.(literal); constant {
		right = repeated(right[0], len(left))
	}
	return left, right
}

func repeated(v any, n int) []any {
	all := make([]any, n)
	for i := range all {
		all[i] = v
	}
	return all
}

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
