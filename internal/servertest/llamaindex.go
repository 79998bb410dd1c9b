package servertest

import (
	_ "embed" // for llamaindex.py
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// llamaIndex is the script of LlamaIndex.
//
//go:embed llamaindex.py
var llamaIndex []byte

// LlamaIndex runs LlamaIndex's class of a store, qdrant or chroma, in the Python of
// QdrantVariable. The action write adds a chunk to the collection, read returns what a
// search finds, as JSON.
func LlamaIndex(t testing.TB, store, address, key, name, action string) []byte {
	t.Helper()
	python := os.Getenv(QdrantVariable)
	if python == "" {
		Need(t, fmt.Errorf("%w: set %s to a python with LlamaIndex's class of %s", ErrMissing, QdrantVariable, store))
	}
	script := filepath.Join(t.TempDir(), "llamaindex.py")
	if err := os.WriteFile(script, llamaIndex, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, script, store, address, key, name, action)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("LlamaIndex: %v", err)
	}
	return out
}
