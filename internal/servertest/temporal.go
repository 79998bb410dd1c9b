package servertest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// TemporalVariable is the environment variable with the path of Temporal's command line
// program, which has a server for development.
const TemporalVariable = "QTYPE_TEMPORAL"

// Temporal starts a Temporal server that keeps its data in a file, so that Restart continues
// its workflows.
func Temporal() (*Server, error) {
	program := os.Getenv(TemporalVariable)
	if program == "" {
		return nil, fmt.Errorf("%w: set %s to the program temporal of github.com/temporalio/cli", ErrMissing, TemporalVariable)
	}
	start := func(s *Server) (*exec.Cmd, error) {
		return exec.Command(program, "server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", strconv.Itoa(s.Port),
			"--db-filename", filepath.Join(s.Folder, "temporal.db"), "--log-level", "error"), nil
	}
	ready := func(s *Server) error {
		conn, err := s.dial() // cheaper than the program
		if err != nil {
			return err
		}
		if err := conn.Close(); err != nil {
			return err
		}
		out, err := exec.Command(program, "operator", "namespace", "describe", "default", "--address", s.Address()).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
		}
		return nil
	}
	return launch(&Server{start: start, ready: ready})
}

// TemporalProgram returns the path of Temporal's command line program; empty if there is none.
func TemporalProgram() string { return os.Getenv(TemporalVariable) }
