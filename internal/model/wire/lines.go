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
	bare  bool   // whether a carriage return alone ends a line
	after bool   // whether the last line ended with a carriage return: a newline belongs to it
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
		part, ended, err := l.piece()
		if !ended || long != nil {
			if long = append(long, part...); len(long) > maxEvent {
				return nil, ErrTooLong
			}
			part = long
		}
		if err != nil {
			return part, err
		}
		if ended {
			return l.first(bytes.TrimSuffix(part, []byte{'\r'})), nil
		}
	}
}

// piece reads what is buffered of a line, and reports whether that is its end.
func (l *lines) piece() (part []byte, ended bool, err error) {
	if _, err := l.from.Peek(1); err != nil {
		return nil, false, err
	}
	part, _ = l.from.Peek(l.from.Buffered())
	if l.after && part[0] == '\n' {
		part = part[1:]
		_, _ = l.from.Discard(1)
	}
	l.after = false
	end := bytes.IndexByte(part, '\n')
	if l.bare {
		rest := part
		if end >= 0 {
			rest = part[:end]
		}
		if i := bytes.IndexByte(rest, '\r'); i >= 0 {
			end, l.after = i, true
		}
	}
	if end < 0 {
		_, err = l.from.Discard(len(part))
		return part, false, err
	}
	_, err = l.from.Discard(end + 1)
	return part[:end], true, err
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

// Events reads server-sent events (WHATWG HTML 9.2): lines end with LF, CRLF or CR, the data
// lines of an event are joined, an empty line ends it. Comments and other fields are
// ignored, as is an event at the end of the stream that is not complete: it is if it lacks the
// empty line only.
type Events struct {
	lines
	data []byte
	open bool // whether data has at least one data line
}

// NewEvents reads from r.
func NewEvents(r io.Reader) *Events {
	e := &Events{lines: newLines(r)}
	e.bare = true
	return e
}

// Next returns the data of the next event, valid until the next call. The error is io.EOF
// at the end of the stream.
func (e *Events) Next() ([]byte, error) {
	e.data, e.open = e.data[:0], false
	for {
		line, err := e.line()
		if err == nil && len(line) == 0 && !e.open {
			continue
		}
		if err == nil && len(line) == 0 {
			e.count++
			return e.data, nil
		}
		if err == nil || len(line) > 0 {
			if err := e.field(line); err != nil {
				return nil, err
			}
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF) && e.open && json.Valid(e.data):
			e.count++
			return e.data, nil
		default:
			if e.count == 0 && len(line) > 0 { // also a part of a field
				e.remember(line)
			}
			return nil, err
		}
	}
}

// field reads a line with a field.
func (e *Events) field(line []byte) error {
	field, value, _ := bytes.Cut(line, []byte{':'})
	if string(field) != "data" {
		e.remember(line)
		return nil
	}
	if e.open {
		e.data = append(e.data, '\n')
	}
	e.data, e.open = append(e.data, bytes.TrimPrefix(value, []byte{' '})...), true
	if len(e.data) > maxEvent {
		return ErrTooLong
	}
	return nil
}
