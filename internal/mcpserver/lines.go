package mcpserver

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxLine is how long a message may be, as in the transport of the SDK.
const maxLine = sdk.DefaultMaxLineLength

// errLongLine is the error of a line that is longer than maxLine.
var errLongLine = fmt.Errorf("the message is longer than %d MiB", maxLine>>20)

// lineReader is the input without the lines that are not messages: it answers them with the error that
// JSON-RPC defines. The transport of the SDK ends the session at such a line.
type lineReader struct {
	in   *bufio.Reader
	out  io.Writer // gets the answers; safe for concurrent use
	rest []byte    // of the line that is being read
}

// Read returns parts of the lines that are messages.
func (r *lineReader) Read(b []byte) (int, error) {
	for len(r.rest) == 0 {
		line, err := r.line()
		switch {
		case err != nil && !errors.Is(err, errLongLine):
			return 0, err
		case err == nil && len(bytes.TrimSpace(line)) == 0:
			continue
		case err == nil:
			if err = checkMessage(line); err == nil {
				r.rest = append(bytes.TrimRight(line, "\r\n"), '\n')
				continue
			}
		}
		if err := r.answer(line, err); err != nil {
			return 0, err
		}
	}
	n := copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// line reads the next line. The line of errLongLine is skipped.
func (r *lineReader) line() (line []byte, err error) {
	long := false
	for {
		part, err := r.in.ReadSlice('\n')
		if long = long || len(line)+len(part) > maxLine; long {
			line = nil
		} else {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case long && (err == nil || errors.Is(err, io.EOF)):
			return nil, errLongLine
		case len(line) > 0 && errors.Is(err, io.EOF): // the next call returns the end
			return line, nil
		}
		return line, err
	}
}

// checkMessage returns why a line is not a message, or a list of them.
func checkMessage(line []byte) error {
	if !json.Valid(line) {
		return &jsonrpc.Error{Code: jsonrpc.CodeParseError, Message: "Parse error: a line must be one message in JSON"}
	}
	all := []json.RawMessage{line}
	if bytes.HasPrefix(bytes.TrimSpace(line), []byte{'['}) {
		if err := json.Unmarshal(line, &all); err != nil || len(all) == 0 {
			return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "Invalid Request: the list of messages is empty"}
		}
	}
	for _, one := range all {
		if _, err := jsonrpc.DecodeMessage(one); err != nil {
			return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "Invalid Request: not a message of JSON-RPC 2.0"}
		}
	}
	return nil
}

// answer writes the error of a line, unless the line is an answer itself.
func (r *lineReader) answer(line []byte, problem error) error {
	var message struct {
		ID     json.RawMessage `json:"id"`
		Method json.RawMessage `json:"method"`
		Result json.RawMessage `json:"result"`
		Error  json.RawMessage `json:"error"`
	}
	_ = json.Unmarshal(line, &message) // what is not a message has no parts
	if message.Method == nil && (message.Result != nil || message.Error != nil) {
		return nil
	}
	var found *jsonrpc.Error
	if !errors.As(problem, &found) {
		found = &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "Invalid Request: " + problem.Error()}
	}
	response := struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   *jsonrpc.Error  `json:"error"`
	}{"2.0", json.RawMessage("null"), found}
	if id := message.ID; len(id) > 0 && (id[0] == '"' || id[0] == '-' || id[0] >= '0' && id[0] <= '9') {
		response.ID = id
	}
	text, err := json.Marshal(response)
	if err != nil {
		return err
	}
	_, err = r.out.Write(append(text, '\n'))
	return err
}

// lockedWriter writes one message at a time, and stays open.
type lockedWriter struct {
	mu  sync.Mutex
	out io.Writer
}

func (w *lockedWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(b)
}

// Close does nothing.
func (w *lockedWriter) Close() error { return nil }
