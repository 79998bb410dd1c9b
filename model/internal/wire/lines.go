package wire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// lines reads lines of limited length. It buffers the first bytes of a body that has no
// records, for an error message.
type lines struct {
	from  *bufio.Reader
	count int    // records read
	head  []byte // what came before the first record
	begun bool   // whether the first line, which may begin with a byte order mark, was read
}

func newLines(r io.Reader) lines { return lines{from: bufio.NewReaderSize(r, 16<<10)} }

// Begun returns the number of records, and what came before the first one.
func (l *lines) Begun() (records int, instead []byte) { return l.count, l.head }

// remember buffers what a server sent in place of records.
func (l *lines) remember(line []byte) {
	const enough = 1 << 10
	if l.count == 0 && len(l.head) < enough {
		l.head = append(append(l.head, line[:min(len(line), enough)]...), '\n')
	}
}

// line reads one line without its end. An error comes with the incomplete line at the end
// of the stream.
func (l *lines) line() ([]byte, error) {
	var long []byte // the start of a line that is longer than the buffer
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

// first removes the byte order mark from the first line.
func (l *lines) first(line []byte) []byte {
	if !l.begun {
		l.begun = true
		return bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	return line
}

// Lines reads a stream with one JSON object per line (NDJSON).
type Lines struct{ lines }

// NewLines reads from r.
func NewLines(r io.Reader) *Lines { return &Lines{newLines(r)} }

// Next returns the next line, valid until the next call; the last line may lack its end.
func (l *Lines) Next() ([]byte, error) {
	for {
		line, err := l.line()
		if line = bytes.TrimSpace(line); len(line) == 0 {
			if err != nil {
				return nil, err
			}
			continue
		}
		if err != nil && (!errors.Is(err, io.EOF) || !json.Valid(line)) { // truncated
			l.remember(line)
			return nil, err
		}
		l.count++
		return line, nil
	}
}

// Events reads server-sent events (WHATWG HTML 9.2): lines end with LF or CRLF, the data
// lines of an event are joined, an empty line ends it. Comments and other fields are
// ignored, as is an incomplete event at the end of the stream.
type Events struct {
	lines
	data []byte
	open bool // whether data has at least one data line
}

// NewEvents reads from r.
func NewEvents(r io.Reader) *Events { return &Events{lines: newLines(r)} }

// Next returns the data of the next event, valid until the next call. The error is io.EOF
// at the end of the stream.
func (e *Events) Next() ([]byte, error) {
	e.data, e.open = e.data[:0], false
	for {
		line, err := e.line()
		if err != nil { // an incomplete line belongs to an incomplete event
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
