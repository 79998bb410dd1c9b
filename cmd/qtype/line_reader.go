package main

import (
	"bufio"
	"context"
	"io"
	"strings"
)

// lineReader reads what a person types, line by line. A line is read when it is asked
// for, and one goroutine at a time asks.
type lineReader struct {
	held  chan struct{} // holds one while somebody asks
	asked chan struct{}
	read  chan line
}

// line is one line, or why there is none.
type line struct {
	text string
	err  error
}

// newLines reads from in. Its goroutine ends with the input; while it waits for
// a line nothing can end it but the process.
func newLines(in io.Reader) *lineReader {
	l := &lineReader{held: make(chan struct{}, 1), asked: make(chan struct{}, 1), read: make(chan line, 1)}
	go func() {
		r := bufio.NewReader(in)
		for range l.asked {
			text, err := r.ReadString('\n')
			if err == io.EOF && text != "" {
				err = nil // the last line needs no end
			}
			l.read <- line{strings.TrimRight(text, "\r\n"), err}
		}
	}()
	return l
}

// acquire waits until nobody else asks. What it gives ends that.
func (l *lineReader) acquire(ctx context.Context) (release func(), err error) {
	select {
	case l.held <- struct{}{}:
		return func() { <-l.held }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// next is the next line, io.EOF after the last. A line that comes after the
// context has ended is the next one.
func (l *lineReader) next(ctx context.Context) (string, error) {
	select {
	case l.asked <- struct{}{}:
	default: // it was asked for before
	}
	select {
	case got := <-l.read:
		return got.text, got.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}
