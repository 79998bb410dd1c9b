package wire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// lines reads lines of bounded length and keeps the first bytes of what turned
// out to be none of the stream's records, for an error.
type lines struct {
	from  *bufio.Reader
	count int    // records read
	head  []byte // what was there before the first
	begun bool   // past the first line, which may hold a byte order mark
}

func newLines(r io.Reader) lines { return lines{from: bufio.NewReaderSize(r, 16<<10)} }

// Begun is how many records were read, and what was there instead of a first one.
func (l *lines) Begun() (records int, instead []byte) { return l.count, l.head }

// remember keeps what a server said instead of records.
func (l *lines) remember(line []byte) {
	const enough = 1 << 10
	if l.count == 0 && len(l.head) < enough {
		l.head = append(append(l.head, line[:min(len(line), enough)]...), '\n')
	}
}

// line reads one line without its end. With the error comes what the end of the
// stream cut off.
func (l *lines) line() ([]byte, error) {
	var long []byte // what was read of a line longer than the buffer
	for {
		part, err := l.from.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			if long = append(long, part...); len(long) > maxEvent {
				return nil, ErrTooLong
			}
			continue
		}
		if long != nil {
			part = append(long, part...)
		}
		if err != nil {
			return part, err
		}
		return l.first(bytes.TrimSuffix(part[:len(part)-1], []byte{'\r'})), nil
	}
}

// first takes the byte order mark off the first line.
func (l *lines) first(line []byte) []byte {
	if !l.begun {
		l.begun = true
		return bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	return line
}

// Lines reads a stream of one JSON object a line (NDJSON).
type Lines struct{ lines }

// NewLines reads from r.
func NewLines(r io.Reader) *Lines { return &Lines{newLines(r)} }

// Next is the next line, valid until the call after it; a last line may lack its end.
func (l *Lines) Next() ([]byte, error) {
	for {
		line, err := l.line()
		if line = bytes.TrimSpace(line); len(line) == 0 {
			if err != nil {
				return nil, err
			}
			continue
		}
		if err != nil && (!errors.Is(err, io.EOF) || !json.Valid(line)) { // cut off
			l.remember(line)
			return nil, err
		}
		l.count++
		return line, nil
	}
}

// Events reads server-sent events (WHATWG HTML 9.2): lines end with LF or
// CRLF, data lines of one event are joined, a blank line ends it. Comments and
// the other fields are passed over. An event that the end of the stream cuts
// off is none.
type Events struct {
	lines
	data []byte
	open bool // data holds at least one data line
}

// NewEvents reads from r.
func NewEvents(r io.Reader) *Events { return &Events{lines: newLines(r)} }

// Next is the data of the next event, valid until the call after it. The error
// is io.EOF at the end of the stream.
func (e *Events) Next() ([]byte, error) {
	e.data, e.open = e.data[:0], false
	for {
		line, err := e.line()
		if err != nil { // a line that the end cuts off belongs to no whole event
			if line != nil {
				e.remember(line)
			}
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
			return nil, ErrTooLong
		}
	}
}
