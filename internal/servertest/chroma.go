package servertest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// ChromaVariable is the environment variable with the path of the program chroma of the
// Python package chromadb.
const ChromaVariable = "QTYPE_CHROMA"

// Chroma starts a Chroma server.
func Chroma() (*Server, error) {
	program := os.Getenv(ChromaVariable)
	if program == "" {
		return nil, fmt.Errorf("%w: set %s to the program chroma of chromadb", ErrMissing, ChromaVariable)
	}
	start := func(s *Server) (*exec.Cmd, error) {
		cmd := exec.Command(program, "run", "--host", "127.0.0.1", "--port", strconv.Itoa(s.Port), "--path", filepath.Join(s.Folder, "data"))
		cmd.Env = append(os.Environ(), "ANONYMIZED_TELEMETRY=False")
		return cmd, nil
	}
	return launch(&Server{start: start, ready: func(s *Server) error { return answers("http://" + s.Address() + "/api/v2/heartbeat") }})
}
