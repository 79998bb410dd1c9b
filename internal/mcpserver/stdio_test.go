package mcpserver_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/mcpserver"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/tool"
)

// line is a call over standard input.
func line(id, tool, args string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + args + "}}\n"
}

// What was sent before the end of the input is answered, as scripts expect.
func TestServer_RunToEnd(t *testing.T) {
	server := serveApp(t, openApp(t), mcpserver.ApplicationOptions{})
	in := hello + "\n" + ready + "\n" + line("2", "talk", `{"message": "x"}`) + line("3", "pay_back", `{"order": 1}`) + line("4", "complaint", `{"order": 1}`)
	var out strings.Builder
	testkit.Must(t, server.Run(t.Context(), strings.NewReader(in), &out))
	for _, part := range []string{`"id":1`, `"id":2`, `"id":3`, `"R    1"`, "does not support elicitation"} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("%s is not in\n%s", part, out.String())
		}
	}
}

// A client that ends its input cannot answer questions, so runs with a question fail.
func TestServer_RunQuestionAfterEnd(t *testing.T) {
	ended := make(chan struct{})
	afterEnd := qtype.WithClientTool("decide", func(ctx context.Context, call tool.Request) (any, error) {
		<-ended
		return mcpserver.HandleClientTool(ctx, call)
	})
	server := serveApp(t, openApp(t, afterEnd), mcpserver.ApplicationOptions{AppHandlers: true})
	greeting := strings.Replace(hello, `"capabilities":{}`, `"capabilities":{"elicitation":{}}`, 1)
	in := greeting + "\n" + ready + "\n" + line("2", "complaint", `{"order": 1}`)
	var out strings.Builder
	testkit.Must(t, server.Run(t.Context(), &notifyEnd{Reader: strings.NewReader(in), ended: ended}, &out))
	if !strings.Contains(out.String(), `"id":2`) || !strings.Contains(out.String(), `"isError":true`) {
		t.Errorf("got\n%s", out.String())
	}
}

// notifyEnd closes ended at the end of the input.
type notifyEnd struct {
	io.Reader
	ended  chan struct{}
	closed bool
}

func (r *notifyEnd) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if errors.Is(err, io.EOF) && !r.closed {
		r.closed = true
		close(r.ended)
	}
	return n, err
}

// A line that is not a message is answered with an error, and the session continues.
func TestServer_RunWrongInput(t *testing.T) {
	const parse, invalid = `"error":{"code":-32700,"message":"Parse error`, `"error":{"code":-32600,"message":"Invalid Request`
	for text, want := range map[string]string{
		"{":                        `{"jsonrpc":"2.0","id":null,` + parse,
		"nonsense":                 `{"jsonrpc":"2.0","id":null,` + parse,
		`{"jsonrpc":"2.0"} {}`:     `{"jsonrpc":"2.0","id":null,` + parse,
		`{"id":7,"method":"ping"}`: `{"jsonrpc":"2.0","id":7,` + invalid,
		`{"jsonrpc":"2.0","id":{},"method":"ping"}`: `{"jsonrpc":"2.0","id":null,` + invalid,
		`[]`:   `{"jsonrpc":"2.0","id":null,` + invalid,
		`[{}]`: `{"jsonrpc":"2.0","id":null,` + invalid,
		`5`:    `{"jsonrpc":"2.0","id":null,` + invalid,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}`: "",
		" \r":                                   "",
		`"` + strings.Repeat("x", 17<<20) + `"`: `{"jsonrpc":"2.0","id":null,` + invalid + `: the message is longer than 16 MiB`,
	} {
		server := serveApp(t, openApp(t), mcpserver.ApplicationOptions{})
		var out strings.Builder
		testkit.Must(t, server.Run(t.Context(), strings.NewReader(hello+"\n"+ready+"\r\n"+text+"\n\n"+line("2", "talk", `{"message": "x"}`)+text), &out))
		text = text[:min(len(text), 100)]
		for _, part := range []string{`"id":1`, `"id":2,"result"`, want} {
			if !strings.Contains(out.String(), part) {
				t.Errorf("%s: %s is not in\n%s", text, part, out.String())
			}
		}
		wanted := 2 // also without the end of the line
		if want == "" {
			wanted = 0
		}
		if n := strings.Count(out.String(), `"error":`); n != wanted {
			t.Errorf("%s: %d errors in\n%s", text, n, out.String())
		}
	}
}
