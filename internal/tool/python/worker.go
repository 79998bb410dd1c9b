package python

import (
	"bufio"
	"context"
	_ "embed" // worker.py is part of the program
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/qtype-dev/qtype/internal/subprocess"
	"github.com/qtype-dev/qtype/spec/value"
)

//go:embed worker.py
var script string

const (
	maxFrame    = 32 << 20 // bytes of a request or a response
	startTime   = 30 * time.Second
	exitTimeout = 500 * time.Millisecond // for the remaining output of a process that ended
)

// worker is one Python process. Only one goroutine at a time uses it.
type worker struct {
	pool *Pool
	cmd  *subprocess.Cmd
	in   *os.File
	raw  *os.File
	out  *bufio.Reader
	tool atomic.Pointer[string] // id of the tool whose function runs, for its output
	tail subprocess.Tail
	done chan struct{} // closed when the process has ended and its output was read
	once sync.Once
}

// start starts a process and waits until it is ready.
func (p *Pool) start(ctx context.Context, s WorkerConfig) (*worker, error) {
	w := &worker{pool: p, done: make(chan struct{})}
	program := subprocess.Program{Path: s.Interpreter, Args: []string{"-u", "-B", "-X", "utf8", "-c", script}, Env: s.Env, Supervisor: p.opts.Supervisor}
	w.cmd = s.Container.Wrap(program, s.folders()...).Command(p.alive)
	if err := w.launch(); err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", s.Interpreter, err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTime, fmt.Errorf("%s did not start within %s", s.Interpreter, startTime))
	defer cancel()
	path := make([]any, len(s.Path))
	for i, p := range s.Path {
		path[i] = p
	}
	hello := value.JSON(value.NewRecord("", value.Field{Name: "path", Value: path}, value.Field{Name: "memory_mb", Value: int64(s.MemoryMB)}))
	if _, err := w.exchange(ctx, hello); err != nil {
		w.kill()
		if exited, ok := errors.AsType[*exitedError](err); ok {
			return nil, fmt.Errorf("%s did not start: %s", s.Interpreter, exited.how)
		}
		return nil, err
	}
	return w, nil
}

// launch starts the process with separate pipes: exec's pipes would be closed while
// the last response is still in them.
func (w *worker) launch() error {
	var child, parent [3]*os.File
	for i := range 3 {
		r, wr, err := os.Pipe()
		if err != nil {
			subprocess.CloseAll(child[:])
			subprocess.CloseAll(parent[:])
			return err
		}
		child[i], parent[i] = wr, r
		if i == 0 {
			child[i], parent[i] = r, wr
		}
	}
	w.cmd.Stdin, w.cmd.Stdout, w.cmd.Stderr = child[0], child[1], child[2]
	err := w.cmd.Start()
	subprocess.CloseAll(child[:])
	if err != nil {
		subprocess.CloseAll(parent[:])
		return err
	}
	w.in, w.raw, w.out = parent[0], parent[1], bufio.NewReaderSize(parent[1], 64<<10)
	go w.readOutput(parent[2])
	return nil
}

// readOutput logs what the process writes to standard error until it has ended.
func (w *worker) readOutput(errs *os.File) {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		lines := bufio.NewReaderSize(errs, 4<<10)
		for {
			line, _, err := lines.ReadLine() // a longer line is read in parts
			_, _ = w.tail.Write(append(line[:len(line):len(line)], '\n'))
			if name := w.tool.Load(); name != nil {
				w.pool.printed(*name, string(line))
			}
			if err != nil {
				return
			}
		}
	}()
	_ = w.cmd.Wait()                                                 // the status is in ProcessState
	late := time.AfterFunc(exitTimeout, func() { _ = errs.Close() }) // a process that it started may hold the pipe
	<-closed
	late.Stop()
	_ = errs.Close()
	_ = w.raw.SetReadDeadline(time.Now().Add(exitTimeout)) // the last response may still be in it
	close(w.done)
}

// exited reports whether the process has ended.
func (w *worker) exited() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// kill ends the process and all processes that it started.
func (w *worker) kill() {
	w.once.Do(func() {
		if !w.exited() {
			_ = w.cmd.Kill()
		}
		subprocess.CloseAll([]*os.File{w.in, w.raw})
	})
}

// ask runs a function in the process.
func (w *worker) ask(ctx context.Context, req *request) (*response, error) {
	w.tool.Store(&req.tool)
	raw, err := w.exchange(ctx, req.frame())
	if err != nil {
		return nil, err
	}
	return readResponse(raw)
}

// exitedError reports that the process ended instead of answering.
type exitedError struct {
	how string // "exit status 3", "signal: killed"
}

// Error returns how it ended.
func (e *exitedError) Error() string { return "the process ended: " + e.how }

// exchange sends a frame and waits for the response. The end of the context kills the
// process.
func (w *worker) exchange(ctx context.Context, frame []byte) ([]byte, error) {
	if len(frame) > maxFrame {
		return nil, fmt.Errorf("the arguments are longer than %d MiB", maxFrame>>20)
	}
	stop := context.AfterFunc(ctx, w.kill)
	_, err := w.in.Write(append(binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(frame)), uint32(len(frame))), frame...))
	var answer []byte
	if err == nil {
		answer, err = w.receive()
	}
	if !stop() {
		return nil, context.Cause(ctx)
	}
	if tooLong := (*subprocess.OutputLimitError)(nil); err != nil && !errors.As(err, &tooLong) {
		return nil, w.awaitExit()
	}
	return answer, err
}

func (w *worker) receive() ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(w.out, head[:]); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint32(head[:]))
	if n > maxFrame {
		return nil, &subprocess.OutputLimitError{Limit: maxFrame}
	}
	answer := make([]byte, n)
	_, err := io.ReadFull(w.out, answer)
	return answer, err
}

// awaitExit waits until a process that closed its pipe has ended, and returns how.
func (w *worker) awaitExit() error {
	late := time.NewTimer(2 * exitTimeout)
	defer late.Stop()
	select {
	case <-w.done:
	case <-late.C:
		w.kill() // it closed its pipe but still runs
		<-w.done
		return &exitedError{"closed its pipe"}
	}
	how := subprocess.Status(w.cmd.ProcessState)
	if line := w.tail.LastLine(); line != "" {
		how += ": " + line
	}
	return &exitedError{how}
}
