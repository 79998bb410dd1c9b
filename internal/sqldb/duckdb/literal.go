package duckdb

import (
	"database/sql/driver"
	"encoding/base64"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/internal/sqldb/remote"
	"github.com/qtype-dev/qtype/spec/value"
)

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
