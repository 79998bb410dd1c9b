package protocol_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/lsp/lsptest"
	"github.com/qtype-dev/qtype/internal/lsp/protocol"
)

// readAll reads all messages and returns their methods, what the stream wrote,
// and the error that ended it.
func readAll(in string) (methods []string, written string, err error) {
	var out bytes.Buffer
	stream := protocol.NewStream(strings.NewReader(in), &out, nil)
	for {
		var m json.RawMessage
		if err := stream.ReadObject(&m); err != nil {
			return methods, out.String(), errors.Join(stream.Err(), err)
		}
		var call struct{ Method string }
		if err := json.Unmarshal(m, &call); err != nil {
			return methods, out.String(), err
		}
		methods = append(methods, call.Method)
	}
}

func TestStream_ReadObject(t *testing.T) {
	call := `{"jsonrpc":"2.0","id":1,"method":"shutdown"}`
	for name, c := range map[string]struct {
		in      string
		methods string
		written string // a part of the response to a malformed message
		err     string // a part of the error that ends the stream
	}{
		"a message":                 {lsptest.Frame(call), "[shutdown]", "", "EOF"},
		"two messages":              {lsptest.Frame(call) + lsptest.Frame(call), "[shutdown shutdown]", "", "EOF"},
		"header names":              {fmt.Sprintf("X-Other: 1\r\ncontent-length:%d\r\n\r\n%s", len(call), call), "[shutdown]", "", "EOF"},
		"line feeds alone":          {fmt.Sprintf("Content-Length: %d\n\n%s", len(call), call), "[shutdown]", "", "EOF"},
		"not JSON":                  {lsptest.Frame("{") + lsptest.Frame(call), "[shutdown]", `"code":-32700`, "EOF"},
		"a fractional id":           {lsptest.Frame(`{"id":1.5,"method":"x"}`) + lsptest.Frame(call), "[shutdown]", `"id":1.5`, "EOF"},
		"params of a wrong type":    {lsptest.Frame(`{"id":2,"method":"x","params":3}`) + lsptest.Frame(call), "[shutdown]", "params must be", "EOF"},
		"neither call nor response": {lsptest.Frame(`{"id":2}`) + lsptest.Frame(call), "[shutdown]", "must have a method", "EOF"},
		"a response":                {lsptest.Frame(`{"id":2,"result":null}`) + lsptest.Frame(call), "[shutdown]", "", "EOF"},
		"no length":                 {"X-Other: 1\r\n\r\n", "[]", "", "missing header Content-Length"},
		"a negative length":         {"Content-Length: -1\r\n\r\n", "[]", "", `invalid Content-Length "-1"`},
		"a truncated message":       {"Content-Length: 99\r\n\r\n{", "[]", "", "EOF"},
		"an endless header":         {strings.Repeat("x", 1<<20), "[]", "", "buffer full"},
	} {
		t.Run(name, func(t *testing.T) {
			methods, written, err := readAll(c.in)
			if fmt.Sprint(methods) != c.methods || !strings.Contains(written, c.written) || (c.written == "") != (written == "") {
				t.Errorf("got %v and response %q, want %s and %q", methods, written, c.methods, c.written)
			}
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("got error %v, want %q", err, c.err)
			}
		})
	}
}

func TestStream_LargeMessage(t *testing.T) {
	size := 64<<20 + 1
	in := io.MultiReader(strings.NewReader(fmt.Sprintf("Content-Length: %d\r\n\r\n", size)),
		io.LimitReader(zeros{}, int64(size)), strings.NewReader(lsptest.Frame(`{"id":1,"method":"x"}`)))
	var out bytes.Buffer
	var m json.RawMessage
	if err := protocol.NewStream(in, &out, nil).ReadObject(&m); err != nil || !strings.Contains(out.String(), "message larger than") {
		t.Errorf("got %v and response %q", err, out.String())
	}
}

// zeros is an endless stream of zero bytes.
type zeros struct{}

// Read implements io.Reader.
func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestStream_OnEnd(t *testing.T) {
	ended := false
	stream := protocol.NewStream(strings.NewReader(""), io.Discard, func() { ended = true })
	var m json.RawMessage
	if err := stream.ReadObject(&m); !errors.Is(err, io.EOF) || !ended || stream.Err() != nil {
		t.Errorf("got %v, ended %v, stream error %v", err, ended, stream.Err())
	}
}

func TestRange(t *testing.T) {
	at := func(line, character int) protocol.Position {
		return protocol.Position{Line: line, Character: character}
	}
	word := protocol.Range{Start: at(1, 2), End: at(1, 5)}
	for p, want := range map[protocol.Position]bool{at(1, 1): false, at(1, 2): true, at(1, 5): true, at(1, 6): false, at(0, 3): false, at(2, 3): false} {
		if word.Contains(p) != want {
			t.Errorf("Contains(%v) = %v", p, !want)
		}
	}
	for r, want := range map[protocol.Range]bool{
		{Start: at(0, 0), End: at(1, 2)}: true,
		{Start: at(0, 0), End: at(1, 1)}: false,
		{Start: at(1, 5), End: at(9, 0)}: true,
		{Start: at(1, 6), End: at(9, 0)}: false,
	} {
		if word.Overlaps(r) != want {
			t.Errorf("Overlaps(%v) = %v", r, !want)
		}
	}
}
