package lsp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/sourcegraph/jsonrpc2"
)

// Bounds of what a peer may send.
const (
	maxMessage = 64 << 20 // bytes of one message
	maxHeader  = 8 << 10  // bytes of one header line
)

// wire reads and writes messages as the protocol frames them: header lines, an
// empty line, and so many bytes of JSON. A message that is no request and no
// response is answered here, and reading goes on with the next one.
type wire struct {
	in    *bufio.Reader
	out   io.Writer
	mu    sync.Mutex // one message is written at a time
	atEnd func()     // called when nothing more comes; nil for nothing to do
	fault error      // why nothing more can be read; nil for an end; to be read after the end alone
}

// framingError says that what comes is not framed as messages are, so that
// nobody knows where the next one begins.
type framingError struct{ text string }

// Error says it to who wrote the editor's part.
func (e *framingError) Error() string { return "the editor sent what is no message: " + e.text }

// newWire reads and writes messages on two streams.
func newWire(in io.Reader, out io.Writer) *wire {
	return &wire{in: bufio.NewReaderSize(in, 64<<10), out: out}
}

// Close does nothing: the streams belong to the caller.
func (w *wire) Close() error { return nil }

// WriteObject writes one message.
func (w *wire) WriteObject(obj any) error {
	body, err := json.Marshal(obj)
	if err != nil {
		return fmt.Errorf("write a message: %w", err)
	}
	return w.write(body)
}

// write writes the bytes of one message with their header.
func (w *wire) write(body []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	message := fmt.Appendf(make([]byte, 0, len(body)+32), "Content-Length: %d\r\n\r\n", len(body))
	_, err := w.out.Write(append(message, body...))
	return err
}

// ReadObject reads messages until one can be understood.
func (w *wire) ReadObject(v any) error {
	for {
		body, err := w.frame()
		if err != nil {
			if wrong := new(framingError); errors.As(err, &wrong) {
				w.fault = wrong
			}
			if w.atEnd != nil {
				w.atEnd()
			}
			return err
		}
		if body == nil {
			continue // too large, and answered
		}
		fault := decodeMessage(body)
		if fault == nil {
			if err := json.Unmarshal(body, v); err == nil {
				return nil
			}
			fault = &protocolError{jsonrpc2.CodeInvalidRequest, "this is neither a request nor a response", idOf(body)}
		}
		if fault.quiet() {
			continue
		}
		if err := w.refuse(fault); err != nil {
			return err
		}
	}
}

// frame reads the bytes of one message; nil for one that is too large.
func (w *wire) frame() ([]byte, error) {
	length := -1
	for {
		line, err := w.headerLine()
		if err != nil {
			return nil, err
		}
		if line == "" {
			break
		}
		name, value, _ := strings.Cut(line, ":")
		if strings.EqualFold(strings.TrimSpace(name), "Content-Length") {
			if length, err = strconv.Atoi(strings.TrimSpace(value)); err != nil {
				return nil, &framingError{fmt.Sprintf("the header Content-Length holds no number but %q", strings.TrimSpace(value))}
			}
		}
	}
	switch {
	case length < 0:
		return nil, &framingError{"it has no header Content-Length with a number of bytes"}
	case length > maxMessage:
		if _, err := io.CopyN(io.Discard, w.in, int64(length)); err != nil {
			return nil, err
		}
		return nil, w.refuse(&protocolError{jsonrpc2.CodeInvalidRequest, fmt.Sprintf("a message is larger than %d bytes", maxMessage), nil})
	}
	var body bytes.Buffer // grows with what comes, not with what was promised
	if _, err := io.CopyN(&body, w.in, int64(length)); err != nil {
		return nil, err
	}
	return append([]byte{}, body.Bytes()...), nil
}

// headerLine reads a line without its end.
func (w *wire) headerLine() (string, error) {
	var line []byte
	for {
		part, more, err := w.in.ReadLine()
		if err != nil {
			return "", err
		}
		if line = append(line, part...); len(line) > maxHeader {
			return "", errors.New("a header line is too long")
		}
		if !more {
			return string(line), nil
		}
	}
}

// protocolError is why a message is not understood.
type protocolError struct {
	code   int64
	reason string
	id     json.RawMessage // of the request; nil where it is not known
}

// quiet tells whether the protocol wants no answer: a notification or a response
// that is in bad shape.
func (r *protocolError) quiet() bool { return r.code == 0 }

// refuse answers a message that is not understood.
func (w *wire) refuse(r *protocolError) error {
	if r.id == nil {
		r.id = json.RawMessage("null")
	}
	return w.WriteObject(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   jsonrpc2.Error  `json:"error"`
	}{"2.0", r.id, jsonrpc2.Error{Code: r.code, Message: r.reason}})
}

// decodeMessage tells what is wrong with a message; nil where it can be taken.
func decodeMessage(body []byte) *protocolError {
	if !json.Valid(body) {
		return &protocolError{jsonrpc2.CodeParseError, "this is no JSON", nil}
	}
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method *string         `json:"method"`
		Result json.RawMessage `json:"result"`
		Error  json.RawMessage `json:"error"`
		Params json.RawMessage `json:"params"`
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return &protocolError{jsonrpc2.CodeInvalidRequest, "a message is an object with a method, or with a result or an error", idOf(body)}
	}
	switch {
	case m.Method != nil && !usableID(m.ID):
		return &protocolError{jsonrpc2.CodeInvalidRequest, "the id of a request is a text or a whole number that is not negative", m.ID}
	case m.Method == nil && m.Result == nil && m.Error == nil:
		return &protocolError{jsonrpc2.CodeInvalidRequest, "a message has a method, or a result or an error", m.ID}
	case m.Method == nil:
		return &protocolError{} // this server asks little and needs none of the answers
	}
	if p := bytes.TrimSpace(m.Params); len(p) > 0 && p[0] != '{' && p[0] != '[' && string(p) != "null" {
		return &protocolError{jsonrpc2.CodeInvalidRequest, "params are an object or a list", m.ID}
	}
	return nil
}

// idOf finds the id in a message that is otherwise not understood.
func idOf(body []byte) json.RawMessage {
	var m struct {
		ID json.RawMessage `json:"id"`
	}
	if json.Unmarshal(body, &m) != nil {
		return nil
	}
	return m.ID
}

// usableID tells whether an id is one that the connection can hand back. An
// absent one makes a notification.
func usableID(id json.RawMessage) bool {
	if len(id) == 0 || id[0] == '"' {
		return true
	}
	_, err := strconv.ParseInt(string(id), 10, 64)
	return err == nil && id[0] != '-'
}
