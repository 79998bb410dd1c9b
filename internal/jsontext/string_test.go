package jsontext_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/jsontext"
)

func FuzzAppendString(f *testing.F) {
	for _, s := range []string{"", "many words", "a \"quote\" and a \\", "\x00\x1f\x7f\n\r\t", "invalid \xff\xfe, valid \uFFFD", "lines\u2028and\u2029more", "<a&b>", "😀ä"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, escapes := range []jsontext.Escapes{jsontext.Required, jsontext.LineSafe} {
			text := jsontext.AppendString([]byte("x"), s, escapes)[1:]
			var got string
			if err := json.Unmarshal(text, &got); err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			if want := string([]rune(s)); got != want {
				t.Errorf("%q: %q, want %q", s, got, want)
			}
			if escapes == jsontext.LineSafe && strings.ContainsAny(string(text), "\x7f\u2028\u2029") {
				t.Errorf("%q has a character that ends a line", text)
			}
			if strings.ContainsFunc(string(text), func(r rune) bool { return r < ' ' }) {
				t.Errorf("%q has a control character", text)
			}
		}
	})
}
