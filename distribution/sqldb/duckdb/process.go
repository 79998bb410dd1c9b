package duckdb

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/qtype-dev/qtype/internal/subprocess"
)

// Limits of a process.
const (
	startTime  = 30 * time.Second
	endTime    = time.Second // after the end of its input
	maxLine    = 64 << 20    // bytes of a row
	maxMessage = 64 << 10    // bytes of an error
)

// What follows the mark of a process in a line of its output.
const (
	rowMark      = " row "
	completeMark = " complete" // a row after all rows
	endMark      = " end"
)

// process is a process of DuckDB's program with an open file. Its output has two kinds of lines: those
// of this package begin with mark, others are ignored. After each script, a line on both
// standard output and standard error marks the end of what belongs to it.
type process struct {
	mark   string // random
	cmd    *subprocess.Cmd
	cancel context.CancelFunc
	in     *os.File
	raw    *os.File
	out    *bufio.Reader
	errs   chan string   // standard error up to each mark
	done   chan struct{} // closed when the process has ended
	killed atomic.Bool
}

// start starts a process and opens the file.
func start(ctx context.Context, c Config) (*process, error) {
	alive, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p := &process{mark: "qtype-" + rand.Text(), cancel: cancel, errs: make(chan string, 1), done: make(chan struct{})}
	args := []string{"-init", os.DevNull, "-batch", "-list", "-noheader"}
	if c.File == "" {
		args = append(args, ":memory:")
	} else {
		file, err := filepath.Abs(c.File) // a name never begins with a dash or a scheme
		if err != nil {
			cancel()
			return nil, err
		}
		args = append(args, "-readonly", file)
	}
	p.cmd = subprocess.Program{Path: c.Program, Args: args, Env: c.Env, Supervisor: c.Supervisor}.Command(alive)
	if err := p.launch(); err != nil {
		cancel()
		return nil, fmt.Errorf("cannot start %s: %w", c.Program, err)
	}
	late := time.AfterFunc(startTime, p.kill)
	defer late.Stop()
	defer context.AfterFunc(ctx, p.kill)()
	if err := p.run(settings(c), func([]byte) {}); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// settings returns the statements that restrict what a query can do. The temporary folder must be set
// while files are accessible, and nothing can be set after lock_configuration.
func settings(c Config) string {
	return strings.Join([]string{
		"SET temp_directory = ''",
		"SET enable_external_access = false",
		"SET allow_community_extensions = false",
		"SET autoinstall_known_extensions = false",
		"SET autoload_known_extensions = false",
		"SET enable_logging = false", // messages on standard output
		"SET threads = " + c.Threads,
		"SET memory_limit = '" + c.MemoryLimit + "'",
		"SET TimeZone = 'UTC'",
		"SET lock_configuration = true",
	}, ";\n") + ";"
}

// launch starts the process with own pipes: those of exec would be closed while output is still in them.
func (p *process) launch() error {
	var child, parent [3]*os.File
	for i := range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			subprocess.CloseAll(child[:])
			subprocess.CloseAll(parent[:])
			return err
		}
		child[i], parent[i] = w, r
		if i == 0 {
			child[i], parent[i] = r, w
		}
	}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = child[0], child[1], child[2]
	err := p.cmd.Start()
	subprocess.CloseAll(child[:])
	if err != nil {
		subprocess.CloseAll(parent[:])
		return err
	}
	p.in, p.raw, p.out = parent[0], parent[1], bufio.NewReaderSize(parent[1], 64<<10)
	go p.wait(parent[2])
	return nil
}

// wait reads standard error, and waits for the end of the process.
func (p *process) wait(errs *os.File) {
	read := make(chan struct{})
	go func() {
		defer close(read)
		p.readErrors(errs)
	}()
	_ = p.cmd.Wait()                                             // why it ended is on standard error
	late := time.AfterFunc(endTime, func() { _ = errs.Close() }) // a process that it started may hold the pipe
	<-read
	late.Stop()
	_ = errs.Close()
	close(p.done)
}

// readErrors sends standard error in parts that end with a mark, and what follows the last one.
func (p *process) readErrors(errs io.Reader) {
	lines := bufio.NewReader(errs)
	var text strings.Builder
	for {
		line, err := lines.ReadString('\n')
		if strings.Contains(line, p.mark+endMark) {
			p.errs <- text.String()
			text.Reset()
		} else if text.Len()+len(line) <= maxMessage {
			text.WriteString(line)
		}
		if err != nil {
			p.errs <- text.String()
			close(p.errs)
			return
		}
	}
}

// ended reports whether the process has ended, or was killed.
func (p *process) ended() bool {
	if p.killed.Load() {
		return true
	}
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// kill ends the process. It may be called repeatedly, and while another goroutine reads.
func (p *process) kill() {
	if p.killed.CompareAndSwap(false, true) {
		p.cancel()
		_ = p.in.Close()
	}
}

// close ends the process and waits until it has ended.
func (p *process) close() {
	p.kill()
	for more := true; more; { // the last message has no other reader
		_, more = <-p.errs
	}
	<-p.done
	_ = p.raw.Close()
}

// send sends a script, and statements that mark its end. It does not wait until the process reads.
func (p *process) send(script string) error {
	if p.ended() {
		return errEnded
	}
	text := script + "\nSELECT '" + p.mark + endMark + "';\nSELECT error('" + p.mark + endMark + "');\n"
	go func() { _, _ = io.WriteString(p.in, text) }() // else both could wait for each other; an error is that of reading
	return nil
}

var errEnded = errors.New("the process of DuckDB has ended")

// run runs a script, and calls line with each line of its output.
func (p *process) run(script string, line func([]byte)) error {
	if err := p.send(script); err != nil {
		return err
	}
	for {
		text, err := p.line()
		if err != nil {
			return p.failure(err)
		}
		if string(text) == p.mark+endMark {
			return p.failure(nil)
		}
		line(text)
	}
}

var errLong = fmt.Errorf("a row has more than %d MB", maxLine>>20)

// line reads a line of the output. It is valid until the next call.
func (p *process) line() ([]byte, error) {
	text, err := p.out.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		long := bytes.Clone(text)
		for errors.Is(err, bufio.ErrBufferFull) {
			if len(long) > maxLine {
				p.kill()
				return nil, errLong
			}
			text, err = p.out.ReadSlice('\n')
			long = append(long, text...)
		}
		text = long
	}
	if err != nil {
		return nil, err
	}
	return bytes.TrimRight(text, "\r\n"), nil
}

// failure returns what standard error has of the last script, as an error; nil for nothing. ended is
// why there is no more output, nil if the process is alive.
func (p *process) failure(ended error) error {
	text := <-p.errs
	if ended != nil {
		p.kill()
	}
	reason := message(text)
	switch {
	case reason != "":
		return errors.New(reason)
	case ended == nil:
		return nil
	case errors.Is(ended, io.EOF):
		return errEnded
	}
	return ended
}

// encoded returns an expression with the value of a text.
func encoded(text string) string {
	return "decode(from_base64('" + base64.StdEncoding.EncodeToString([]byte(text)) + "'))"
}

func itoa(n int) string { return strconv.Itoa(n) }
