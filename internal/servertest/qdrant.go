package servertest

import (
	_ "embed" // for qdrant.py
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// qdrant is the script of the server.
//
//go:embed qdrant.py
var qdrant []byte

// QdrantVariable is the environment variable with the path of a Python that has the
// package qdrant-client.
const QdrantVariable = "QTYPE_QDRANT"

// Qdrant starts a server with Qdrant's REST API over the in-memory mode of the official
// client. No registry has Qdrant itself. The key, if not empty, must be part of requests.
func Qdrant(key string) (*Server, error) {
	python := os.Getenv(QdrantVariable)
	if python == "" {
		return nil, fmt.Errorf("%w: set %s to a python with qdrant-client", ErrMissing, QdrantVariable)
	}
	start := func(s *Server) (*exec.Cmd, error) {
		script := filepath.Join(s.Folder, "qdrant.py")
		return exec.Command(python, script, strconv.Itoa(s.Port), key), os.WriteFile(script, qdrant, 0o600)
	}
	return launch(&Server{start: start, ready: checkListens})
}
