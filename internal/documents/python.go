package documents

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/qtype-dev/qtype/spec/value"
)

// pythonRepr returns str(v) of Python for a value of JSON: the text of the documents of
// HuggingFaceFSReader.
func pythonRepr(v any) string {
	if text, ok := v.(string); ok {
		return text // str of a text is the text itself
	}
	var b strings.Builder
	writeRepr(&b, v)
	return b.String()
}

// writeRepr writes repr(v).
func writeRepr(b *strings.Builder, v any) {
	switch v := v.(type) {
	case string:
		writeTextRepr(b, v)
	case []any:
		b.WriteByte('[')
		for i, item := range v {
			if i > 0 {
				b.WriteString(", ")
			}
			writeRepr(b, item)
		}
		b.WriteByte(']')
	case *value.Record:
		b.WriteByte('{')
		for i, name := range v.Names() {
			if i > 0 {
				b.WriteString(", ")
			}
			writeTextRepr(b, name)
			b.WriteString(": ")
			item, _ := v.Get(name)
			writeRepr(b, item)
		}
		b.WriteByte('}')
	default:
		b.WriteString(pythonText(v))
	}
}

// writeTextRepr writes the repr of a text: in double quotes if it has only single ones.
func writeTextRepr(b *strings.Builder, s string) {
	quote := '\''
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = '"'
	}
	b.WriteRune(quote)
	for _, r := range s {
		switch {
		case r == quote || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n' || r == '\r' || r == '\t':
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		case r < ' ' || r == 0x7f || r >= 0x80 && r < 0x100 && !unicode.IsPrint(r):
			fmt.Fprintf(b, `\x%02x`, r)
		case r < 0x10000 && !unicode.IsPrint(r):
			fmt.Fprintf(b, `\u%04x`, r)
		case !unicode.IsPrint(r):
			fmt.Fprintf(b, `\U%08x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteRune(quote)
}
