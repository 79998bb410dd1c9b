package records

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// charset returns the charset of a text file by its byte order mark, else the one that the table
// names; nil for UTF-8.
func charset(table *spec.Table, head string) (encoding.Encoding, string, error) {
	switch {
	case strings.HasPrefix(head, string(bomUTF16LE)), strings.HasPrefix(head, string(bomUTF16BE)):
		return unicode.UTF16(unicode.LittleEndian, unicode.ExpectBOM), "UTF-16", nil
	case table.Encoding == "", table.Encoding == "utf-8", strings.HasPrefix(head, string(bomUTF8)):
		return nil, "UTF-8", nil
	}
	enc, err := htmlindex.Get(table.Encoding)
	return enc, table.Encoding, err
}

// separator returns the character that a value of the table options delimiter and quote names; 0 for none.
func separator(name string) byte {
	return map[string]byte{"comma": ',', "semicolon": ';', "tab": '\t', "pipe": '|', "colon": ':', "space": ' ', "double": '"', "single": '\''}[name]
}

// reads reports whether a column is read: by a variable, or if the caller names none, by everybody.
func (r *Reader) reads(column string) bool {
	return r.vars == nil || slices.ContainsFunc(r.vars, func(v *spec.Variable) bool { return v.ID == column })
}

// cellReader makes the values of cells by the options of the table.
type cellReader struct {
	nulls []string
	comma []bool // the columns whose numbers have a decimal comma
	read  []bool // the columns whose invalid cells fail their row
}

// cells returns what makes the values of the columns.
func (r *Reader) cells() *cellReader {
	c := &cellReader{nulls: r.table.Nulls, comma: make([]bool, len(r.columns)), read: make([]bool, len(r.columns))}
	for i, name := range r.columns {
		c.read[i] = r.reads(name)
		c.comma[i] = r.table.Decimal == "comma" && slices.ContainsFunc(r.vars, func(v *spec.Variable) bool {
			return v.ID == name && (v.Type.Is("int") || v.Type.Is("float"))
		})
	}
	return c
}

// withComma matches numbers with a decimal comma, and with points or spaces between groups of digits.
var withComma = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\s*([+-]?)(\d{1,3}(?:[. \x{a0}\x{202f}]\d{3})+|\d+)(?:,(\d+))?\s*$`)
})

// value returns the value of a cell.
func (c *cellReader) value(column int, text string, quoted bool) any {
	if !quoted && slices.Contains(c.nulls, text) {
		return nil
	}
	if !c.comma[column] {
		return text
	}
	part := withComma().FindStringSubmatch(text)
	if part == nil {
		return text
	}
	whole := strings.NewReplacer(".", "", " ", "", "\u00a0", "", "\u202f", "").Replace(part[2])
	if part[3] == "" {
		return part[1] + whole
	}
	return part[1] + whole + "." + part[3]
}

// Hint returns what may help if the file lacks a column that it should have; empty if nothing does.
func (r *Reader) Hint() string {
	switch {
	case len(r.columns) == 0 || !r.format.Cells():
		return ""
	case strings.HasPrefix(r.columns[0], "#"):
		return "; the table option comment=# skips such lines"
	case len(r.sheets) > 1:
		return r.otherSheets()
	case len(r.columns) == 1 && strings.ContainsAny(r.columns[0], "~^:/\x01"):
		return "; the table option delimiter names what separates the columns"
	case slices.Contains(r.columns, ""), len(r.columns) == 1 && strings.Contains(r.columns[0], " "): // a title above the table
		return "; the table option header names the line of the columns, such as header=3"
	}
	return ""
}

// CheckValue returns v in the form that encoders take for a column of the kind:
// nil for null, int64, float64, bool or []byte for the kinds of those names, and v
// itself for Text and JSONText, whose text encoders append without a copy.
func CheckValue(kind Kind, v any) (any, error) {
	if v == nil || v == value.Unset {
		return nil, nil
	}
	switch kind {
	case Int:
		return convertInt(v)
	case Float:
		return convertFloat(v)
	case Bool:
		if b, ok := v.(bool); ok {
			return b, nil
		}
		return nil, fmt.Errorf("expected true or false, got %s", shown(v))
	case Bytes:
		switch v := v.(type) {
		case []byte:
			return v, nil
		case string:
			return []byte(v), nil
		}
		return nil, fmt.Errorf("expected bytes, got %s", shown(v))
	case JSONText:
		return v, nil
	}
	if b, ok := v.([]byte); ok {
		return bytesText(b), nil
	}
	return v, nil
}

// bytesText returns bytes as text: base64 if they are not UTF-8.
func bytesText(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	return base64.StdEncoding.EncodeToString(b)
}

func convertInt(v any) (any, error) {
	switch v := v.(type) {
	case int64:
		return v, nil
	case int:
		return int64(v), nil
	case json.Number:
		if n, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return n, nil
		}
	case value.Decimal:
		if n, err := value.Coerce(spec.Type{Name: "int"}, v); err == nil {
			return n, nil
		}
	case float64:
		if v == math.Trunc(v) && math.Abs(v) <= 1<<53 {
			return int64(v), nil
		}
	}
	return nil, fmt.Errorf("expected a whole number, got %s", shown(v))
}

func convertFloat(v any) (any, error) {
	switch v := v.(type) {
	case float64:
		return v, nil
	case int64:
		return float64(v), nil
	case int:
		return float64(v), nil
	case json.Number:
		if x, err := v.Float64(); err == nil {
			return x, nil
		}
	case value.Decimal:
		if x, err := value.Coerce(spec.Type{Name: "float"}, v); err == nil {
			return x, nil
		}
	}
	return nil, fmt.Errorf("expected a number, got %s", shown(v))
}

// AppendCell appends the text of a value that is not null, as a flat format writes it.
func AppendCell(b []byte, kind Kind, v any) []byte {
	switch v := v.(type) {
	case bool:
		return strconv.AppendBool(b, v)
	case float64:
		if kind == Float {
			return appendFloat(b, v)
		}
	case []byte:
		if kind == Bytes {
			return value.AppendCell(b, v)
		}
	}
	if kind == JSONText {
		return appendNested(b, v)
	}
	if n, ok := v.(json.Number); ok { // its digits as written
		return append(b, n...)
	}
	return value.AppendText(b, v)
}

// appendNested appends a value of a JSONText column as compact JSON.
func appendNested(b []byte, v any) []byte {
	switch v := v.(type) {
	case json.RawMessage:
		var compact bytes.Buffer
		if json.Compact(&compact, v) == nil {
			return append(b, compact.Bytes()...)
		}
	case json.Number:
		return append(b, v...)
	case string:
		return appendJSONText(b, v)
	}
	return value.AppendJSON(b, v)
}

// shown returns a value for a message, cut if it is long.
func shown(v any) string {
	if r := []rune(string(appendNested(nil, v))); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return string(appendNested(nil, v))
}
