package records

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// csvEncoder writes CSV or TSV with a header row. Lines end in "\n"; null is an
// empty field, as is the empty text.
type csvEncoder struct {
	out   *bufio.Writer
	delim byte
	line  []byte
}

func newCSVEncoder(out *bufio.Writer, delim byte, columns []Column) *csvEncoder {
	e := &csvEncoder{out: out, delim: delim}
	header := make([]any, len(columns))
	for i, c := range columns {
		header[i] = c.Name
	}
	_ = e.write(header) // a failure stays with out and shows at the next write
	return e
}

func (e *csvEncoder) write(values []any) error {
	e.line = e.line[:0]
	for i, v := range values {
		if i > 0 {
			e.line = append(e.line, e.delim)
		}
		e.field(v, len(values) == 1)
	}
	e.line = append(e.line, '\n')
	_, err := e.out.Write(e.line)
	return err
}

func (e *csvEncoder) close() error { return nil }

// field adds one field. A record of one empty field is quoted: an empty line
// would be no record.
func (e *csvEncoder) field(v any, alone bool) {
	switch v := v.(type) {
	case nil:
		e.text("", alone)
	case string:
		e.text(v, alone)
	case json.RawMessage:
		e.text(string(v), alone)
	case []byte:
		e.text(base64.StdEncoding.EncodeToString(v), alone)
	case int64:
		e.line = strconv.AppendInt(e.line, v, 10)
	case bool:
		e.line = strconv.AppendBool(e.line, v)
	case float64:
		e.line = appendFloat(e.line, v)
	}
}

func (e *csvEncoder) text(s string, alone bool) {
	s = strings.ToValidUTF8(s, "\uFFFD")
	special := strings.IndexByte(s, e.delim) >= 0 || strings.ContainsAny(s, "\"\r\n") || (alone && s == "") ||
		strings.HasPrefix(s, "\uFEFF")
	if !special {
		e.line = append(e.line, s...)
		return
	}
	e.line = append(e.line, '"')
	for {
		i := strings.IndexByte(s, '"')
		if i < 0 {
			break
		}
		e.line = append(append(e.line, s[:i+1]...), '"')
		s = s[i+1:]
	}
	e.line = append(append(e.line, s...), '"')
}

// appendFloat writes a float so that it reads back as the same and as a float.
func appendFloat(b []byte, x float64) []byte {
	before := len(b)
	format := byte('f')
	if abs := math.Abs(x); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	b = strconv.AppendFloat(b, x, format, -1, 64)
	if format == 'f' && bytes.IndexByte(b[before:], '.') < 0 && !math.IsInf(x, 0) && !math.IsNaN(x) {
		b = append(b, ".0"...)
	}
	return b
}

// jsonEncoder writes an array of objects, or one object a line, the columns in
// their order. NaN and the infinities, which JSON does not have, become null.
type jsonEncoder struct {
	out   *bufio.Writer
	keys  []string // each with its quotes, colon and the comma before it
	array bool
	some  bool // a record was written
	line  []byte
}

func newJSONEncoder(out *bufio.Writer, columns []Column, array bool) *jsonEncoder {
	e := &jsonEncoder{out: out, array: array}
	for i, c := range columns {
		key := string(appendJSONText(nil, c.Name)) + ":"
		if i > 0 {
			key = "," + key
		}
		e.keys = append(e.keys, key)
	}
	return e
}

func (e *jsonEncoder) write(values []any) error {
	e.line = append(e.line[:0], e.before()...)
	e.line = append(e.line, '{')
	for i, v := range values {
		e.line = append(e.line, e.keys[i]...)
		e.line = appendJSON(e.line, v)
	}
	e.line = append(e.line, '}')
	if !e.array {
		e.line = append(e.line, '\n')
	}
	_, err := e.out.Write(e.line)
	e.some = true
	return err
}

// before is what parts a record from the one before it.
func (e *jsonEncoder) before() string {
	switch {
	case !e.array:
		return ""
	case e.some:
		return ",\n"
	}
	return "[\n"
}

func (e *jsonEncoder) close() error {
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

func appendJSON(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...)
	case string:
		return appendJSONText(b, v)
	case json.RawMessage:
		return append(b, v...)
	case []byte:
		return appendJSONText(b, base64.StdEncoding.EncodeToString(v))
	case int64:
		return strconv.AppendInt(b, v, 10)
	case bool:
		return strconv.AppendBool(b, v)
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return append(b, "null"...)
		}
		return appendFloat(b, v)
	}
	return append(b, "null"...) // fit makes nothing else
}

// appendJSONText quotes a text. Beside what JSON demands, U+2028 and U+2029 are
// escaped, which some line readers take for line ends.
func appendJSONText(b []byte, s string) []byte {
	const digits = "0123456789abcdef"
	b = append(b, '"')
	for _, r := range s { // an invalid byte comes as U+FFFD
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, '\\', 'n')
		case r == '\r':
			b = append(b, '\\', 'r')
		case r == '\t':
			b = append(b, '\\', 't')
		case r < 0x20 || r == 0x7f:
			b = append(b, '\\', 'u', '0', '0', digits[r>>4], digits[r&15])
		case r == 0x2028:
			b = append(b, `\u2028`...)
		case r == 0x2029:
			b = append(b, `\u2029`...)
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}
