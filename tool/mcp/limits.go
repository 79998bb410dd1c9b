package mcp

import (
	"bytes"
	"fmt"
	"io"
	"iter"
)

const (
	maxMessage = 64 << 20 // bytes of a message on standard output
	maxListed  = 10_000   // items of a list with pages
)

// messageReader reads messages, one a line, and fails if one is too long: the library
// keeps it in memory until it is complete.
type messageReader struct {
	io.Reader
	max  int // bytes of a message
	read int // bytes since the last line end
}

// Read reads a part of a message, or of several.
func (r *messageReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if end := bytes.LastIndexByte(p[:n], '\n'); end >= 0 {
		r.read = n - end - 1
	} else {
		r.read += n
	}
	if r.read > r.max {
		return 0, fmt.Errorf("a message of the server has more than %d MiB", r.max>>20)
	}
	return n, err
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
