package bigquery

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/qtype-dev/qtype/spec/value"
)

// parameters returns run-time values as parameters of a query.
func parameters(values []any) []object {
	all := make([]object, len(values))
	for i, v := range values {
		typ, content := parameter(v)
		all[i] = object{"parameterType": typ, "parameterValue": content}
	}
	return all
}

// parameter returns the type and the value of a parameter. Records are JSON.
func parameter(v any) (typ, content object) {
	scalar := func(name, text string) (object, object) { return object{"type": name}, object{"value": text} }
	switch v := v.(type) {
	case nil:
		return object{"type": "STRING"}, object{"value": nil}
	case bool:
		return scalar("BOOL", strconv.FormatBool(v))
	case int64:
		return scalar("INT64", strconv.FormatInt(v, 10))
	case float64:
		return scalar("FLOAT64", strconv.FormatFloat(v, 'g', -1, 64))
	case value.Decimal:
		return scalar("BIGNUMERIC", string(v))
	case []byte:
		return scalar("BYTES", base64.StdEncoding.EncodeToString(v))
	case value.Date:
		return scalar("DATE", v.String())
	case value.Time:
		return scalar("TIME", v.String())
	case value.DateTime:
		const layout = "2006-01-02 15:04:05.999999"
		if v.Zoned {
			return scalar("TIMESTAMP", v.Time.UTC().Format(layout)+"+00:00")
		}
		return scalar("DATETIME", v.Time.Format(layout))
	case *value.Record:
		return scalar("JSON", string(value.JSON(v)))
	case []any:
		return list(v)
	}
	return scalar("STRING", value.Text(v))
}

// list returns an ARRAY of the type of its items; of texts if they differ.
func list(items []any) (typ, content object) {
	of := object{"type": "STRING"}
	contents := make([]object, len(items))
	for i, item := range items {
		var one object
		one, contents[i] = parameter(item)
		if i > 0 && one["type"] != of["type"] {
			return texts(items)
		}
		of = one
	}
	return object{"type": "ARRAY", "arrayType": of}, object{"arrayValues": contents}
}

// texts returns an ARRAY of texts.
func texts(items []any) (typ, content object) {
	contents := make([]object, len(items))
	for i, item := range items {
		contents[i] = object{"value": value.Text(item)}
	}
	return object{"type": "ARRAY", "arrayType": object{"type": "STRING"}}, object{"arrayValues": contents}
}

// decode returns the run-time value of a column or a field.
func decode(f field, raw json.RawMessage) (any, error) {
	if f.Mode == "REPEATED" {
		var items []struct{ V json.RawMessage }
		if err := json.Unmarshal(raw, &items); err != nil {
			return nil, unexpected(f, raw)
		}
		f.Mode = ""
		out := make([]any, len(items))
		for i, item := range items {
			v, err := decode(f, item.V)
			if err != nil {
				return nil, err
			}
			out[i] = v
		}
		return out, nil
	}
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	if f.Type == "RECORD" || f.Type == "STRUCT" {
		return record(f, raw)
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return nil, unexpected(f, raw)
	}
	v, ok := scalar(f.Type, text)
	if !ok {
		return nil, unexpected(f, raw)
	}
	return v, nil
}

func unexpected(f field, raw json.RawMessage) error {
	return fmt.Errorf("column %s of type %s has the unexpected value %.100s", f.Name, f.Type, raw)
}

// record returns the value of a STRUCT.
func record(f field, raw json.RawMessage) (any, error) {
	var r row
	if err := json.Unmarshal(raw, &r); err != nil || len(r.F) != len(f.Fields) {
		return nil, unexpected(f, raw)
	}
	fields := make([]value.Field, len(f.Fields))
	for i, one := range f.Fields {
		v, err := decode(one, r.F[i].V)
		if err != nil {
			return nil, err
		}
		fields[i] = value.Field{Name: one.Name, Value: v}
	}
	return value.NewRecord("", fields...), nil
}

// scalar parses the text of a value. Types that the language does not have remain texts.
func scalar(typ, text string) (any, bool) {
	switch typ {
	case "INTEGER", "INT64":
		n, err := strconv.ParseInt(text, 10, 64)
		return n, err == nil
	case "FLOAT", "FLOAT64":
		n, err := strconv.ParseFloat(text, 64)
		return n, err == nil
	case "NUMERIC", "BIGNUMERIC":
		return value.Decimal(text), true
	case "BOOLEAN", "BOOL":
		b, err := strconv.ParseBool(text)
		return b, err == nil
	case "BYTES":
		data, err := base64.StdEncoding.DecodeString(text)
		return data, err == nil
	case "DATE":
		t, err := time.Parse(time.DateOnly, text)
		return value.DateTime{Time: t}.Date(), err == nil
	case "DATETIME":
		t, err := time.Parse("2006-01-02T15:04:05.999999", text)
		return value.DateTime{Time: t}, err == nil
	case "TIMESTAMP": // microseconds
		n, err := strconv.ParseInt(text, 10, 64)
		return value.DateTime{Time: time.UnixMicro(n).UTC(), Zoned: true}, err == nil
	}
	return text, true
}
