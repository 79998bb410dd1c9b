package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/internal/subprocess"
)

// terminationTime is how long a server may take to end after its input was closed, and again
// after it was requested to end.
const terminationTime = time.Second

// output is what a program wrote besides messages, and how it ended.
type output struct {
	tail   subprocess.Tail // end of its standard error
	warned sync.Once       // whether a line that is not a message was reported
	warn   func(string)    // receives warnings; may be nil

	mu    sync.Mutex
	ended chan struct{} // closed when the newest process has ended; nil before the first one
	how   string        // how that process ended by itself, such as exit status 3; empty for other ends
}

// started begins a process.
func (o *output) started() (ended func(how string)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tail.Reset()
	done := make(chan struct{})
	o.ended, o.how = done, ""
	return func(how string) {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.ended == done {
			o.how = how
		}
		close(done)
	}
}

// end returns how the newest process ended by itself, empty if it did not end. It waits
// for a process that has just closed its output.
func (o *output) end() string {
	o.mu.Lock()
	ended := o.ended
	o.mu.Unlock()
	if ended == nil {
		return ""
	}
	select {
	case <-ended:
	case <-time.After(terminationTime):
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.how
}

// stray returns a function that reports the first line of output that is not a message.
func (o *output) stray(server string) func(line []byte) {
	return func(line []byte) {
		o.warned.Do(func() {
			if o.warn != nil {
				o.warn(fmt.Sprintf("tool %s: the program wrote to its standard output, which is for messages only; such lines are skipped: %s",
					server, httpx.SingleLine(string(line), 200)))
			}
		})
	}
}

// programTransport starts a server and exchanges messages over its standard input and output.
type programTransport struct {
	cmd    *subprocess.Cmd
	output *output
	stray  func(line []byte)
}

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
	writer := &programInput{WriteCloser: in, cmd: t.cmd, ended: t.output.started()}
	return (&sdk.IOTransport{Reader: io.NopCloser(newMessageReader(out, maxMessage, t.stray)), Writer: writer}).Connect(ctx)
}

// programInput is the standard input of a server, whose end ends the server.
type programInput struct {
	io.WriteCloser
	cmd   *subprocess.Cmd
	ended func(how string)
}

// Close closes the input, as the protocol requires, and waits until the server has ended. It
// terminates a server that does not end, and then kills it.
func (p *programInput) Close() error {
	if err := p.WriteCloser.Close(); err != nil {
		return err // it was closed before
	}
	ended := make(chan error, 1)
	go func() { ended <- p.cmd.Wait() }()
	for i, next := range []func() error{p.cmd.Terminate, p.cmd.Kill} {
		select {
		case err := <-ended:
			p.ended(ownEnd(err, i))
			return err
		case <-time.After(terminationTime):
		}
		_ = next() // fails if the server has just ended
	}
	err := <-ended
	p.ended("")
	return err
}

// ownEnd returns how a process ended that was terminated a number of times, empty if that
// was not by itself.
func ownEnd(err error, terminated int) string {
	if terminated > 0 {
		return ""
	}
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return subprocess.Status(failed.ProcessState)
	}
	return "exit status 0"
}

// lastLines describes the end of the program: how it ended, and what it wrote last.
func (o *output) lastLines(how string) string {
	var text string
	if how != "" {
		text = "; the program ended with " + how
	}
	switch lines := o.tail.LastLines(); len(lines) {
	case 0:
	case 1:
		text += "; its last line: " + lines[0]
	default:
		text += "; its last lines: " + strings.Join(lines, " | ")
	}
	return text
}
