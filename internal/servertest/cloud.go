package servertest

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

// S3 starts moto's server, which implements Amazon S3 and accepts any credentials.
func S3() (*Server, error) {
	return emulator("QTYPE_MOTO", "moto_server", func(s *Server) []string {
		return []string{"-H", "127.0.0.1", "-p", strconv.Itoa(s.Port)}
	})
}

// GoogleStorage starts an emulator of Google Cloud Storage.
func GoogleStorage() (*Server, error) {
	return emulator("QTYPE_GCS_EMULATOR", "gcp-storage-emulator", func(s *Server) []string {
		return []string{"start", "--host", "127.0.0.1", "--port", strconv.Itoa(s.Port), "--in-memory"}
	})
}

// Azurite starts Microsoft's emulator of Azure Blob Storage.
func Azurite() (*Server, error) {
	return emulator("QTYPE_AZURITE", "azurite-blob", func(s *Server) []string {
		return []string{"--inMemoryPersistence", "--silent", "--blobHost", "127.0.0.1", "--blobPort", strconv.Itoa(s.Port),
			"--skipApiVersionCheck", "--disableTelemetry"}
	})
}

// AzuriteAccount and AzuriteKey are the well-known credentials of Azurite.
const (
	AzuriteAccount = "devstoreaccount1"
	AzuriteKey     = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

// emulator starts the program that an environment variable names, or one on PATH.
func emulator(variable, name string, args func(*Server) []string) (*Server, error) {
	path := os.Getenv(variable)
	if path == "" {
		var err error
		if path, err = find(name); err != nil {
			return nil, err
		}
	}
	start := func(s *Server) (*exec.Cmd, error) { return exec.Command(path, args(s)...), nil }
	return launch(&Server{start: start, ready: checkListens})
}

// checkListens returns an error unless a server accepts connections.
func checkListens(s *Server) error {
	conn, err := s.dial()
	if err != nil {
		return err
	}
	return conn.Close()
}

// BigQuery starts an emulator of Google BigQuery, the program bqemulator that QTYPE_BIGQUERY names. The caller
// closes it.
func BigQuery() (*Server, error) {
	return emulator("QTYPE_BIGQUERY", "bqemulator", func(s *Server) []string {
		return []string{"start", "--rest-port", strconv.Itoa(s.Port), "--grpc-port", "0", "--log-level", "error"}
	})
}

// aimock is the script of the server.
//
//go:embed aimock.mjs
var aimock []byte

// AIMockVariable is the environment variable with the directory node_modules that has the
// package @copilotkit/aimock.
const AIMockVariable = "QTYPE_AIMOCK"

// AIMock starts a server that answers by the protocols of OpenAI, Anthropic, Google, Ollama and
// Amazon Bedrock; aimock.mjs has the answers.
func AIMock() (*Server, error) {
	modules := os.Getenv(AIMockVariable)
	if modules == "" {
		return nil, fmt.Errorf("%w: set %s to a node_modules with @copilotkit/aimock", ErrMissing, AIMockVariable)
	}
	node, err := find("node")
	if err != nil {
		return nil, err
	}
	start := func(s *Server) (*exec.Cmd, error) {
		script := filepath.Join(s.Folder, "aimock.mjs")
		return exec.Command(node, script, modules, strconv.Itoa(s.Port)), os.WriteFile(script, aimock, 0o600)
	}
	return launch(&Server{start: start, ready: checkListens})
}

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
