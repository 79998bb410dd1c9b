package terminal

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
)

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
