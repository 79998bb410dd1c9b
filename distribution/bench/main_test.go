package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/tokenizer"
)

func TestStart(t *testing.T) {
	for want, arguments := range map[string][]string{
		"missing workload":         nil,
		`unknown workload "w9"`:    {"w9"},
		"usage: bench w3 FILE OUT": {"w3", "in"},
		"usage: bench bpe-count":   {"bpe-count"},
		"w6: listen tcp":           {"w6", "in"},
		"usage: bench w6load URL":  {"w6load", "in"},
		"bpe-count: open no-such":  {"bpe-count", "no-such-file"},
	} {
		if err := start(arguments); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("bench %v: %v, want %q", arguments, err, want)
		}
	}
}

func TestTokensOf(t *testing.T) {
	file := filepath.Join(t.TempDir(), "messages.jsonl")
	lines := `{"role":"user","content":"hello world"}
{"role":"assistant","content":"","tool_calls":[{"id":"1","name":"search","arguments":"{}"}]}
`
	if err := os.WriteFile(file, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	messages, err := readMessages(file)
	if err != nil || len(messages) != 2 {
		t.Fatalf("%d messages, %v", len(messages), err)
	}
	encoding, err := tokenizer.For(tokenizer.O200k)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{2, 2} {
		if got := tokensOf(encoding, &messages[i]); got != want {
			t.Errorf("message %d has %d tokens, want %d", i, got, want)
		}
	}
	if err := os.WriteFile(file, []byte(lines+"{\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readMessages(file); err == nil || !strings.Contains(err.Error(), "message 3") {
		t.Errorf("malformed line: %v", err)
	}
}

// TestSessions checks that the workload has the same result in every store.
func TestSessions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "messages.jsonl")
	if err := os.WriteFile(file, []byte(`{"role":"user","content":"hello world"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{"memory:", "sqlite:" + filepath.Join(t.TempDir(), "memory.db")} {
		if err := start([]string{"w2store", file, address, "3"}); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
}
