package openai

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

var errTooLong = errors.New("the answer is longer than qtype reads")

// events reads server-sent events (WHATWG HTML 9.2): lines end with LF or
// CRLF, data lines of one event are joined, a blank line ends it. Comments and
// the other fields are passed over. An event that the end of the stream cuts
// off is none.
type events struct {
	lines *bufio.Reader
	data  []byte
	open  bool   // data holds at least one data line
	count int    // events read
	head  []byte // the first bytes that were no event, for an error
	begun bool   // past the first line, which may hold a byte order mark
}

func newEvents(r io.Reader) *events { return &events{lines: bufio.NewReaderSize(r, 16<<10)} }

// next is the data of the next event, valid until the call after it. The error
// is io.EOF at the end of the stream.
func (e *events) next() ([]byte, error) {
	e.data, e.open = e.data[:0], false
	for {
		line, err := e.line()
		if err != nil {
			return nil, err
		}
		if len(line) == 0 {
			if !e.open {
				continue
			}
			e.count++
			return e.data, nil
		}
		field, value, _ := bytes.Cut(line, []byte{':'})
		if string(field) != "data" {
			e.remember(line)
			continue
		}
		if e.open {
			e.data = append(e.data, '\n')
		}
		e.data, e.open = append(e.data, bytes.TrimPrefix(value, []byte{' '})...), true
		if len(e.data) > maxEvent {
			return nil, errTooLong
		}
	}
}

// remember keeps what a server said instead of events.
func (e *events) remember(line []byte) {
	const enough = 1 << 10
	if e.count == 0 && len(e.head) < enough {
		e.head = append(append(e.head, line[:min(len(line), enough)]...), '\n')
	}
}

// line reads one line without its end.
func (e *events) line() ([]byte, error) {
	var long []byte // what was read of a line longer than the buffer
	for {
		part, err := e.lines.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			if long = append(long, part...); len(long) > maxEvent {
				return nil, errTooLong
			}
			continue
		}
		if err != nil { // a line that the end cuts off belongs to no whole event
			e.remember(append(long, part...))
			return nil, err
		}
		if long != nil {
			part = append(long, part...)
		}
		return e.first(bytes.TrimSuffix(part[:len(part)-1], []byte{'\r'})), nil
	}
}

// first takes the byte order mark off the first line.
func (e *events) first(line []byte) []byte {
	if !e.begun {
		e.begun = true
		return bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	return line
}
