package snowflake

import (
	"encoding/hex"
	"errors"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/spec/value"
)

// bindings returns run-time values as the values of a statement, by their numbers.
func bindings(values []any) object {
	all := object{}
	for i, v := range values {
		typ, content := binding(v)
		all[strconv.Itoa(i+1)] = object{"type": typ, "value": content}
	}
	return all
}

// binding returns the type and the value of a binding; lists and records are JSON.
func binding(v any) (typ string, content any) {
	switch v := v.(type) {
	case nil:
		return "TEXT", nil
	case bool:
		return "BOOLEAN", strconv.FormatBool(v)
	case int64:
		return "FIXED", strconv.FormatInt(v, 10)
	case float64:
		return "REAL", strconv.FormatFloat(v, 'g', -1, 64)
	case []byte:
		return "BINARY", hex.EncodeToString(v)
	case value.Date:
		at := time.Date(v.Year, v.Month, v.Day, 0, 0, 0, 0, time.UTC)
		return "DATE", strconv.FormatInt(at.UnixMilli(), 10)
	case value.DateTime:
		n := nanoseconds(v.Time)
		if v.Zoned {
			return "TIMESTAMP_LTZ", n
		}
		return "TIMESTAMP_NTZ", n
	case []any, *value.Record:
		return "TEXT", string(value.JSON(v))
	}
	return "TEXT", value.Text(v) // a time in ISO form is compared with a TIME
}

// nanoseconds returns the nanoseconds since 1970, also where an int64 has no room for them.
func nanoseconds(t time.Time) string {
	n := new(big.Int).Mul(big.NewInt(t.Unix()), big.NewInt(int64(time.Second)))
	return n.Add(n, big.NewInt(int64(t.Nanosecond()))).String()
}

var errValue = errors.New("unexpected value")

// decode returns the run-time value of a column. Types that the language does not have, such as
// GEOGRAPHY, remain texts, and so do VARIANT, ARRAY and OBJECT, which are JSON.
func decode(c column, text string) (any, error) {
	switch strings.ToUpper(c.Type) {
	case "FIXED":
		if c.Scale == 0 {
			if n, err := strconv.ParseInt(text, 10, 64); err == nil {
				return n, nil
			}
		}
		return value.Decimal(text), nil
	case "DECFLOAT":
		return value.Decimal(text), nil
	case "REAL":
		return strconv.ParseFloat(text, 64)
	case "BOOLEAN":
		return strconv.ParseBool(text)
	case "BINARY":
		return hex.DecodeString(text)
	case "DATE": // days
		days, err := strconv.ParseInt(text, 10, 64)
		return time.Unix(days*24*60*60, 0).UTC(), err
	case "TIME": // seconds of the day
		return seconds(text)
	case "TIMESTAMP_NTZ", "TIMESTAMP_LTZ":
		return seconds(text)
	case "TIMESTAMP_TZ": // with the minutes of the zone, plus a day
		text, _, _ = strings.Cut(text, " ")
		return seconds(text)
	}
	return text, nil
}

// seconds returns the time of a number of seconds since 1970 with a fraction.
func seconds(text string) (time.Time, error) {
	exact, ok := new(big.Rat).SetString(text)
	if !ok || strings.ContainsAny(text, "/eE") {
		return time.Time{}, errValue
	}
	exact.Mul(exact, big.NewRat(int64(time.Second), 1))
	if !exact.IsInt() {
		return time.Time{}, errValue
	}
	whole, rest := new(big.Int).DivMod(exact.Num(), big.NewInt(int64(time.Second)), new(big.Int))
	if !whole.IsInt64() {
		return time.Time{}, errValue
	}
	return time.Unix(whole.Int64(), rest.Int64()).UTC(), nil
}
