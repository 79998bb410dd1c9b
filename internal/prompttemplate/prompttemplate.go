// Package template reads prompt templates: text with placeholders such as
// {name}, {name!r} and {name:>8.2f}, where {{ and }} stand for braces. The syntax
// is that of Python's str.format with named arguments (reference steps.md 2).
//
// It knows neither variables nor values: package validate compares the names
// with a step's inputs, package steps puts values in.
package prompttemplate

import "strings"

// Kind tells what a piece of a template is.
type Kind uint8

// The kinds of pieces.
const (
	Literal     Kind = iota // text that stays as it is
	Placeholder             // {name!conversion:spec}
	Unclosed                // a { that is never closed
	Nested                  // a { inside a placeholder
	Stray                   // a } that closes nothing
)

// Piece is a stretch of a template.
type Piece struct {
	Kind       Kind   // what it is
	Text       string // literal: the text that it stands for; else as it is written, braces included
	At         int    // where it begins, in bytes of the template; of a nested { the inner one
	Name       string // of a placeholder: what stands before ! and :
	Conversion string // of a placeholder: what follows the name, with its !; empty for none
	Spec       string // of a placeholder: what follows the :
}

// Parse cuts a template into pieces. It goes on behind what cannot be read: the
// rest is read as if the brace at fault were not there. Neighbouring literals are one piece.
func Parse(text string) []Piece {
	r := reader{text: text}
	for r.at < len(text) {
		r.next()
	}
	r.flush()
	return r.pieces
}

// reader cuts a template.
type reader struct {
	text    string
	at      int // the next byte
	pieces  []Piece
	literal strings.Builder // literal text that is no piece yet
	from    int             // where that begins
}

// next reads literal text up to a brace, and the brace with what belongs to it.
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

// cut parts name!conversion:spec.
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

// write adds literal text.
func (r *reader) write(s string) {
	if r.literal.Len() == 0 {
		r.from = r.at
	}
	r.literal.WriteString(s)
}

// flush makes a piece of the literal text so far.
func (r *reader) flush() {
	if r.literal.Len() > 0 {
		r.pieces = append(r.pieces, Piece{Text: r.literal.String(), At: r.from})
		r.literal.Reset()
	}
}

// add puts a piece behind the literal text and goes on n bytes later.
func (r *reader) add(p Piece, n int) {
	r.flush()
	r.pieces = append(r.pieces, p)
	r.at += n
}
