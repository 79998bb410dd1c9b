package records

import (
	"bufio"
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/internal/jsontext"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec/value"
)

// csvEncoder writes CSV or TSV with a header row. Lines end in "\n"; null and
// the empty text are both an empty field.
type csvEncoder struct {
	out     *bufio.Writer
	delim   byte
	columns []Column
	line    []byte
	cell    []byte // the text of a field before it is quoted
}

func newCSVEncoder(out *bufio.Writer, delim byte, columns []Column) *csvEncoder {
	e := &csvEncoder{out: out, delim: delim, columns: columns}
	for i, c := range columns {
		e.field(i, []byte(c.Name))
	}
	_ = e.end() // a failure stays with out and is reported by the next write
	return e
}

func (e *csvEncoder) Write(values []any) error {
	for i, v := range values {
		e.cell = e.cell[:0]
		if v != nil {
			e.cell = AppendCell(e.cell, e.columns[i].Kind, v)
		}
		if e.columns[i].NoFormulas && isFormula(e.cell, v) {
			e.cell = slices.Insert(e.cell, 0, '\'')
		}
		e.field(i, e.cell)
	}
	return e.end()
}

// isFormula reports whether a spreadsheet may take a cell for a formula, which the
// value is not: numbers are not texts.
func isFormula(cell []byte, v any) bool {
	switch v.(type) {
	case int64, float64, json.Number, value.Decimal:
		return false
	}
	return len(cell) > 0 && bytes.IndexByte([]byte("=+-@\t\r"), cell[0]) >= 0
}

// end writes the line.
func (e *csvEncoder) end() error {
	_, err := e.out.Write(append(e.line, '\n'))
	e.line = e.line[:0]
	return err
}

func (e *csvEncoder) Close() error { return nil }

// field adds a field to the line. The only field of a line is quoted if it is
// empty: readers skip empty lines.
func (e *csvEncoder) field(i int, text []byte) {
	if i > 0 {
		e.line = append(e.line, e.delim)
	}
	if !utf8.Valid(text) {
		text = bytes.ToValidUTF8(text, []byte("\uFFFD"))
	}
	special := bytes.IndexByte(text, e.delim) >= 0 || bytes.ContainsAny(text, "\"\r\n") ||
		len(text) == 0 && len(e.columns) == 1 || bytes.HasPrefix(text, bomUTF8)
	if !special {
		e.line = append(e.line, text...)
		return
	}
	e.line = append(e.line, '"')
	for {
		i := bytes.IndexByte(text, '"')
		if i < 0 {
			break
		}
		e.line = append(append(e.line, text[:i+1]...), '"')
		text = text[i+1:]
	}
	e.line = append(append(e.line, text...), '"')
}

// appendFloat appends a float so that it is read back as the same float: with a decimal
// point or an exponent, or as NaN, Infinity or -Infinity.
func appendFloat(b []byte, x float64) []byte {
	switch {
	case math.IsNaN(x):
		return append(b, "NaN"...)
	case math.IsInf(x, 1):
		return append(b, "Infinity"...)
	case math.IsInf(x, -1):
		return append(b, "-Infinity"...)
	}
	before := len(b)
	b = textfmt.AppendNumber(b, x)
	if !bytes.ContainsAny(b[before:], ".e") {
		b = append(b, ".0"...)
	}
	return b
}

// jsonEncoder writes an array of objects, or one object a line, with the columns in
// order. NaN and infinities, which are not numbers in JSON, are written as the strings
// NaN, Infinity and -Infinity.
type jsonEncoder struct {
	out     *bufio.Writer
	columns []Column
	keys    []string // each with its quotes, its colon and the comma before it
	array   bool
	some    bool // a record was written
	line    []byte
}

func newJSONEncoder(out *bufio.Writer, columns []Column, array bool) *jsonEncoder {
	e := &jsonEncoder{out: out, columns: columns, array: array}
	for i, c := range columns {
		key := string(appendJSONText(nil, c.Name)) + ":"
		if i > 0 {
			key = "," + key
		}
		e.keys = append(e.keys, key)
	}
	return e
}

func (e *jsonEncoder) Write(values []any) error {
	e.line = append(e.line[:0], e.before()...)
	e.line = append(e.line, '{')
	for i, v := range values {
		e.line = append(e.line, e.keys[i]...)
		e.line = appendJSON(e.line, e.columns[i].Kind, v)
	}
	e.line = append(e.line, '}')
	if !e.array {
		e.line = append(e.line, '\n')
	}
	_, err := e.out.Write(e.line)
	e.some = true
	return err
}

// before returns what separates a record from the one before it.
func (e *jsonEncoder) before() string {
	switch {
	case !e.array:
		return ""
	case e.some:
		return ",\n"
	}
	return "[\n"
}

func (e *jsonEncoder) Close() error {
	if !e.array {
		return nil
	}
	end := "\n]\n"
	if !e.some {
		end = "[]\n"
	}
	_, err := e.out.WriteString(end)
	return err
}

// appendJSON appends a value of a column of the kind.
func appendJSON(b []byte, kind Kind, v any) []byte {
	switch {
	case v == nil:
		return append(b, "null"...)
	case kind == JSONText:
		return appendNested(b, v)
	case kind == Int || kind == Bool:
		return AppendCell(b, kind, v)
	case kind == Float:
		x := v.(float64) // CheckValue returns nothing else
		if math.IsInf(x, 0) || math.IsNaN(x) {
			return append(appendFloat(append(b, '"'), x), '"')
		}
		return appendFloat(b, x)
	case kind == Bytes:
		return appendNested(b, v)
	}
	if s, ok := v.(string); ok {
		return appendJSONText(b, s)
	}
	return appendJSONText(b, string(AppendCell(nil, kind, v)))
}

// appendJSONText appends a text in quotes.
func appendJSONText(b []byte, s string) []byte { return jsontext.AppendString(b, s, jsontext.LineSafe) }
