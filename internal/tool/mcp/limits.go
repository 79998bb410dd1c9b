package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
)

const (
	maxMessage = 64 << 20 // bytes of a message on standard output
	maxListed  = 10_000   // items of a list with pages
)

// messageReader reads messages, one a line. It fails if one is too long: the library keeps
// it in memory until it is complete. Other lines, which programs print between them, are
// skipped.
type messageReader struct {
	from  *bufio.Reader
	max   int               // bytes of a message
	stray func(line []byte) // gets what is skipped
	rest  []byte            // of the message that is being read
}

func newMessageReader(r io.Reader, limit int, stray func(line []byte)) *messageReader {
	return &messageReader{from: bufio.NewReaderSize(r, 16<<10), max: limit, stray: stray}
}

// Read reads a part of a message.
func (r *messageReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		line, err := r.line()
		if r.rest = r.message(line); len(r.rest) == 0 && err != nil {
			return 0, err
		}
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// line reads a line with its end; the last one may have none.
func (r *messageReader) line() ([]byte, error) {
	var line []byte
	for {
		part, err := r.from.ReadSlice('\n')
		if len(line)+len(part) > r.max {
			return nil, fmt.Errorf("a message of the server has more than %d MiB", r.max>>20)
		}
		if line = append(line, part...); !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// message returns the message of a line, nil if it has none. What is printed without a line
// end comes before a message.
func (r *messageReader) message(line []byte) []byte {
	begin := bytes.Index(line, []byte(`{"`))
	if begin >= 0 && !json.Valid(line[begin:]) {
		begin = -1
	}
	if begin < 0 && bytes.HasPrefix(bytes.TrimSpace(line), []byte("[")) && json.Valid(line) { // a batch
		begin = 0
	}
	if begin < 0 {
		begin = len(line)
	}
	if len(bytes.TrimSpace(line[:begin])) > 0 {
		r.stray(line[:begin])
	}
	return line[begin:]
}

// collect returns the items of a list with pages. A server that lists items without an end
// is an error.
func collect[T any](pages iter.Seq2[T, error]) ([]T, error) {
	var all []T
	for item, err := range pages {
		if err != nil {
			return nil, err
		}
		if len(all) == maxListed {
			return nil, fmt.Errorf("the server lists more than %d items", maxListed)
		}
		all = append(all, item)
	}
	return all, nil
}
