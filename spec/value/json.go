package value

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/internal/jsontext"
	"github.com/qtype-dev/qtype/internal/mediatype"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec/chat"
)

// AppendCell appends bytes as a cell of a flat file: text as it is, other bytes, and text
// that would not be read as itself, as {"base64": "…"}.
func AppendCell(b, data []byte) []byte {
	text := len(b)
	if b = appendBytes(b, data); b[text] != '"' {
		return b
	}
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) || bytes.IndexByte(data, 0) >= 0 {
		return appendBase64(b[:text], data) // not to be read as an object, or as a binary file
	}
	return append(b[:text], data...)
}

// JSON returns v as compact JSON, with fields in order. Bytes are text if they are
// UTF-8, else {"base64": "…"}; a ChatMessage has role and blocks but no id; dates
// are ISO text; NaN and the infinities are the strings NaN, Infinity and -Infinity.
// Coerce to the same type restores the value. JSON never fails.
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
	case Decimal:
		return append(b, v...)
	case []byte:
		return appendBytes(b, v)
	case []any:
		return appendList(b, v)
	case *Record:
		return appendRecord(b, v)
	case chat.Message:
		return appendMessage(b, &v)
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

// maxFileName limits the texts that are checked for names of files, in bytes.
const maxFileName = 4097

// appendBytes writes UTF-8 bytes as text, as documents contain them, and others as
// base64. So is text that would not be read as itself: a data URL, a file as an object, the
// name of a file.
func appendBytes(b, data []byte) []byte {
	decoded := bytes.HasPrefix(data, []byte("data:")) || bytes.HasPrefix(data, []byte("{")) && bytes.Contains(data, []byte(`"bytes_base64"`)) ||
		len(data) < maxFileName && mediatype.IsFileName(string(data))
	if utf8.Valid(data) && !decoded {
		return appendString(b, string(data))
	}
	return appendBase64(b, data)
}

func appendBase64(b, data []byte) []byte {
	b = append(b, `{"base64":"`...)
	b = base64.StdEncoding.AppendEncode(b, data)
	return append(b, `"}`...)
}

// appendFloat writes the shortest decimal that parses to f, as JavaScript does.
func appendFloat(b []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(b, `"NaN"`...)
	case math.IsInf(f, 1):
		return append(b, `"Infinity"`...)
	case math.IsInf(f, -1):
		return append(b, `"-Infinity"`...)
	case f == 0 && math.Signbit(f):
		return append(b, "-0.0"...) // -0 would be read as the integer 0
	}
	return textfmt.AppendNumber(b, f)
}

// appendString appends a JSON string.
func appendString(b []byte, s string) []byte { return jsontext.AppendString(b, s, jsontext.Required) }

// appendMessage appends the record of a message.
func appendMessage(b []byte, m *chat.Message) []byte {
	texts := len(m.Blocks)
	for texts > 0 && m.Blocks[texts-1].Call != nil {
		texts--
	}
	if slices.ContainsFunc(m.Blocks[:texts], func(block chat.Block) bool { return !isText(&block) }) {
		return appendRecord(b, messageRecord(*m))
	}
	b = appendString(append(b, `{"role":`...), string(m.Role))
	b = appendOptional(b, `,"name":`, m.Name)
	b = append(b, `,"blocks":[`...)
	for i := range m.Blocks[:texts] {
		b = appendTextBlock(appendComma(b, i), &m.Blocks[i])
	}
	b = append(b, ']')
	if calls := m.Calls(); len(calls) > 0 {
		b = appendToolCalls(append(b, `,"tool_calls":`...), calls)
	}
	b = appendOptional(b, `,"tool_call_id":`, m.ToolCallID)
	return append(b, '}')
}

// isText reports whether the content of a block is a text as it is.
func isText(b *chat.Block) bool {
	switch b.Type {
	case "text", "date", "datetime", "time":
		return b.Data == nil
	}
	return false
}

func appendTextBlock(b []byte, block *chat.Block) []byte {
	b = appendString(append(b, `{"type":`...), block.Type)
	b = appendString(append(b, `,"content":`...), block.Text)
	b = appendOptional(b, `,"mime_type":`, block.MimeType)
	return append(b, '}')
}

func appendToolCalls(b []byte, calls []chat.ToolCall) []byte {
	b = append(b, '[')
	for i, c := range calls {
		b = appendString(append(appendComma(b, i), `{"id":`...), c.ID)
		b = appendString(append(b, `,"name":`...), c.Name)
		b = appendString(append(b, `,"arguments":`...), c.Arguments)
		b = append(b, '}')
	}
	return append(b, ']')
}

// appendComma appends a comma before every item but the first.
func appendComma(b []byte, i int) []byte {
	if i == 0 {
		return b
	}
	return append(b, ',')
}

// appendOptional appends a member of an object unless its text is empty.
func appendOptional(b []byte, member, text string) []byte {
	if text == "" {
		return b
	}
	return appendString(append(b, member...), text)
}

// AsRecord returns a message as a record with the fields of its JSON form.
func AsRecord(m chat.Message) *Record { return messageRecord(m) }

// messageRecord returns the record of a message: role, blocks, and the other fields
// that are set. The id is omitted, as it belongs to the run, and so are reasoning, commentary and
// items, which are not content.
func messageRecord(m chat.Message) *Record {
	m = m.Content()
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
