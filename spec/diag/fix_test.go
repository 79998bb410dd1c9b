package diag_test

import (
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

func TestIsUnambiguous(t *testing.T) {
	names := []string{"token_limit", "token_flush_size", "chat_memory", "chat_memory_2", "id", "ids_of", "openai", "colour", "color"}
	for given, want := range map[string]string{
		"token_limits": "token_limit", "tokn_limt": "token_limit", "TOKEN_LIMIT": "token_limit", "chat_memry": "chat_memory",
		"opneai":        "openai",
		"opnai_":        "", // two edits in a short word
		"limit":         "", // only a part of a candidate
		"chat_memory_1": "", // another number
		"colur":         "", // two are equally near
		"di":            "", // too short
		"":              "",
	} {
		near := diag.Nearest(given, names)
		if got := diag.IsUnambiguous(given, near, names); got != (want != "") || got && near != want {
			t.Errorf("%q: %v (%q), want %q", given, got, near, want)
		}
	}
}

func TestDiagnostic_WithReplacement(t *testing.T) {
	for _, c := range []struct{ line, old, meant, want string }{
		{"model: asistant", "asistant", "assistant", "model: assistant"},
		{"model: 'asistant'", "asistant", "assistant", "model: 'assistant'"},
		{`model: "asistant"`, "asistant", "assistant", `model: "assistant"`},
		{"model: asistant", "asistant", "my assistant", `model: "my assistant"`},
		{"漢字: asistant", "asistant", "assistant", "漢字: assistant"},
		{"type: lst", "lst", "list[text]", `type: "list[text]"`},
		{"switch: onn", "onn", "on", `switch: "on"`},
		{"x: !inclde", "!inclde", "!include", "x: !include"},
		{"model: asistant", "asistant", `a"b`, ""},
		{"model: asistant", "asistant", "a\x1bb", ""},
		{"model: *alias", "asistant", "assistant", ""},
		{"model: ${NAME}", "asistant", "assistant", ""},
		{strings.Repeat(" ", 5000) + "model: asistant", "asistant", "assistant", ""},
	} {
		file := &source.File{Path: "f.yaml", Text: []byte("id: a\n" + c.line + "\n")}
		runes := []rune(c.line)
		from := len([]rune(strings.SplitAfter(c.line, ": ")[0]))
		span := source.Span{File: file, Start: source.Pos{Line: 2, Column: from + 1}, End: source.Pos{Line: 2, Column: len(runes) + 1}}
		d := diag.Diagnostic{Span: span}.WithReplacement(c.old, c.meant)
		got := ""
		if len(d.Fixes) == 1 {
			got = string(runes[:from]) + d.Fixes[0].NewText
		}
		if got != c.want {
			t.Errorf("%.40q: got %q, want %q", c.line, got, c.want)
		}
	}
}
