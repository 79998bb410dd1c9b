package value

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/spec/chat"
)

// JSON is v in compact JSON, fields in their order. Bytes are their text where
// they are UTF-8, else {"base64": "…"}; a ChatMessage has the language's own
// form (role and blocks) without its id; dates are ISO text; NaN and the
// infinities, which JSON does not have, are the texts NaN, Infinity and
// -Infinity. Coerce to the same type reads it back. It never fails.
func JSON(v any) []byte { return AppendJSON(nil, v) }

// AppendJSON appends JSON(v) to b.
func AppendJSON(b []byte, v any) []byte {
	switch v := plainGo(v).(type) {
	case nil, UnsetType:
		return append(b, "null"...)
	case string:
		return appendString(b, v)
	case ParseCell:
		return appendString(b, string(v))
	case int64:
		return strconv.AppendInt(b, v, 10)
	case bool:
		return strconv.AppendBool(b, v)
	case float64:
		return appendFloat(b, v)
	case json.Number:
		return append(b, v...)
	case []byte:
		return appendBytes(b, v)
	case []any:
		return appendList(b, v)
	case *Record:
		return appendRecord(b, v)
	case chat.Message:
		return appendRecord(b, messageRecord(v))
	}
	return appendString(b, Text(v))
}

func appendList(b []byte, items []any) []byte {
	b = append(b, '[')
	for i, item := range items {
		if i > 0 {
			b = append(b, ',')
		}
		b = AppendJSON(b, item)
	}
	return append(b, ']')
}

func appendRecord(b []byte, r *Record) []byte {
	b = append(b, '{')
	for i, f := range r.fields {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, f.Name), ':')
		b = AppendJSON(b, f.Value)
	}
	return append(b, '}')
}

// appendBytes writes text where the bytes are one: that is what documents know
// bytes as (language.md 7.2); base64 keeps what no JSON text can hold.
func appendBytes(b, data []byte) []byte {
	if utf8.Valid(data) {
		return appendString(b, string(data))
	}
	b = append(b, `{"base64":"`...)
	b = base64.StdEncoding.AppendEncode(b, data)
	return append(b, `"}`...)
}

// appendFloat writes the shortest decimal that reads back as f, as JavaScript does.
func appendFloat(b []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(b, `"NaN"`...)
	case math.IsInf(f, 1):
		return append(b, `"Infinity"`...)
	case math.IsInf(f, -1):
		return append(b, `"-Infinity"`...)
	case f == 0 && math.Signbit(f):
		return append(b, "-0.0"...) // -0 would be read as the whole number 0
	}
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		return strconv.AppendFloat(b, f, 'e', -1, 64)
	}
	return strconv.AppendFloat(b, f, 'f', -1, 64)
}

// appendString writes a JSON text. Unlike encoding/json it leaves <, > and & as they are.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if c >= utf8.RuneSelf && (r != utf8.RuneError || size > 1) {
			i += size
			continue
		}
		b = appendEscape(append(b, s[start:i]...), r)
		i += size
		start = i
	}
	return append(append(b, s[start:]...), '"')
}

func appendEscape(b []byte, r rune) []byte {
	switch r {
	case '"', '\\':
		return append(b, '\\', byte(r))
	case '\n':
		return append(b, '\\', 'n')
	case '\r':
		return append(b, '\\', 'r')
	case '\t':
		return append(b, '\\', 't')
	case utf8.RuneError:
		return append(b, "\uFFFD"...) // not UTF-8
	}
	const digits = "0123456789abcdef"
	return append(b, '\\', 'u', '0', '0', digits[r>>4&0xf], digits[r&0xf])
}

// AsRecord is a message as the record that the language writes it as.
func AsRecord(m chat.Message) *Record { return messageRecord(m) }

// messageRecord is a message in the language's own form, in the order role,
// blocks, and what else it has. Its id is left out: it belongs to the run.
func messageRecord(m chat.Message) *Record {
	m.ID = ""
	text, err := json.Marshal(m)
	if err != nil {
		return &Record{typ: chatMessage}
	}
	v, err := Parse(string(text))
	r, ok := v.(*Record)
	if err != nil || !ok {
		return &Record{typ: chatMessage}
	}
	return &Record{typ: chatMessage, fields: r.fields}
}
