// Package wordvectors has a small model that gives words vectors of their meaning: without a
// server, and without a sequence of layers. The vector of a text is the sum of those of its words.
//
// The vectors are those of WordLlama 0.4.0, cut and rounded by the command convert; see LICENSE
// and docs/decisions/173-vectors-of-words.md.
package wordvectors

import (
	"encoding/binary"
	"math"
	"strings"
	"sync"
)

// Dimensions is the length of a vector.
const Dimensions = 64

const (
	rowBytes   = 4 + Dimensions/2 // a factor, and 4 bits for each dimension
	maxTokens  = 1<<16 - 1
	maxLetters = 64  // of a word that is divided into tokens
	start      = "_" // begins the first token of a word
)

// token is the number of a part of a word that has a vector.
type token uint16

// Model is the table of tokens. It is safe for concurrent use.
type Model struct {
	numbers map[string]token // the lower, the sooner it is merged
	rows    string
}

// Vector is the vector of a word, or of the words of a text.
type Vector [Dimensions]float32

// Add adds the vector of a word.
func (v *Vector) Add(word *Vector) {
	for i, x := range word {
		v[i] += x
	}
}

// Default returns the model that is part of the program; one without words where there is none.
//
//nolint:gochecknoglobals // read once
var Default = sync.OnceValue(func() *Model { return parse(table) })

// parse reads a table: the length of the names, the names, one a line, and their rows.
func parse(table string) *Model {
	if table == "" {
		return &Model{}
	}
	names := table[4:][:binary.LittleEndian.Uint32([]byte(table[:4]))]
	m := &Model{numbers: make(map[string]token, strings.Count(names, "\n")), rows: table[4+len(names):]}
	for name := range strings.Lines(names) {
		m.numbers[name[:len(name)-1]] = token(len(m.numbers))
	}
	return m
}

// Empty reports whether the model knows no words.
func (m *Model) Empty() bool { return len(m.numbers) == 0 }

// Word returns the vector of a word, as package words returns it: the sum of those of its parts that have one.
func (m *Model) Word(word string) (v Vector) {
	var buffer [16]token
	for _, t := range m.tokens(buffer[:0], word) {
		m.add(&v, t)
	}
	return v
}

// tokens appends the tokens of a word.
func (m *Model) tokens(to []token, word string) []token {
	whole := start + word
	if number, known := m.numbers[whole]; known {
		return append(to, number)
	}
	if len(word) > maxLetters || m.Empty() {
		return to
	}
	ends := make([]int, 0, maxLetters+1) // of the parts
	for i := range word {
		ends = append(ends, i+len(start))
	}
	ends = append(ends, len(whole))
	for {
		best, at, from := token(maxTokens), -1, 0
		for i := range len(ends) - 1 {
			if number, known := m.numbers[whole[from:ends[i+1]]]; known && number < best {
				best, at = number, i
			}
			from = ends[i]
		}
		if at < 0 {
			break
		}
		ends = append(ends[:at], ends[at+1:]...)
	}
	from := 0
	for _, end := range ends {
		if number, known := m.numbers[whole[from:end]]; known {
			to = append(to, number)
		}
		from = end
	}
	return to
}

// add adds the vector of a token.
func (m *Model) add(sum *Vector, t token) {
	row := m.rows[int(t)*rowBytes:][:rowBytes]
	factor := math.Float32frombits(uint32(row[0]) | uint32(row[1])<<8 | uint32(row[2])<<16 | uint32(row[3])<<24)
	for i := range Dimensions / 2 {
		codes := row[4+i]
		sum[2*i] += factor * float32(int(codes&15)-8)
		sum[2*i+1] += factor * float32(int(codes>>4)-8)
	}
}
