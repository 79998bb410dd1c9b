// Package terminal reads from and writes to the terminal of a command: safe text,
// tables, lines of input. It works the same where the streams are no terminals.
package terminal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
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
