package duckdb

import (
	"bytes"
	"database/sql/driver"
	"encoding/base64"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/distribution/sqldb/remote"
	"github.com/qtype-dev/qtype/spec/value"
)

// column is a column of a result.
type column struct {
	name string
	typ  dataType
}

// dataType is a type of DuckDB.
type dataType struct {
	name   string     // such as DECIMAL or TIMESTAMP WITH TIME ZONE; LIST, STRUCT and MAP have parts
	size   string     // of an ARRAY, such as 3; empty for a LIST
	of     []dataType // the type of items, of fields, or of the values of a MAP
	fields []string   // the names of the fields of a STRUCT
}

// parseType parses a type as DESCRIBE writes it. An unknown type is read as text.
func parseType(text string) dataType {
	p := &typeParser{rest: text}
	t, ok := p.parse()
	if !ok || p.rest != "" {
		return dataType{name: text}
	}
	return t
}

// typeParser parses the text of a type.
type typeParser struct{ rest string }

func (p *typeParser) skip(prefix string) bool {
	rest, ok := strings.CutPrefix(strings.TrimLeft(p.rest, " "), prefix)
	if ok {
		p.rest = rest
	}
	return ok
}

// parse reads a type: a name with arguments, and a suffix for each level of lists.
func (p *typeParser) parse() (dataType, bool) {
	var t dataType
	var ok bool
	switch {
	case p.skip("STRUCT("):
		t, ok = p.fields()
	case p.skip("MAP("):
		t, ok = p.entries()
	default:
		t, ok = p.scalar()
	}
	for ok && strings.HasPrefix(p.rest, "[") {
		end := strings.IndexByte(p.rest, ']')
		if end < 0 {
			return t, false
		}
		t = dataType{name: "LIST", size: p.rest[1:end], of: []dataType{t}}
		p.rest = p.rest[end+1:]
	}
	return t, ok
}

// fields reads the fields of a STRUCT. One without names has none that a record could have.
func (p *typeParser) fields() (dataType, bool) {
	t := dataType{name: "STRUCT"}
	for {
		name, ok := p.name()
		if !ok || !strings.HasPrefix(p.rest, " ") {
			return t, false
		}
		of, ok := p.parse()
		if !ok {
			return t, false
		}
		t.fields, t.of = append(t.fields, name), append(t.of, of)
		if p.skip(")") {
			return t, true
		}
		if !p.skip(",") {
			return t, false
		}
	}
}

// entries reads the types of a MAP. Its keys are texts.
func (p *typeParser) entries() (dataType, bool) {
	if _, ok := p.parse(); !ok || !p.skip(",") {
		return dataType{}, false
	}
	of, ok := p.parse()
	return dataType{name: "MAP", of: []dataType{of}}, ok && p.skip(")")
}

// name reads the name of a field, with quotes if it is not a word.
func (p *typeParser) name() (string, bool) {
	p.rest = strings.TrimLeft(p.rest, " ")
	if !strings.HasPrefix(p.rest, `"`) {
		end := strings.IndexByte(p.rest, ' ')
		if end <= 0 {
			return "", false
		}
		name := p.rest[:end]
		if strings.ContainsAny(name, "(),[") {
			return "", false
		}
		p.rest = p.rest[end:]
		return name, true
	}
	text, ok := p.quoted('"')
	return text, ok
}

// quoted reads a text in quotes, which are doubled in it.
func (p *typeParser) quoted(quote byte) (string, bool) {
	var b strings.Builder
	for i := 1; i < len(p.rest); i++ {
		if p.rest[i] != quote {
			b.WriteByte(p.rest[i])
			continue
		}
		if i+1 < len(p.rest) && p.rest[i+1] == quote {
			b.WriteByte(quote)
			i++
			continue
		}
		p.rest = p.rest[i+1:]
		return b.String(), true
	}
	return "", false
}

// scalar reads the name of a type, of several words, and skips its arguments, such as those
// of DECIMAL, ENUM or UNION.
func (p *typeParser) scalar() (dataType, bool) {
	p.rest = strings.TrimLeft(p.rest, " ")
	end := strings.IndexAny(p.rest, `(),["`)
	if end < 0 {
		end = len(p.rest)
	}
	t := dataType{name: strings.TrimSpace(p.rest[:end])}
	p.rest = p.rest[end:]
	if strings.HasPrefix(p.rest, `"`) { // a type of the database
		_, ok := p.quoted('"')
		return t, ok
	}
	if t.name == "" || !strings.HasPrefix(p.rest, "(") {
		return t, t.name != ""
	}
	depth := 0
	for p.rest != "" {
		switch c := p.rest[0]; c {
		case '\'', '"':
			if _, ok := p.quoted(c); !ok {
				return t, false
			}
			continue
		case '(':
			depth++
		case ')':
			depth--
		}
		if p.rest = p.rest[1:]; depth == 0 {
			return t, true
		}
	}
	return t, false
}

// text returns an expression for a column in which all values are texts: JSON has no type for most.
func (t dataType) text(column string) string {
	if t.name == "BLOB" {
		return "base64(" + column + ")"
	}
	return "CAST(" + column + " AS " + t.texts() + ")"
}

// texts returns the type of the same structure with texts.
func (t dataType) texts() string {
	switch t.name {
	case "LIST":
		return t.of[0].texts() + "[" + t.size + "]"
	case "MAP":
		return "MAP(VARCHAR, " + t.of[0].texts() + ")"
	case "STRUCT":
		fields := make([]string, len(t.of))
		for i, of := range t.of {
			fields[i] = `"` + strings.ReplaceAll(t.fields[i], `"`, `""`) + `" ` + of.texts()
		}
		return "STRUCT(" + strings.Join(fields, ", ") + ")"
	}
	return "VARCHAR"
}

// decode sets the values of a row, a list in JSON.
func (r *rows) decode(line []byte, into []driver.Value) error {
	parsed, err := value.Parse(string(line))
	cells, ok := parsed.([]any)
	if err != nil || !ok || len(cells) != len(into) {
		return errors.New("a row from DuckDB does not have the expected form")
	}
	for i, c := range r.columns {
		v, ok := r.config.value(c.typ, cells[i], false)
		if !ok {
			return fmt.Errorf("column %s of type %s has the unexpected value %.100s", c.name, c.typ.name, value.JSON(cells[i]))
		}
		into[i] = v
	}
	return nil
}

// value returns the run-time value of a type. Types that the language does not have are texts.
func (c Config) value(t dataType, v any, nested bool) (any, bool) {
	switch v := v.(type) {
	case nil:
		return nil, true
	case []any:
		if t.name != "LIST" {
			return nil, false
		}
		out := make([]any, len(v))
		for i, item := range v {
			var ok bool
			if out[i], ok = c.value(t.of[0], item, true); !ok {
				return nil, false
			}
		}
		return out, true
	case *value.Record:
		return c.record(t, v)
	case string:
		if t.name == "BLOB" {
			return decodeBlob(v, nested)
		}
		return c.scalar(t.name, v)
	}
	return nil, false
}

// record returns the value of a STRUCT or a MAP.
func (c Config) record(t dataType, v *value.Record) (any, bool) {
	if t.name != "STRUCT" && t.name != "MAP" {
		return nil, false
	}
	fields := make([]value.Field, 0, v.Len())
	for name, text := range v.All() {
		of := t.of[0]
		if t.name == "STRUCT" {
			if len(fields) >= len(t.of) {
				return nil, false
			}
			of = t.of[len(fields)]
		}
		item, ok := c.value(of, text, true)
		if !ok {
			return nil, false
		}
		fields = append(fields, value.Field{Name: name, Value: item})
	}
	return value.NewRecord("", fields...), true
}

// scalar parses a text.
func (c Config) scalar(typ, text string) (any, bool) {
	switch typ {
	case "BOOLEAN":
		return text == "true", text == "true" || text == "false"
	case "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "HUGEINT", "UHUGEINT", "BIGNUM", "VARINT":
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n, true
		}
		return value.Decimal(text), text != ""
	case "FLOAT", "REAL", "DOUBLE":
		n, err := strconv.ParseFloat(text, 64)
		return n, err == nil
	case "DECIMAL":
		digits, negative := strings.CutPrefix(text, "-")
		if strings.HasPrefix(digits, ".") { // all digits are after the point
			digits = "0" + digits
		}
		if negative {
			digits = "-" + digits
		}
		return value.Decimal(digits), true
	case "DATE":
		return c.time(text, "2006-01-02", true, false), true
	case "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS":
		return c.time(text, "2006-01-02 15:04:05.999999999", false, false), true
	case "TIMESTAMP WITH TIME ZONE":
		return c.time(strings.TrimSuffix(text, "+00"), "2006-01-02 15:04:05.999999999", false, true), true
	}
	return text, true
}

// time returns a date or a time. DuckDB writes years before 1 as 0044-03-15 (BC), and those after 9999
// with more digits. infinity is a text.
func (c Config) time(text, layout string, isDate, zoned bool) any {
	rest, before := strings.CutSuffix(text, " (BC)")
	rest = strings.TrimSuffix(rest, "+00")
	digits, rest, ok := strings.Cut(rest, "-")
	year, err := strconv.Atoi(digits)
	if !ok || err != nil {
		return text
	}
	if before {
		year = 1 - year
	}
	t, err := time.Parse(layout, "2000-"+rest) // a leap year
	if err != nil {
		return text
	}
	return c.Time(time.Date(year, t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC), isDate, zoned)
}

// decodeBlob returns the bytes of a BLOB: base64, or in a list or record DuckDB's text, in which \xAB
// is a byte.
func decodeBlob(text string, escaped bool) (any, bool) {
	if !escaped {
		data, err := base64.StdEncoding.DecodeString(text)
		return data, err == nil
	}
	var b bytes.Buffer
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			b.WriteByte(text[i])
			continue
		}
		if i+4 > len(text) || text[i+1] != 'x' {
			return nil, false
		}
		n, err := strconv.ParseUint(text[i+2:i+4], 16, 8)
		if err != nil {
			return nil, false
		}
		b.WriteByte(byte(n))
		i += 3
	}
	return b.Bytes(), true
}

// Variable is the beginning of the names of DuckDB's variables with the values of a query, which are
// numbered from 1: the query has getvariable('qtype1') for the first one.
const Variable = "qtype"

// maxDigits is the number of digits that a DECIMAL of DuckDB has at most.
const maxDigits = 38

// literals returns an expression for each value.
func literals(named []driver.NamedValue) ([]string, error) {
	out := make([]string, len(named))
	for i, v := range named {
		text, reason := literal(v.Value)
		if reason != "" {
			return nil, &remote.ParameterError{At: i, Reason: reason}
		}
		out[i] = text
	}
	return out, nil
}

// literal returns an expression with a run-time value, or why there is none.
func literal(v any) (text, reason string) {
	switch v := v.(type) {
	case nil:
		return "NULL", ""
	case bool:
		return strconv.FormatBool(v), ""
	case int64:
		return fmt.Sprintf("CAST('%d' AS BIGINT)", v), ""
	case float64:
		return "CAST('" + strconv.FormatFloat(v, 'g', -1, 64) + "' AS FLOAT8)", ""
	case value.Decimal:
		return decimal(value.Text(v))
	case []byte:
		return "from_base64('" + base64.StdEncoding.EncodeToString(v) + "')", ""
	case value.Date:
		return "CAST('" + v.String() + "' AS DATE)", ""
	case value.Time:
		return "CAST('" + v.String() + "' AS TIME)", ""
	case value.DateTime:
		const layout = "2006-01-02 15:04:05.999999"
		if v.Zoned {
			return "CAST('" + v.Time.UTC().Format(layout) + "+00' AS TIMESTAMPTZ)", ""
		}
		return "CAST('" + v.Time.Format(layout) + "' AS TIMESTAMP)", ""
	case []any:
		return list(v)
	case *value.Record:
		return encoded(string(value.JSON(v))), ""
	}
	return encoded(value.Text(v)), "" // a ChatMessage is its text
}

// list returns a LIST. Values of different types become texts.
func list(items []any) (text, reason string) {
	var of reflect.Type
	mixed := false
	for _, item := range items {
		if t := reflect.TypeOf(item); item != nil {
			mixed = mixed || of != nil && t != of
			of = t
		}
	}
	out := make([]string, len(items))
	for i, item := range items {
		if mixed && item != nil {
			out[i] = encoded(value.Text(item))
		} else if out[i], reason = literal(item); reason != "" {
			return "", reason
		}
	}
	return "[" + strings.Join(out, ", ") + "]", ""
}

// decimal returns a DECIMAL with the digits of a number.
func decimal(text string) (expression, reason string) {
	whole, fraction, _ := strings.Cut(strings.TrimLeft(text, "+-"), ".")
	digits := len(strings.TrimLeft(whole, "0")) + len(fraction)
	switch {
	case strings.Trim(whole+fraction, "0123456789") != "":
		return "", "is not a decimal number in digits"
	case digits > maxDigits:
		return "", fmt.Sprintf("has more than %d digits", maxDigits)
	}
	return fmt.Sprintf("CAST('%s' AS DECIMAL(%d, %d))", text, maxDigits, len(fraction)), ""
}
