package mcpserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/mcpserver"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// inMemory connects a client to a server within the process.
func inMemory(t testing.TB, s *mcpserver.Server) *sdk.ClientSession {
	t.Helper()
	toServer, fromClient := io.Pipe()
	toClient, fromServer := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- s.Run(context.Background(), toServer, fromServer)
		fromServer.Close()
	}()
	session, err := sdk.NewClient(&sdk.Implementation{Name: "fuzz"}, nil).Connect(context.Background(), &sdk.IOTransport{Reader: toClient, Writer: fromClient}, nil)
	testkit.Must(t, err)
	t.Cleanup(func() {
		_ = session.Close()
		testkit.Must(t, <-done)
	})
	return session
}

// checkCall calls a tool with arguments of any kind. The result is a result or an error
// in one sentence, and never a panic.
func checkCall(t *testing.T, s *sdk.ClientSession, name, args string) {
	if !json.Valid([]byte(args)) {
		t.Skip("the client does not send it")
	}
	r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: json.RawMessage(args)})
	switch {
	case err != nil:
		t.Fatalf("%s(%s): %v", name, args, err)
	case len(r.Content) == 0 && r.StructuredContent == nil:
		t.Fatalf("%s(%s): no content", name, args)
	}
}

// tools returns the names of a server's tools.
func tools(f *testing.F, s *sdk.ClientSession) []string {
	all, err := s.ListTools(context.Background(), nil)
	testkit.Must(f, err)
	var names []string
	for _, t := range all.Tools {
		names = append(names, t.Name)
	}
	return names
}

func FuzzAssistant_Arguments(f *testing.F) {
	s := inMemory(f, serveAssistant(f, f.TempDir()))
	names := tools(f, s)
	for i := range names {
		for _, args := range []string{`{}`, `null`, `[]`, `"x"`, `{"yaml_content": "id: x\nflows: []\n"}`, `{"yaml_content": 5}`, `{"api_spec": "{\"openapi\": 3, \"paths\": {\"/x\": {\"get\": {}}}}"}`,
			`{"api_spec": "x.yaml"}`, `{"module_path": "a.b"}`, `{"query": "ab", "limit": 1e300}`, `{"file_path": "../x"}`, `{"code": "QT001"}`, `{"before": "", "after": "a: ["}`, `{"component_name": "Flow"}`} {
			f.Add(uint8(i), args)
		}
	}
	f.Fuzz(func(t *testing.T, tool uint8, args string) { checkCall(t, s, names[int(tool)%len(names)], args) })
}

func FuzzApplication_Arguments(f *testing.F) {
	app, err := qtype.Open(context.Background(), "testdata/app.qtype.yaml", qtype.WithEphemeral())
	testkit.Must(f, err)
	server, err := mcpserver.Application(app, mcpserver.ApplicationOptions{})
	testkit.Must(f, err)
	s := inMemory(f, server)
	names := tools(f, s)
	for i := range names {
		for _, args := range []string{`{}`, `null`, `[[]]`, `{"message": "x", "session": ""}`, `{"message": {"role": "user", "blocks": [{"type": "image", "content": "x"}]}}`, `{"order": 1e999}`,
			`{"order": -0, "tone": null}`, `{"lines": [{"sku": "a", "quantity": 1}, null]}`, `{"lines": {"sku": []}}`, `{"picture": "AAAA"}`, `{"picture": {"base64": 5}}`, `{"picture": "data:x"}`} {
			f.Add(uint8(i), args)
		}
	}
	f.Fuzz(func(t *testing.T, tool uint8, args string) { checkCall(t, s, names[int(tool)%len(names)], args) })
}

// FuzzServer_Run sends any bytes over standard input, before and after the handshake.
func FuzzServer_Run(f *testing.F) {
	hello := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}` + "\n" +
		`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"
	for _, line := range []string{"", "{", "[]", "null", `{"jsonrpc":"2.0","id":2,"method":"tools/call"}`, `{"jsonrpc":"2.0","id":{},"method":"tools/call","params":[]}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"explain","arguments":5}}`, `{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"\u0000"}}`,
		`{"jsonrpc":"2.0","id":2,"method":"prompts/get","params":null}`, `{"jsonrpc":"2.0","id":2,"method":"x","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`} {
		f.Add(line+"\n", true)
		f.Add(line+"\n", false)
	}
	server := serveAssistant(f, "")
	f.Fuzz(func(t *testing.T, text string, greet bool) {
		if greet {
			text = hello + text
		}
		var out bytes.Buffer
		_ = server.Run(t.Context(), strings.NewReader(text), &out) // an error ends the session
		if strings.Contains(out.String(), "internal error") {
			t.Errorf("%q: %s", text, out.String())
		}
	})
}
