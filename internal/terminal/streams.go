// Package terminal reads from and writes to the terminal of a command: safe text,
// tables, lines of input. It works the same where the streams are no terminals.
package terminal

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"
)

// Streams are the streams of a command.
type Streams struct {
	In          io.Reader
	Out         io.Writer // results
	Err         io.Writer // everything else
	InTerminal  bool      // In is a terminal
	OutTerminal bool      // Out is a terminal
	ErrTerminal bool      // Err is a terminal
	Color       bool      // colors may be written to terminals
	Width       int       // columns of the terminal
	Editing     bool      // all three are terminals of a known size that can move the cursor: lines can be edited
}

// defaultWidth is the number of columns if the terminal does not report it.
const defaultWidth = 100

// Standard returns the streams of the process. It honors NO_COLOR and TERM=dumb.
func Standard() Streams {
	s := Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Width: defaultWidth,
		InTerminal:  term.IsTerminal(int(os.Stdin.Fd())),
		OutTerminal: term.IsTerminal(int(os.Stdout.Fd())), ErrTerminal: term.IsTerminal(int(os.Stderr.Fd()))}
	s.Color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	for _, f := range []*os.File{os.Stdout, os.Stderr} {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			s.Width = w
			s.Editing = s.InTerminal && s.OutTerminal && s.ErrTerminal && os.Getenv("TERM") != "dumb"
			break
		}
	}
	return s
}

// Logger returns a func that writes a line to Err, after a prefix. It is safe for
// concurrent use.
func (s *Streams) Logger(prefix string) func(line string) {
	var mu sync.Mutex
	return func(line string) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintln(s.Err, prefix+Clean(line))
	}
}

// WriteTo writes text to the file of that name; to Out if the name is empty.
func (s *Streams) WriteTo(path, text string) error {
	if path == "" {
		_, err := io.WriteString(s.Out, text)
		return err
	}
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		return fmt.Errorf("%s: cannot be written: %w", path, Cause(err))
	}
	return nil
}

// WriteJSON writes values to a stream, one JSON text a line.
func WriteJSON[T any](w io.Writer, values ...T) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for _, v := range values {
		if err := enc.Encode(v); err != nil {
			return err
		}
	}
	return nil
}

// Open opens a file for reading, - for standard input, and returns its name for messages.
func (s *Streams) Open(path string) (in io.ReadCloser, name string, err error) {
	if path == "-" {
		return io.NopCloser(s.In), "standard input", nil
	}
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		return nil, "", fmt.Errorf("%s: is a directory, not a file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", path, Cause(err))
	}
	return f, path, nil
}

// errNotExist is fs.ErrNotExist in the words of our messages.
var errNotExist = errors.New("no such file")

// Cause returns the error of the operating system without the path and the name of
// the call.
func Cause(err error) error {
	var perr *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errNotExist
	case errors.As(err, &perr):
		return perr.Err
	}
	return err
}

// Lines reads what the user types, line by line. A line is read only when one is
// requested. Several parts of a program may share it: each acquires it first.
type Lines struct {
	acquired  chan struct{} // full while someone has the reader
	requested chan struct{} // full while a request is pending
	read      chan line
	source    func(context.Context) (string, error) // replaces the reader; nil for none
}

// line is a line of input, or the error in its place.
type line struct {
	text string
	err  error
}

// NewLines returns a reader of the lines of in. Its goroutine ends with the input or
// with Close, but a read that waits for a line cannot be interrupted.
func NewLines(in io.Reader) *Lines {
	l := &Lines{acquired: make(chan struct{}, 1), requested: make(chan struct{}, 1), read: make(chan line, 1)}
	go func() {
		defer close(l.read)
		r := bufio.NewReader(in)
		for range l.requested {
			text, err := r.ReadString('\n')
			if errors.Is(err, io.EOF) && text != "" {
				err = nil // the last line may lack a line end
			}
			l.read <- line{strings.TrimRight(text, "\r\n"), err}
			if err != nil {
				return
			}
		}
	}()
	return l
}

// Close ends the reader. No line may be requested afterwards.
func (l *Lines) Close() { close(l.requested) }

// Acquire waits for exclusive use of the terminal and returns a release func.
func (l *Lines) Acquire(ctx context.Context) (release func(), err error) {
	select {
	case l.acquired <- struct{}{}:
		return func() { <-l.acquired }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// ReadWith lets Next return the lines of another source, such as an editor. It must be called
// before the first line is requested.
func (l *Lines) ReadWith(source func(context.Context) (string, error)) { l.source = source }

// Next returns the next line; io.EOF after the last. A line that arrives after ctx
// is done is returned by the next call.
func (l *Lines) Next(ctx context.Context) (string, error) {
	if l.source != nil {
		return l.source(ctx)
	}
	select {
	case l.requested <- struct{}{}:
	default: // a request is pending
	}
	select {
	case got, ok := <-l.read:
		if !ok {
			return "", io.EOF
		}
		return got.text, got.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}
