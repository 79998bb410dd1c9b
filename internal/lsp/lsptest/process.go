package lsptest

import (
	"io"
	"os/exec"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
)

// Pipe is the two ends of a connection to a server.
type Pipe struct {
	io.Reader
	io.WriteCloser
}

// Start starts a language server, and returns its standard output and input.
func Start(t testing.TB, server *exec.Cmd) Pipe {
	t.Helper()
	in, err := server.StdinPipe()
	testkit.Must(t, err)
	out, err := server.StdoutPipe()
	testkit.Must(t, err)
	testkit.Must(t, server.Start())
	return Pipe{out, in}
}
