// Package prompttemplate parses prompt templates: text with placeholders such as
// {name}, {name!r} and {name:>8.2f}, where {{ and }} are literal braces. The syntax
// is that of Python's str.format with named arguments.
//
// Package validate compares the names with the inputs of a step; package steps
// inserts the values.
package prompttemplate

import "strings"

// Kind is the kind of a piece.
type Kind uint8

// The kinds of pieces.
const (
	Literal     Kind = iota // text
	Placeholder             // {name!conversion:spec}
	Unclosed                // an unclosed {
	Nested                  // a { inside a placeholder
	Stray                   // a } without a {
)

// Piece is a part of a template.
type Piece struct {
	Kind       Kind   // kind of the piece
	Text       string // of a literal, without escapes; else as written, with braces
	At         int    // start in the template, in bytes; of a nested { the inner one
	Name       string // of a placeholder: the part before ! and :
	Conversion string // of a placeholder: the part after the name with its !, or empty
	Spec       string // of a placeholder: the part after :
}

// Parse splits a template into pieces. After an invalid brace it continues with the
// rest as if the brace were absent. Adjacent literals are one piece.
func Parse(text string) []Piece {
	r := reader{text: text}
	for r.at < len(text) {
		r.next()
	}
	r.flush()
	return r.pieces
}

// reader reads a template.
type reader struct {
	text    string
	at      int // index of the next byte
	pieces  []Piece
	literal strings.Builder // text that is not yet a piece
	from    int             // start of the text
}

// next reads text up to a brace, and what belongs to the brace.
func (r *reader) next() {
	rest := r.text[r.at:]
	n := strings.IndexAny(rest, "{}")
	if n < 0 {
		n = len(rest)
	}
	r.write(rest[:n])
	r.at += n
	rest = rest[n:]
	switch {
	case rest == "":
	case strings.HasPrefix(rest, "{{"), strings.HasPrefix(rest, "}}"):
		r.write(rest[:1])
		r.at += 2
	case rest[0] == '}':
		r.add(Piece{Kind: Stray, Text: "}", At: r.at}, 1)
	default:
		r.placeholder(rest)
	}
}

// placeholder reads {name!conversion:spec}; rest begins with its brace.
func (r *reader) placeholder(rest string) {
	end := strings.IndexAny(rest[1:], "{}") + 1
	switch {
	case end == 0:
		r.add(Piece{Kind: Unclosed, Text: "{", At: r.at}, 1)
	case rest[end] == '{':
		r.add(Piece{Kind: Nested, Text: "{", At: r.at + end}, 1)
	default:
		p := Piece{Kind: Placeholder, Text: rest[:end+1], At: r.at}
		p.Name, p.Conversion, p.Spec = cut(rest[1:end])
		r.add(p, end+1)
	}
}

// cut splits name!conversion:spec.
func cut(s string) (name, conversion, spec string) {
	i := strings.IndexAny(s, "!:")
	switch {
	case i < 0:
		return s, "", ""
	case s[i] == '!':
		name = s[:i]
		conversion, spec, _ = strings.Cut(s[i:], ":")
		return name, conversion, spec
	}
	return s[:i], "", s[i+1:]
}

func (r *reader) write(s string) {
	if r.literal.Len() == 0 {
		r.from = r.at
	}
	r.literal.WriteString(s)
}

// flush appends the literal text as a piece.
func (r *reader) flush() {
	if r.literal.Len() > 0 {
		r.pieces = append(r.pieces, Piece{Text: r.literal.String(), At: r.from})
		r.literal.Reset()
	}
}

// add appends a piece after the literal text and advances by n bytes.
func (r *reader) add(p Piece, n int) {
	r.flush()
	r.pieces = append(r.pieces, p)
	r.at += n
}
