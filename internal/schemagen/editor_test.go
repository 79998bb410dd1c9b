package schemagen_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/qtype-dev/qtype/internal/lsp/lsptest"
)

// cursor marks the position of a request in a document.
const cursor = "█"

// editor runs yaml-language-server as an editor does.
type editor struct {
	t         *testing.T
	conn      *jsonrpc2.Conn
	published chan publishedDiagnostics
	dir       string // the folder of the documents, with a copy of the schema
	files     int
}

// publishedDiagnostics is a notification with diagnostics.
type publishedDiagnostics struct {
	URI         string       `json:"uri"`
	Diagnostics []diagnostic `json:"diagnostics"`
}

type position struct {
	Line      int `json:"line"`
	Character int `json:"character"`
}

type diagnostic struct {
	Message string `json:"message"`
	Range   struct{ Start, End position }
}

type completion struct {
	Label         string          `json:"label"`
	InsertText    string          `json:"insertText"`
	Documentation json.RawMessage `json:"documentation"` // a string or {kind, value}
	TextEdit      struct{ NewText string }
}

// languageServer returns the path of the language server, or skips the test.
func languageServer(t *testing.T) string {
	t.Helper()
	path := os.Getenv("QTYPE_YLS")
	if path == "" {
		path = "yaml-language-server"
	}
	found, err := exec.LookPath(path)
	if err != nil {
		if os.Getenv("QTYPE_YLS") != "" {
			t.Fatalf("QTYPE_YLS: %v", err)
		}
		t.Skip("SKIPPED: yaml-language-server is not installed, so no editor was tried. " +
			"Install it from npm, or name it in QTYPE_YLS; .ci/run does.")
	}
	return found
}

// start starts an editor with an empty folder.
func start(t *testing.T) *editor {
	t.Helper()
	e := &editor{t: t, dir: t.TempDir(), published: make(chan publishedDiagnostics, 16)}
	text, err := os.ReadFile("../../schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(e.dir, "schema.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	server := exec.Command(languageServer(t), "--stdio")
	server.Stderr = os.Stderr
	stream := jsonrpc2.NewBufferedStream(lsptest.Start(t, server), jsonrpc2.VSCodeObjectCodec{})
	e.conn = jsonrpc2.NewConn(t.Context(), stream, jsonrpc2.HandlerWithError(e.handle))
	t.Cleanup(func() {
		_ = e.conn.Close()
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	e.call("initialize", map[string]any{
		"processId": os.Getpid(), "rootUri": "file://" + e.dir,
		"workspaceFolders": []any{map[string]any{"uri": "file://" + e.dir, "name": "test"}},
		"capabilities": map[string]any{
			"workspace": map[string]any{"configuration": true},
			"textDocument": map[string]any{
				"completion": map[string]any{"completionItem": map[string]any{
					"snippetSupport": true, "documentationFormat": []string{"markdown"}}},
				"hover": map[string]any{"contentFormat": []string{"markdown"}},
			},
		},
	}, nil)
	e.notify("initialized", map[string]any{})
	return e
}

// handle answers the server's requests: there are no settings.
func (e *editor) handle(_ context.Context, _ *jsonrpc2.Conn, req *jsonrpc2.Request) (any, error) {
	switch req.Method {
	case "textDocument/publishDiagnostics":
		var p publishedDiagnostics
		if err := json.Unmarshal(*req.Params, &p); err != nil {
			return nil, err
		}
		e.published <- p
	case "workspace/configuration":
		var params struct{ Items []any }
		if err := json.Unmarshal(*req.Params, &params); err != nil {
			return nil, err
		}
		return make([]map[string]any, len(params.Items)), nil
	}
	return nil, nil
}

func (e *editor) call(method string, params, result any) {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), 5*time.Minute)
	defer cancel()
	if err := e.conn.Call(ctx, method, params, result); err != nil {
		e.t.Fatalf("%s: %v", method, err)
	}
}

func (e *editor) notify(method string, params any) {
	e.t.Helper()
	if err := e.conn.Notify(e.t.Context(), method, params); err != nil {
		e.t.Fatalf("%s: %v", method, err)
	}
}

// openDocument is a document in the editor, with the cursor.
type openDocument struct {
	*editor
	uri string
	at  position
}

// open opens a document with the modeline and removes the cursor from it.
func (e *editor) open(document string) *openDocument {
	e.t.Helper()
	text := "# yaml-language-server: $schema=schema.json\n" + strings.TrimPrefix(document, "\n")
	before, after, _ := strings.Cut(text, cursor)
	lines := strings.Split(before, "\n")
	e.files++
	name := filepath.Join(e.dir, fmt.Sprintf("app%d.qtype.yaml", e.files))
	if err := os.WriteFile(name, []byte(before+after), 0o600); err != nil {
		e.t.Fatal(err)
	}
	o := &openDocument{editor: e, uri: "file://" + name,
		at: position{Line: len(lines) - 1, Character: len([]rune(lines[len(lines)-1]))}}
	e.notify("textDocument/didOpen", map[string]any{"textDocument": map[string]any{
		"uri": o.uri, "languageId": "yaml", "version": 1, "text": before + after}})
	return o
}

// diagnostics waits for the server's diagnostics.
func (o *openDocument) diagnostics() []diagnostic {
	o.t.Helper()
	deadline := time.After(5 * time.Minute)
	for {
		select {
		case p := <-o.published:
			if p.URI == o.uri {
				return p.Diagnostics
			}
		case <-deadline:
			o.t.Fatal("no diagnostics came within a minute")
		}
	}
}

func (o *openDocument) where() map[string]any {
	return map[string]any{"textDocument": map[string]any{"uri": o.uri}, "position": o.at}
}

// complete requests the completions at the cursor.
func (o *openDocument) complete() map[string]completion {
	o.t.Helper()
	var list struct{ Items []completion }
	o.call("textDocument/completion", o.where(), &list)
	items := map[string]completion{}
	for _, c := range list.Items {
		items[c.Label] = c
	}
	return items
}

// hover requests the text about the word at the cursor.
func (o *openDocument) hover() string {
	o.t.Helper()
	var h struct{ Contents struct{ Value string } }
	o.call("textDocument/hover", o.where(), &h)
	return h.Contents.Value
}

func labels(items map[string]completion) []string {
	var all []string
	for l := range items {
		all = append(all, l)
	}
	slices.Sort(all)
	return all
}
