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

// LlamaRedisVariable is the environment variable with the path of a Python that has
// LlamaIndex's class of Redis. Its packages need older versions than those of other stores.
const LlamaRedisVariable = "QTYPE_LLAMA_REDIS"

// LlamaIndex runs LlamaIndex's class of a store, qdrant, chroma or redis, in the Python of
// QdrantVariable or LlamaRedisVariable. The action write adds a chunk to the collection, read returns what a
// search finds, as JSON.
func LlamaIndex(t testing.TB, store, address, key, name, action string) []byte {
	t.Helper()
	variable := QdrantVariable
	if store == "redis" {
		variable = LlamaRedisVariable
	}
	python := os.Getenv(variable)
	if python == "" {
		Need(t, fmt.Errorf("%w: set %s to a python with LlamaIndex's class of %s", ErrMissing, variable, store))
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
