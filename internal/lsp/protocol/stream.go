package protocol

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/sourcegraph/jsonrpc2"
)

// maxMessage is the size limit of one message, in bytes.
const maxMessage = 64 << 20

// The error codes that the protocol adds to JSON-RPC.
const (
	CodeServerNotInitialized = -32002
	CodeRequestCancelled     = -32800
	CodeRequestFailed        = -32803
)

// FramingError is the error of a header that does not delimit a message. Reading
// cannot continue: the start of the next message is unknown.
type FramingError struct{ text string }

// Error returns the reason.
func (e *FramingError) Error() string { return "invalid message from the editor: " + e.text }

// Stream reads and writes messages. Malformed messages get an error response and
// are skipped: an editor's defect must not end the session. It is safe for
// concurrent use, with one reader.
type Stream struct {
	jsonrpc2.ObjectStream
	onEnd func()
	err   error
}

// NewStream returns a stream on in and out, which it does not close. It calls
// onEnd, if not nil, before it reports the end of in.
func NewStream(in io.Reader, out io.Writer, onEnd func()) *Stream {
	s := &Stream{onEnd: onEnd}
	s.ObjectStream = jsonrpc2.NewBufferedStream(connection{in, out}, codec{reply: func(response any) error { return s.WriteObject(response) }})
	return s
}

// ReadObject reads the next well-formed message.
func (s *Stream) ReadObject(v any) error {
	err := s.ObjectStream.ReadObject(v)
	if framing := new(FramingError); errors.As(err, &framing) {
		s.err = framing
	}
	if err != nil && s.onEnd != nil {
		s.onEnd()
	}
	return err
}

// Err returns the framing error that ended the stream, or nil. It may only be
// called after the stream has ended.
func (s *Stream) Err() error { return s.err }

// connection joins two streams without owning them.
type connection struct {
	io.Reader
	io.Writer
}

// Close does nothing.
func (connection) Close() error { return nil }

// codec writes messages as the library does, and reads them more tolerantly: the library
// ends the connection at the first malformed message.
type codec struct {
	jsonrpc2.VSCodeObjectCodec
	reply func(any) error
}

// ReadObject reads messages until one is well-formed.
func (c codec) ReadObject(in *bufio.Reader, v any) error {
	for {
		length, err := readHeader(in)
		if err != nil {
			return err
		}
		if length > maxMessage {
			if _, err := io.CopyN(io.Discard, in, length); err != nil {
				return err
			}
			if err := c.reject(nil, invalidRequest("message larger than %d bytes", maxMessage)); err != nil {
				return err
			}
			continue
		}
		var body bytes.Buffer // grows with the bytes received, not with the length announced
		if _, err := io.CopyN(&body, in, length); err != nil {
			return err
		}
		if isResponse, invalid := checkMessage(body.Bytes()); invalid != nil {
			if err := c.reject(requestID(body.Bytes()), invalid); err != nil {
				return err
			}
			continue
		} else if isResponse {
			continue // the server does not use the results of its requests
		}
		if json.Unmarshal(body.Bytes(), v) == nil {
			return nil
		}
		if err := c.reject(requestID(body.Bytes()), invalidRequest("message is neither a request nor a response")); err != nil {
			return err
		}
	}
}

// readHeader reads the header lines of a message and returns its length in bytes.
func readHeader(in *bufio.Reader) (length int64, err error) {
	length = -1
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return 0, err // also for a line that exceeds the buffer
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		if !bytes.EqualFold(bytes.TrimSpace(name), []byte("Content-Length")) {
			continue
		}
		value = bytes.TrimSpace(value)
		if length, err = strconv.ParseInt(string(value), 10, 64); err != nil || length < 0 {
			return 0, &FramingError{fmt.Sprintf("invalid Content-Length %q", value)}
		}
	}
	if length < 0 {
		return 0, &FramingError{"missing header Content-Length"}
	}
	return length, nil
}

func invalidRequest(format string, args ...any) *jsonrpc2.Error {
	return &jsonrpc2.Error{Code: jsonrpc2.CodeInvalidRequest, Message: fmt.Sprintf(format, args...)}
}

// reject sends an error response. The library's responses cannot have the ids
// that malformed messages have.
func (c codec) reject(id json.RawMessage, reason *jsonrpc2.Error) error {
	if id == nil {
		id = json.RawMessage("null")
	}
	return c.reply(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   *jsonrpc2.Error `json:"error"`
	}{"2.0", id, reason})
}

// checkMessage returns the error of a malformed message, and whether a well-formed
// one is a response.
func checkMessage(body []byte) (isResponse bool, invalid *jsonrpc2.Error) {
	if !json.Valid(body) {
		return false, &jsonrpc2.Error{Code: jsonrpc2.CodeParseError, Message: "message is not valid JSON"}
	}
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method *string         `json:"method"`
		Result json.RawMessage `json:"result"`
		Error  json.RawMessage `json:"error"`
		Params json.RawMessage `json:"params"`
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return false, invalidRequest("message must be an object with a method, or with a result or an error")
	}
	switch {
	case m.Method != nil && !isUsableID(m.ID):
		return false, invalidRequest("id must be a string or a non-negative integer")
	case m.Method == nil && m.Result == nil && m.Error == nil:
		return false, invalidRequest("message must have a method, a result or an error")
	case m.Method == nil:
		return true, nil
	}
	if p := bytes.TrimSpace(m.Params); len(p) > 0 && p[0] != '{' && p[0] != '[' && string(p) != "null" {
		return false, invalidRequest("params must be an object or an array")
	}
	return false, nil
}

// requestID returns the id of a message that is otherwise malformed, or nil.
func requestID(body []byte) json.RawMessage {
	var m struct {
		ID json.RawMessage `json:"id"`
	}
	if json.Unmarshal(body, &m) != nil {
		return nil
	}
	return m.ID
}

// isUsableID reports whether the library can represent an id. A message without
// an id is a notification.
func isUsableID(id json.RawMessage) bool {
	if len(id) == 0 || id[0] == '"' {
		return true
	}
	_, err := strconv.ParseInt(string(id), 10, 64)
	return err == nil && id[0] != '-'
}
