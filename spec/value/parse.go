package value

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxDepth limits the nesting of objects and lists.
const maxDepth = 1000

// SyntaxError is the position and reason of invalid JSON.
type SyntaxError struct {
	Line   int    // counted from 1
	Column int    // in characters, counted from 1
	Offset int    // in bytes, counted from 0
	Reason string // what was expected or found

	truncated bool
}

// Error returns the position and the reason.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Reason)
}

// Truncated reports whether the text was valid as far as it goes.
func (e *SyntaxError) Truncated() bool { return e.truncated }

// Parse parses one JSON text. Objects keep the order of their keys; for duplicate
// keys the last value counts. Integers beyond 64 bits and floats beyond float64
// remain json.Number, so that no digit is lost. The error is a *SyntaxError.
func Parse(text string) (any, error) {
	p := &parser{text: text}
	v, err := p.whole()
	if err != nil {
		return nil, err
	}
	p.blanks()
	if p.at < len(text) {
		return nil, p.fail("there is more after the value")
	}
	return v, nil
}

// ParsePrefix parses the JSON value at the start of text and returns its length in
// bytes. For the output of models it also accepts NaN, Infinity, and strings with
// unescaped newlines.
func ParsePrefix(text string) (v any, n int, err error) {
	p := &parser{text: text, lenient: true}
	v, err = p.whole()
	return v, p.at, err
}

// openItems is the number of list items that are collected on the stack, so that
// most lists are allocated once, in their exact size.
const openItems = 16

// parser is a recursive-descent parser of JSON.
type parser struct {
	text    string
	at      int  // index of the next byte
	depth   int  // number of open objects and lists
	lenient bool // see ParsePrefix
}

// fail returns an error at the next byte.
func (p *parser) fail(format string, args ...any) error {
	before := p.text[:p.at]
	start := strings.LastIndexByte(before, '\n') + 1
	return &SyntaxError{
		Line:   1 + strings.Count(before, "\n"),
		Column: 1 + utf8.RuneCountInString(before[start:]),
		Offset: p.at,
		Reason: fmt.Sprintf(format, args...),

		truncated: p.at >= len(p.text),
	}
}

// found describes the next character.
func (p *parser) found() string {
	if p.at >= len(p.text) {
		return "the end of the text"
	}
	r, _ := utf8.DecodeRuneInString(p.text[p.at:])
	return strconv.QuoteRune(r)
}

func (p *parser) blanks() {
	for ; p.at < len(p.text); p.at++ {
		switch p.text[p.at] {
		case ' ', '\t', '\r', '\n':
		default:
			return
		}
	}
}

// peek skips white space and returns the next byte, 0 at the end.
func (p *parser) peek() byte {
	p.blanks()
	if p.at < len(p.text) {
		return p.text[p.at]
	}
	return 0
}

// whole parses any value.
func (p *parser) whole() (any, error) {
	switch c := p.peek(); {
	case c == '{':
		return p.object()
	case c == '[':
		return p.list()
	case c == '"':
		s, err := p.str()
		if err != nil {
			return nil, err
		}
		return s, nil
	case c == '-' || c >= '0' && c <= '9':
		return p.number()
	}
	return p.word()
}

// word parses true, false, null and, if lenient, NaN and Infinity.
func (p *parser) word() (any, error) {
	end := p.at
	for end < len(p.text) && (p.text[end]|0x20 >= 'a' && p.text[end]|0x20 <= 'z') {
		end++
	}
	word := p.text[p.at:end]
	var v any
	switch {
	case word == "true":
		v = true
	case word == "false":
		v = false
	case word == "null":
	case word == "NaN" && p.lenient:
		v = math.NaN()
	case word == "Infinity" && p.lenient:
		v = math.Inf(1)
	default:
		return nil, p.fail("expected a value, found %s", p.found())
	}
	p.at = end
	return v, nil
}

func (p *parser) number() (any, error) {
	start := p.at
	if p.lenient && strings.HasPrefix(p.text[p.at:], "-Infinity") {
		p.at += len("-Infinity")
		return math.Inf(-1), nil
	}
	if err := p.skipNumber(); err != nil {
		return nil, err
	}
	return number(p.text[start:p.at]), nil
}

// skipNumber moves past a number.
func (p *parser) skipNumber() error {
	p.skip("-")
	whole := p.digits()
	if whole > 1 && p.text[p.at-whole] == '0' {
		p.at -= whole
		return p.fail("a number does not begin with 0")
	}
	ok := whole > 0
	if ok && p.skip(".") {
		ok = p.digits() > 0
	}
	if ok && p.skip("eE") {
		p.skip("+-")
		ok = p.digits() > 0
	}
	if !ok {
		return p.fail("expected a digit, found %s", p.found())
	}
	return nil
}

// skip skips one byte if it is one of these.
func (p *parser) skip(these string) bool {
	if p.at < len(p.text) && strings.IndexByte(these, p.text[p.at]) >= 0 {
		p.at++
		return true
	}
	return false
}

// digits skips digits and returns their number.
func (p *parser) digits() int {
	start := p.at
	for p.at < len(p.text) && p.text[p.at] >= '0' && p.text[p.at] <= '9' {
		p.at++
	}
	return p.at - start
}

// enter counts a nested object or list.
func (p *parser) enter() error {
	if p.depth++; p.depth > maxDepth {
		return p.fail("objects and lists nest deeper than %d", maxDepth)
	}
	p.at++
	return nil
}

// more reports whether another item follows.
func (p *parser) more(end byte) (bool, error) {
	switch p.peek() {
	case ',':
		p.at++
		return true, nil
	case end:
		p.at++
		p.depth--
		return false, nil
	}
	return false, p.fail("expected , or %c, found %s", end, p.found())
}

func (p *parser) list() (any, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	if p.peek() == ']' {
		p.at++
		p.depth--
		return []any{}, nil
	}
	var few [openItems]any
	items := few[:0]
	for {
		v, err := p.whole()
		if err != nil {
			return nil, err
		}
		items = append(items, v)
		if more, err := p.more(']'); err != nil || !more {
			return slices.Clone(items), err
		}
	}
}

func (p *parser) object() (any, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	o := &objectBuilder{}
	if p.peek() == '}' {
		p.at++
		p.depth--
		return &o.Record, nil
	}
	o.fields = make([]Field, 0, 4)
	for {
		key, err := p.key()
		if err != nil {
			return nil, err
		}
		v, err := p.whole()
		if err != nil {
			return nil, err
		}
		o.set(key, v)
		if more, err := p.more('}'); err != nil || !more {
			return &o.Record, err
		}
	}
}

// objectBuilder builds a record and indexes its keys if there are many.
type objectBuilder struct {
	Record
	index map[string]int // positions of the fields; created with the 17th
}

// set adds a field. A duplicate name replaces the value in its position.
func (o *objectBuilder) set(name string, v any) {
	if len(o.fields) == 16 {
		o.index = make(map[string]int, 32)
		for i, f := range o.fields {
			o.index[f.Name] = i
		}
	}
	if i := o.find(name); i >= 0 {
		o.fields[i].Value = v
		return
	}
	if o.index != nil {
		o.index[name] = len(o.fields)
	}
	o.fields = append(o.fields, Field{name, v})
}

func (o *objectBuilder) find(name string) int {
	if o.index != nil {
		if i, ok := o.index[name]; ok {
			return i
		}
		return -1
	}
	for i := range o.fields {
		if o.fields[i].Name == name {
			return i
		}
	}
	return -1
}

// ParseObject reads one JSON object as a row of a file: the names of its members,
// in order, and a value for each. Of equal names the last value counts, in the
// place of the first. Numbers at the top level stay json.Number, with their
// digits as written; what is nested is as Parse returns it.
//
// header is what the call for the row before returned. If the names are the same,
// ParseObject returns that slice, so rows of one shape share their names. The
// error is a *SyntaxError.
func ParseObject(text string, header []string) (names []string, values []any, err error) {
	p := &parser{text: text}
	if p.peek() != '{' {
		return nil, nil, p.fail("expected an object, found %s", p.found())
	}
	p.at++
	p.depth = 1
	row := rowBuilder{header: header, shared: true, values: make([]any, 0, max(len(header), 4))}
	if p.peek() == '}' {
		p.at++
	} else if err := p.members(&row); err != nil {
		return nil, nil, err
	}
	if p.blanks(); p.at < len(text) {
		return nil, nil, p.fail("there is more after the object")
	}
	return row.columns(), row.values, nil
}

// members reads the members of an object up to and with its closing brace.
func (p *parser) members(row *rowBuilder) error {
	for {
		key, err := p.key()
		if err != nil {
			return err
		}
		v, err := p.literal()
		if err != nil {
			return err
		}
		row.set(key, v)
		if more, err := p.more('}'); err != nil || !more {
			return err
		}
	}
}

// key reads a key and the colon after it.
func (p *parser) key() (string, error) {
	if p.peek() != '"' {
		return "", p.fail("expected a key in quotes, found %s", p.found())
	}
	key, err := p.str()
	if err != nil {
		return "", err
	}
	if p.peek() != ':' {
		return "", p.fail("expected :, found %s", p.found())
	}
	p.at++
	return key, nil
}

// literal reads a value; a number keeps its digits.
func (p *parser) literal() (any, error) {
	if c := p.peek(); c != '-' && (c < '0' || c > '9') {
		return p.whole()
	}
	start := p.at
	if err := p.skipNumber(); err != nil {
		return nil, err
	}
	return json.Number(p.text[start:p.at]), nil
}

// rowBuilder collects names and values. As long as the names are those of header
// it stores none.
type rowBuilder struct {
	header []string
	shared bool     // the names so far are those of header
	names  []string // the names so far, once shared is false
	values []any
}

func (r *rowBuilder) set(name string, v any) {
	n := len(r.values)
	if r.shared && n < len(r.header) && r.header[n] == name {
		r.values = append(r.values, v)
		return
	}
	if r.shared {
		r.names, r.shared = slices.Clone(r.header[:min(n, len(r.header))]), false
	}
	for i, known := range r.names {
		if known == name {
			r.values[i] = v
			return
		}
	}
	r.names = append(r.names, strings.Clone(name)) // a name must not keep the row's text in memory
	r.values = append(r.values, v)
}

func (r *rowBuilder) columns() []string {
	if r.shared {
		return r.header[:len(r.values):len(r.values)]
	}
	return r.names
}
