package loader_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/loader"
)

const wordTokenizer = `{"pre_tokenizer": {"type": "Whitespace"}, "model": {"type": "WordLevel", "vocab": {"[UNK]": 0}, "unk_token": "[UNK]"}}`

// TestTokenizer_File: the path is relative to the file with the key, also in an include.
func TestTokenizer_File(t *testing.T) {
	path := write(t, "app.yaml", "id: app\nmemories: !include parts/memories.yaml\n", "parts/memories.yaml", "- {id: m, tokenizer: ../models/tokenizer.json}\n- {id: n, tokenizer: p50k_base}\n",
		"models/tokenizer.json", wordTokenizer)
	result, list := loader.Load(t.Context(), path, loader.Options{Lookup: noEnv})
	if len(list) > 0 {
		t.Fatal(list)
	}
	memories := result.Document.Application.Memories
	if got, want := memories[0].Tokenizer.File, filepath.Join(filepath.Dir(path), "models/tokenizer.json"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := memories[1].Tokenizer; got.Encoding != "p50k_base" || got.File != "" {
		t.Errorf("got %+v", got)
	}
}

// TestTokenizer_Errors are at the position of the key's value.
func TestTokenizer_Errors(t *testing.T) {
	path := write(t, "app.yaml", "id: app\n", "broken.json", `{"model": `, "broken.model", "no model", "magic.json", `{"model": {"type": "Magic"}}`, "folder.json/x", "")
	folder := filepath.Dir(path)
	for value, want := range map[string]string{
		"o200k":               `QT107 "tokenizer" cannot be "o200k"; did you mean "o200k_base"?`,
		"claude":              `QT107 "tokenizer" cannot be "claude"`,
		"3":                   `QT105`,
		"none.json":           `QT123 cannot count tokens with "none.json": the file does not exist`,
		"folder.json":         `QT123 cannot count tokens with "folder.json": the file is a folder, not a file`,
		"broken.json":         "it is not JSON: unexpected end of JSON input at byte 10",
		"./broken.model":      "it is neither a tokenizer.json nor a SentencePiece model",
		"magic.json":          `the model "Magic" is not supported`,
		"https://host/t.json": "a tokenizer must be a local file",
	} {
		if err := os.WriteFile(path, []byte("id: app\nmemories:\n  - {id: m, tokenizer: "+value+"}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, list := loader.Load(t.Context(), path, loader.Options{Lookup: noEnv})
		if len(list) != 1 || !strings.Contains(list[0].Code+" "+list[0].Message+"; "+list[0].Hint, want) || list[0].Span.Start.Line != 3 || list[0].Span.Start.Column != 24 {
			t.Errorf("%s: got %v", value, list)
		}
	}
	text := []byte("id: app\nmemories: [{id: m, tokenizer: ../magic.json}]\n")
	for _, opts := range []loader.Options{{Lookup: noEnv}, {Lookup: noEnv, Confine: filepath.Join(folder, "folder.json")}} {
		if _, list := loader.LoadBytes(t.Context(), "posted.yaml", text, opts); len(list) != 1 || !strings.Contains(list[0].Message, "may read") && !strings.Contains(list[0].Message, "may not read") {
			t.Errorf("got %v", list)
		}
	}
}
