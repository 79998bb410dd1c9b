package wire

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// Count is a number of an answer, such as of tokens. Servers send 12, 12.0 or "12". What is
// not a number counts as 0: statistics never make an answer unreadable.
type Count int

// UnmarshalJSON reads a number, or a text with one. It never fails.
func (c *Count) UnmarshalJSON(raw []byte) error {
	if n, err := strconv.ParseUint(string(raw), 10, 31); err == nil { // the usual form
		*c = Count(n)
		return nil
	}
	n, err := strconv.ParseFloat(strings.Trim(string(raw), `" `), 64)
	if err != nil || !(n > 0) {
		n = 0
	}
	*c = Count(min(n, math.MaxInt32))
	return nil
}

// Word is a word of an answer, such as a finish reason. What is not a text, such as the
// number of a reason, is read as no word.
type Word string

// UnmarshalJSON reads a text. It never fails.
func (w *Word) UnmarshalJSON(raw []byte) error {
	var text string
	_ = json.Unmarshal(raw, &text) // leaves an empty word
	*w = Word(text)
	return nil
}

// Loose is an object of an answer that its reader can do without, such as the usage. Values of other
// types, in it or in its place, count as absent.
type Loose[T any] struct {
	Value T    // the zero value if there is none
	Set   bool // whether it is an object
}

// UnmarshalJSON reads an object. It never fails.
func (l *Loose[T]) UnmarshalJSON(raw []byte) error {
	if l.Set = raw[0] == '{'; l.Set {
		_ = json.Unmarshal(raw, &l.Value) // skips the fields of other types
	}
	return nil
}
