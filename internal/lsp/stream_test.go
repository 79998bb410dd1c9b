package lsp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/textproto"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/lsp"
	"github.com/qtype-dev/qtype/internal/lsp/lsptest"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// rawClient is a client that writes bytes.
type rawClient struct {
	t    *testing.T
	in   io.WriteCloser
	out  *bufio.Reader
	done chan error
}

func startRaw(t *testing.T) *rawClient {
	t.Helper()
	toServer, in := io.Pipe()
	out, fromServer := io.Pipe()
	r := &rawClient{t: t, in: in, out: bufio.NewReader(out), done: make(chan error, 1)}
	go func() {
		err := lsp.Serve(context.Background(), toServer, fromServer, lsp.Options{Schema: schema(t)})
		_ = toServer.Close()
		_ = fromServer.Close()
		r.done <- err
		close(r.done)
	}()
	t.Cleanup(func() { // waits for a check that is running
		_ = in.Close()
		_ = out.Close()
		for range r.done {
		}
	})
	return r
}

func (r *rawClient) write(text string) {
	r.t.Helper()
	if _, err := io.WriteString(r.in, text); err != nil {
		r.t.Fatal(err)
	}
}

// response is a message of the server.
type response struct {
	ID     json.RawMessage
	Method string
	Result json.RawMessage
	Error  *struct {
		Code    int
		Message string
	}
}

func (r *rawClient) read() response {
	r.t.Helper()
	got := make(chan response, 1)
	go func() {
		defer close(got)
		header, err := textproto.NewReader(r.out).ReadMIMEHeader()
		if err != nil {
			return
		}
		length, err := strconv.Atoi(header.Get("Content-Length"))
		if err != nil {
			return
		}
		body := make([]byte, length)
		var m response
		if _, err := io.ReadFull(r.out, body); err == nil && json.Unmarshal(body, &m) == nil {
			got <- m
		}
	}()
	select {
	case m, ok := <-got:
		if !ok {
			r.t.Fatal("the server ended the stream")
		}
		return m
	case <-time.After(time.Minute):
		r.t.Fatal("no response")
	}
	return response{}
}

// waitForEnd waits for the result of Serve. It discards further output, because an
// unread pipe would block the server.
func (r *rawClient) waitForEnd() error {
	r.t.Helper()
	go func() { _, _ = io.Copy(io.Discard, r.out) }()
	select {
	case err := <-r.done:
		return err
	case <-time.After(time.Minute):
		r.t.Fatal("the server did not end")
		return nil
	}
}

const (
	initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}`
	shutdown   = `{"jsonrpc":"2.0","id":"last","method":"shutdown"}`
	exit       = `{"jsonrpc":"2.0","method":"exit"}`
)

func TestStream_RejectsMalformedMessages(t *testing.T) {
	r := startRaw(t)
	r.write(lsptest.Frame(initialize))
	if m := r.read(); m.Error != nil || !strings.Contains(string(m.Result), `"positionEncoding":"utf-16"`) {
		t.Fatalf("initialize: %+v", m)
	}
	for _, c := range []struct {
		body string
		code int
		id   string
	}{
		{`{`, -32700, "null"},
		{``, -32700, "null"},
		{"\xff\xfe", -32700, "null"},
		{`[]`, -32600, "null"},
		{`"x"`, -32600, "null"},
		{`{"jsonrpc":"2.0","id":7}`, -32600, "7"},
		{`{"jsonrpc":"2.0","id":7,"method":5}`, -32600, "7"},
		{`{"jsonrpc":"2.0","id":-7,"method":"shutdown"}`, -32600, "-7"},
		{`{"jsonrpc":"2.0","id":1.5,"method":"shutdown"}`, -32600, "1.5"},
		{`{"jsonrpc":"2.0","id":{},"method":"shutdown"}`, -32600, "{}"},
		{`{"jsonrpc":"2.0","id":8,"method":"textDocument/hover","params":5}`, -32600, "8"},
		{`{"jsonrpc":"2.0","id":9,"method":"textDocument/hover"}`, -32602, "9"},
		{`{"jsonrpc":"2.0","id":10,"method":"textDocument/hover","params":{"textDocument":[]}}`, -32602, "10"},
		{`{"jsonrpc":"2.0","id":11,"method":"textDocument/hover","params":{"textDocument":{"uri":"file:///none"}}}`, -32803, "11"},
		{`{"jsonrpc":"2.0","id":12,"method":"no/such"}`, -32601, "12"},
		{`{"jsonrpc":"2.0","id":13,"method":"$/no/such"}`, -32601, "13"},
		{initialize, -32600, "1"},
	} {
		r.write(lsptest.Frame(c.body))
		m := r.read()
		if m.Error == nil || m.Error.Code != c.code || string(m.ID) != c.id || m.Error.Message == "" {
			t.Errorf("response to %q: %+v (id %s), want code %d for id %s", c.body, m.Error, m.ID, c.code, c.id)
		}
	}
	// Malformed notifications and responses get no response; the next request does.
	for _, body := range []string{
		`{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":5}}`,
		`{"jsonrpc":"2.0","method":"textDocument/didChange","params":{"textDocument":{"uri":"file:///none"},"contentChanges":[{"text":"x"}]}}`,
		`{"jsonrpc":"2.0","method":"no/such"}`,
		`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":999}}`,
		`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":{}}}`,
		`{"jsonrpc":"2.0","id":99,"result":null}`,
	} {
		r.write(lsptest.Frame(body))
	}
	r.write(lsptest.Frame(shutdown))
	if m := r.read(); m.Error != nil || string(m.ID) != `"last"` || string(m.Result) != "null" {
		t.Errorf("shutdown: %+v", m)
	}
	r.write(lsptest.Frame(`{"jsonrpc":"2.0","id":20,"method":"textDocument/hover","params":{}}`))
	if m := r.read(); m.Error == nil || m.Error.Code != -32600 {
		t.Errorf("after shutdown: %+v", m)
	}
	r.write(lsptest.Frame(exit))
	if err := r.waitForEnd(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
}

func TestServer_RequiresInitialize(t *testing.T) {
	r := startRaw(t)
	r.write(lsptest.Frame(`{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":{"uri":"file:///x.qtype.yaml","text":"a"}}}`))
	r.write(lsptest.Frame(`{"jsonrpc":"2.0","id":3,"method":"textDocument/hover","params":{}}`))
	if m := r.read(); m.Error == nil || m.Error.Code != -32002 {
		t.Errorf("got %+v", m)
	}
	r.write(lsptest.Frame(exit))
	if err := r.waitForEnd(); !errors.Is(err, lsp.ErrNoShutdown) {
		t.Errorf("exit without shutdown: %v", err)
	}
}

// TestStream_Headers checks that other headers are ignored, and that an invalid
// length ends the session.
func TestStream_Headers(t *testing.T) {
	r := startRaw(t)
	r.write(fmt.Sprintf("Content-Type: application/vscode-jsonrpc; charset=utf-8\r\ncontent-length:%d\r\n\r\n%s", len(initialize), initialize))
	if m := r.read(); m.Error != nil {
		t.Fatalf("initialize: %+v", m)
	}
	r.write("Content-Length: many\r\n\r\n{}")
	if err := r.waitForEnd(); err == nil || !strings.Contains(err.Error(), `invalid Content-Length "many"`) {
		t.Errorf("got %v", err)
	}
}

// TestServer_EndOfInput checks that requests are answered after the end of the
// input.
func TestServer_EndOfInput(t *testing.T) {
	r := startRaw(t)
	open := `{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":{"uri":"file:///x.qtype.yaml","version":1,"text":"id: x\n"}}}`
	hover := `{"jsonrpc":"2.0","id":5,"method":"textDocument/hover","params":{"textDocument":{"uri":"file:///x.qtype.yaml"},"position":{"line":0,"character":1}}}`
	go func() {
		_, _ = io.WriteString(r.in, lsptest.Frame(initialize)+lsptest.Frame(open)+lsptest.Frame(hover))
		_ = r.in.Close()
	}()
	for {
		if m := r.read(); string(m.ID) == "5" {
			if m.Error != nil || !strings.Contains(string(m.Result), "**id**") {
				t.Errorf("got %+v", m)
			}
			break
		}
	}
	if err := r.waitForEnd(); !errors.Is(err, lsp.ErrNoShutdown) {
		t.Errorf("got %v", err)
	}
}

// TestServer_CancelRequest cancels a request about a document that takes long to
// check.
func TestServer_CancelRequest(t *testing.T) {
	r := startRaw(t)
	r.write(lsptest.Frame(initialize))
	r.read()
	text, err := json.Marshal(testkit.LargeDocument(20_000, "Be brief."))
	if err != nil {
		t.Fatal(err)
	}
	r.write(lsptest.Frame(`{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":{"uri":"file:///x.qtype.yaml","version":1,"text":` + string(text) + `}}}`))
	r.write(lsptest.Frame(`{"jsonrpc":"2.0","id":5,"method":"textDocument/hover","params":{"textDocument":{"uri":"file:///x.qtype.yaml"},"position":{"line":0,"character":1}}}`))
	r.write(lsptest.Frame(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":5}}`))
	for {
		m := r.read()
		if string(m.ID) != "5" {
			continue
		}
		if m.Error == nil || m.Error.Code != -32800 {
			t.Errorf("got %+v", m)
		}
		return
	}
}
