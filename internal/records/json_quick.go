package records

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// fastJSON reads the objects that files of rows are full of several times as fast
// as encoding/json does. It judges nothing: whatever it does not take (a fault,
// a key twice, half a surrogate pair, deep nesting) it leaves to object, which
// says what is wrong. What it takes it reads as object does.
type fastJSON struct {
	text string
	at   int // the next byte
}

// quickDepth is how far the values that quick takes may nest.
const quickDepth = 100

// parseRecordFast makes a record of the text of one object; false where quick does
// not take it. Columns are shared with the record before where they are equal.
func parseRecordFast(raw []byte, last *[]string) (Record, bool) {
	if !utf8.Valid(raw) {
		return Record{}, false
	}
	q := &fastJSON{text: string(raw)}
	if q.peek() != '{' {
		return Record{}, false
	}
	q.at++
	names, values, ok := q.members(*last)
	if !ok || q.peek() != 0 || q.at < len(q.text) {
		return Record{}, false
	}
	*last = names
	return Record{Columns: names, Values: values}, true
}

// members reads keys and values up to the closing brace. The names are those of
// the record before as long as they are the same.
func (q *fastJSON) members(last []string) (names []string, values []any, ok bool) {
	if q.skip('}') {
		return nil, nil, true
	}
	names, values = last[:0:0], make([]any, 0, max(len(last), 4))
	same := true // so far the names are those of last
	for {
		key, ok := q.key()
		if !ok {
			return nil, nil, false
		}
		n := len(values)
		switch {
		case same && n < len(last) && last[n] == key:
		case same:
			names, same = append(names, last[:min(n, len(last))]...), false
			fallthrough
		default:
			if contains(names, key) {
				return nil, nil, false
			}
			names = append(names, strings.Clone(key))
		}
		v, ok := q.value(0)
		if !ok {
			return nil, nil, false
		}
		values = append(values, v)
		if q.skip(',') {
			continue
		}
		if !q.skip('}') {
			return nil, nil, false
		}
		if same {
			names = last[:len(values):len(values)]
		}
		return names, values, true
	}
}

// contains is slices.Contains, for few names without the call of a generic function.
func contains(names []string, name string) bool {
	for _, n := range names {
		if n == name {
			return true
		}
	}
	return false
}

// key reads a key without escapes, and the colon behind it.
func (q *fastJSON) key() (string, bool) {
	if q.peek() != '"' {
		return "", false
	}
	from := q.at + 1
	end := strings.IndexByte(q.text[from:], '"')
	if end < 0 {
		return "", false
	}
	key := q.text[from : from+end]
	for i := range len(key) {
		if key[i] < ' ' || key[i] == '\\' {
			return "", false
		}
	}
	q.at = from + end + 1
	return key, q.skip(':')
}

// peek is the next byte that is no blank, where the reader then stands; 0 at the end.
func (q *fastJSON) peek() byte {
	for ; q.at < len(q.text); q.at++ {
		switch c := q.text[q.at]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// skip passes over blanks and one byte if it is that.
func (q *fastJSON) skip(c byte) bool {
	if q.peek() == c {
		q.at++
		return true
	}
	return false
}

// value reads any value.
func (q *fastJSON) value(depth int) (any, bool) {
	switch c := q.peek(); c {
	case '"':
		return q.str()
	case 't':
		return true, q.word("true")
	case 'f':
		return false, q.word("false")
	case 'n':
		return nil, q.word("null")
	case '[':
		return q.list(depth)
	case '{':
		return q.object(depth)
	}
	return q.number()
}

func (q *fastJSON) word(w string) bool {
	if strings.HasPrefix(q.text[q.at:], w) {
		q.at += len(w)
		return true
	}
	return false
}

func (q *fastJSON) list(depth int) (any, bool) {
	q.at++
	items := []any{}
	if depth == quickDepth || q.skip(']') {
		return items, depth < quickDepth
	}
	for {
		v, ok := q.value(depth + 1)
		if !ok {
			return nil, false
		}
		items = append(items, v)
		if !q.skip(',') {
			return items, q.skip(']')
		}
	}
}

func (q *fastJSON) object(depth int) (any, bool) {
	q.at++
	fields := map[string]any{}
	if depth == quickDepth || q.skip('}') {
		return fields, depth < quickDepth
	}
	for {
		key, ok := q.key()
		if !ok {
			return nil, false
		}
		v, ok := q.value(depth + 1)
		if !ok {
			return nil, false
		}
		fields[key] = v
		if !q.skip(',') {
			return fields, q.skip('}')
		}
	}
}

// number reads a number by JSON's grammar.
func (q *fastJSON) number() (any, bool) {
	from := q.at
	if q.next() == '-' {
		q.at++
	}
	zero := q.next() == '0'
	if n := q.digits(); n == 0 || zero && n > 1 {
		return nil, false
	}
	if q.next() == '.' {
		q.at++
		if q.digits() == 0 {
			return nil, false
		}
	}
	if c := q.next(); c == 'e' || c == 'E' {
		q.at++
		if c := q.next(); c == '+' || c == '-' {
			q.at++
		}
		if q.digits() == 0 {
			return nil, false
		}
	}
	return json.Number(q.text[from:q.at]), true
}

// next is the byte at which the reader stands, 0 at the end.
func (q *fastJSON) next() byte {
	if q.at < len(q.text) {
		return q.text[q.at]
	}
	return 0
}

// digits passes over digits and tells how many there were.
func (q *fastJSON) digits() int {
	from := q.at
	for c := q.next(); c >= '0' && c <= '9'; c = q.next() {
		q.at++
	}
	return q.at - from
}

// str reads a text; the reader stands on its opening quote.
func (q *fastJSON) str() (any, bool) {
	q.at++
	from := q.at
	for ; q.at < len(q.text); q.at++ {
		switch c := q.text[q.at]; {
		case c == '"':
			s := q.text[from:q.at]
			q.at++
			return s, true
		case c == '\\':
			return q.escaped(from)
		case c < ' ':
			return nil, false
		}
	}
	return nil, false
}

// escaped goes on with a text at its first backslash.
func (q *fastJSON) escaped(from int) (any, bool) {
	var b strings.Builder
	b.Grow(q.rest(from))
	for {
		b.WriteString(q.text[from:q.at])
		c := q.next()
		if c == '"' {
			q.at++
			return b.String(), true
		}
		if c != '\\' || !q.escape(&b) {
			return nil, false
		}
		for from = q.at; q.next() >= ' ' && q.next() != '"' && q.next() != '\\'; {
			q.at++
		}
	}
}

// rest is at least as long as the text that begins at from: up to a quote that
// no backslash stands before.
func (q *fastJSON) rest(from int) int {
	for at := q.at; at < len(q.text); at++ {
		switch q.text[at] {
		case '\\':
			at++
		case '"':
			return at - from
		}
	}
	return len(q.text) - from
}

// escape reads one escape, from its backslash on.
func (q *fastJSON) escape(b *strings.Builder) bool {
	q.at++
	c := q.next()
	if c == 'u' {
		return q.unicode(b)
	}
	i := strings.IndexByte(`"\/bfnrt`, c)
	if i < 0 {
		return false
	}
	q.at++
	b.WriteByte("\"\\/\b\f\n\r\t"[i])
	return true
}

// unicode reads the digits of \uXXXX; a surrogate is left to object.
func (q *fastJSON) unicode(b *strings.Builder) bool {
	if q.at+5 > len(q.text) {
		return false
	}
	n, err := strconv.ParseUint(q.text[q.at+1:q.at+5], 16, 16)
	if err != nil || n >= 0xd800 && n < 0xe000 {
		return false
	}
	q.at += 5
	b.WriteRune(rune(n))
	return true
}
