package python

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
)

// request is one call.
type request struct {
	tool             string // the tool's id
	module, function string
	args             []value.Field // run-time values
	check            bool          // only find the function
}

// frame encodes the request for worker.py.
func (r *request) frame() []byte {
	b := append([]byte(`{"module":`), value.JSON(r.module)...)
	b = append(append(b, `,"function":`...), value.JSON(r.function)...)
	if r.check {
		b = append(b, `,"check":true`...)
	}
	b = appendFields(append(b, `,"args":`...), r.args)
	return append(b, '}')
}

func appendFields(b []byte, fields []value.Field) []byte {
	b = append(b, '{')
	for i, f := range fields {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(value.AppendJSON(b, f.Name), ':')
		b = appendValue(b, f.Value)
	}
	return append(b, '}')
}

// appendValue encodes a run-time value in the form that worker.py documents.
func appendValue(b []byte, v any) []byte {
	switch v := v.(type) {
	case float64:
		return appendFloat(b, v)
	case []byte:
		return append(base64.StdEncoding.AppendEncode(append(b, `{"b":"`...), v), `"}`...)
	case value.Date:
		return tagged(b, "d", v.String())
	case value.DateTime:
		layout := "2006-01-02T15:04:05.000000" // Python has microseconds, and before 3.11 parses exactly six digits
		if v.Zoned {
			layout += "-07:00"
		}
		return tagged(b, "dt", v.Time.Format(layout))
	case value.Time:
		return tagged(b, "t", time.Time{}.Add(time.Duration(v)).Format("15:04:05.000000"))
	case chat.Message:
		return appendValue(b, messageRecord(v))
	case []any:
		b = append(b, '[')
		for i, item := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendValue(b, item)
		}
		return append(b, ']')
	case *value.Record:
		return appendRecord(b, v)
	}
	return value.AppendJSON(b, v)
}

func appendRecord(b []byte, r *value.Record) []byte {
	var fields []value.Field
	for name, v := range r.All() {
		fields = append(fields, value.Field{Name: name, Value: v})
	}
	if r.Type() == "" {
		return append(appendFields(append(b, `{"m":`...), fields), '}')
	}
	b = value.AppendJSON(append(b, `{"r":[`...), r.Type())
	return append(appendFields(append(b, ','), fields), `]}`...)
}

func tagged(b []byte, tag, text string) []byte {
	return append(value.AppendJSON(append(b, `{"`+tag+`":`...), text), '}')
}

// appendFloat encodes a float so that Python does not read it as an integer.
func appendFloat(b []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return tagged(b, "f", strconv.FormatFloat(f, 'g', -1, 64))
	}
	start := len(b)
	b = strconv.AppendFloat(b, f, 'g', -1, 64)
	if !bytes.ContainsAny(b[start:], ".e") {
		b = append(b, ".0"...)
	}
	return b
}

// messageRecord returns a message as a record, with the data of media as bytes.
func messageRecord(m chat.Message) *value.Record {
	r := value.AsRecord(m)
	m = m.Content().WithoutCalls()
	blocks := make([]any, len(m.Blocks))
	for i, block := range m.Blocks {
		var content any = block.Text
		if block.Data != nil {
			content = block.Data
		}
		var mime any
		if block.MimeType != "" {
			mime = block.MimeType
		}
		blocks[i] = value.NewRecord("ChatContent", value.Field{Name: "type", Value: block.Type},
			value.Field{Name: "content", Value: content}, value.Field{Name: "mime_type", Value: mime})
	}
	return r.With("blocks", blocks)
}

// response is the result of a call.
type response struct {
	result any
	err    *failure // nil where the function returned
}

// failure is why a call has no result.
type failure struct {
	Kind    string // raised, memory, module, function, arguments or result
	Type    string // the exception's type
	Message string // message of the exception
	File    string // the user's file with the failing line; empty where it is not known
	Line    int    // the line in File
}

// needsNewWorker reports whether the process must not be used again.
func (r *response) needsNewWorker() bool { return r.err != nil && r.err.Kind == "memory" }

func readResponse(raw []byte) (*response, error) {
	var envelope struct {
		Error *failure
	}
	if err := json.Unmarshal(raw, &envelope); err != nil {
		return nil, fmt.Errorf("malformed response of the Python process")
	}
	if envelope.Error != nil {
		return &response{err: envelope.Error}, nil
	}
	parsed, err := value.Parse(string(raw))
	if err != nil {
		return nil, fmt.Errorf("invalid result: %w", err)
	}
	answer, ok := parsed.(*value.Record)
	if !ok {
		return nil, fmt.Errorf("malformed response of the Python process")
	}
	result, _ := answer.Get("result")
	v, err := untag(result)
	return &response{result: v}, err
}

// untag converts a value that worker.py encoded to run-time values.
func untag(v any) (any, error) {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			x, err := untag(item)
			if err != nil {
				return nil, err
			}
			out[i] = x
		}
		return out, nil
	case *value.Record:
		for tag, inner := range v.All() {
			return untagOne(tag, inner)
		}
	}
	return v, nil
}

func untagOne(tag string, v any) (any, error) {
	text, _ := v.(string)
	switch tag {
	case "m":
		fields, ok := v.(*value.Record)
		if !ok {
			break
		}
		out := make([]value.Field, 0, fields.Len())
		for name, item := range fields.All() {
			x, err := untag(item)
			if err != nil {
				return nil, err
			}
			out = append(out, value.Field{Name: name, Value: x})
		}
		return value.NewRecord("", out...), nil
	case "b":
		return base64.StdEncoding.DecodeString(text)
	case "f":
		return strconv.ParseFloat(text, 64)
	case "d", "dt", "t":
		return moment(tag, text)
	}
	return nil, fmt.Errorf("invalid result")
}

// moment parses a date or a time.
func moment(tag, text string) (any, error) {
	t := spec.Type{Name: map[string]string{"d": "date", "dt": "datetime", "t": "time"}[tag]}
	return value.Coerce(t, text)
}
