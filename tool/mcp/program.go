package mcp

import (
	"context"
	"io"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/qtype-dev/qtype/internal/subprocess"
)

// terminationTime is how long a server may take to end after its input was closed, and again
// after it was requested to end.
const terminationTime = time.Second

// programTransport starts a server and exchanges messages over its standard input and output.
type programTransport struct{ cmd *subprocess.Cmd }

// Connect starts the program.
func (t *programTransport) Connect(ctx context.Context) (sdk.Connection, error) {
	out, err := t.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	in, err := t.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := t.cmd.Start(); err != nil {
		return nil, err
	}
	return (&sdk.IOTransport{Reader: io.NopCloser(&messageReader{Reader: out, max: maxMessage}), Writer: &programInput{in, t.cmd}}).Connect(ctx)
}

// programInput is the standard input of a server, whose end ends the server.
type programInput struct {
	io.WriteCloser
	cmd *subprocess.Cmd
}

// Close closes the input, as the protocol requires, and waits until the server has ended. It
// terminates a server that does not end, and then kills it.
func (p *programInput) Close() error {
	if err := p.WriteCloser.Close(); err != nil {
		return err // it was closed before
	}
	ended := make(chan error, 1)
	go func() { ended <- p.cmd.Wait() }()
	for _, next := range []func() error{p.cmd.Terminate, p.cmd.Kill} {
		select {
		case err := <-ended:
			return err
		case <-time.After(terminationTime):
		}
		_ = next() // fails if the server has just ended
	}
	return <-ended
}
