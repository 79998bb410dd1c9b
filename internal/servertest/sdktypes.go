package servertest

import (
	"bytes"
	_ "embed" // for sdk_types.py
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// SDKVariable is the environment variable with the path of a Python that has the packages of
// providers: openai, anthropic, google-genai, mistralai, ollama and botocore.
const SDKVariable = "QTYPE_PROVIDER_SDKS"

//go:embed sdk_types.py
var sdkTypes []byte

// TypedBody is the body of a request or a response that has the types of a package.
type TypedBody struct {
	Types string          `json:"types"` // name of the types in sdk_types.py
	Kind  string          `json:"kind"`  // request, stream, embeddings or response
	Path  string          `json:"path"`  // of the request
	Body  json.RawMessage `json:"body"`
}

// SDKErrors returns what the types of official packages reject in each body; a key that they
// do not have is an error.
func SDKErrors(t testing.TB, bodies []TypedBody) [][]string {
	t.Helper()
	python := os.Getenv(SDKVariable)
	if python == "" {
		Need(t, fmt.Errorf("%w: set %s to a python with the packages of providers", ErrMissing, SDKVariable))
	}
	script := filepath.Join(t.TempDir(), "sdk_types.py")
	if err := os.WriteFile(script, sdkTypes, 0o600); err != nil {
		t.Fatal(err)
	}
	in, err := json.Marshal(bodies)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, script)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var found [][]string
	if err := json.Unmarshal(out, &found); err != nil || len(found) != len(bodies) {
		t.Fatalf("%d results for %d bodies: %v", len(found), len(bodies), err)
	}
	return found
}
