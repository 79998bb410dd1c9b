package lsp_test

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sourcegraph/jsonrpc2"
	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/authoring"
	"github.com/qtype-dev/qtype/internal/lsp"
	"github.com/qtype-dev/qtype/internal/lsp/lsptest"
	"github.com/qtype-dev/qtype/internal/testkit"
)

func TestMain(m *testing.M) {
	testkit.AllowWaiting()
	goleak.VerifyTestMain(m, goleak.Cleanup(func(status int) {
		_ = os.RemoveAll(buildDir())
		os.Exit(status)
	}))
}

// cursor marks the position of a request in a document.
const cursor = "█"

type (
	position struct {
		Line      int `json:"line"`
		Character int `json:"character"`
	}
	textRange struct {
		Start position `json:"start"`
		End   position `json:"end"`
	}
	location struct {
		URI   string    `json:"uri"`
		Range textRange `json:"range"`
	}
	textEdit struct {
		Range   textRange `json:"range"`
		NewText string    `json:"newText"`
	}
	diagnostic struct {
		Range    textRange `json:"range"`
		Severity int       `json:"severity"`
		Code     string    `json:"code"`
		Message  string    `json:"message"`
		Related  []struct {
			Location location `json:"location"`
			Message  string   `json:"message"`
		} `json:"relatedInformation"`
	}
	publishedDiagnostics struct {
		URI         string       `json:"uri"`
		Version     *int         `json:"version"`
		Diagnostics []diagnostic `json:"diagnostics"`
	}
	completionItem struct {
		Label         string   `json:"label"`
		Detail        string   `json:"detail"`
		Preselect     bool     `json:"preselect"`
		SortText      string   `json:"sortText"`
		TextEdit      textEdit `json:"textEdit"`
		Documentation struct{ Value string }
	}
)

// schema returns the text of schema.json.
func schema(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile("../../schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// editor is a client of a server in this process.
type editor struct {
	t              testing.TB
	dir            string // the open folder
	conn           *jsonrpc2.Conn
	published      chan publishedDiagnostics
	serverRequests chan string // methods of the server's requests
	versions       map[string]int
	texts          map[string]string
	done           chan error // the result of Serve
}

// silent discards the messages of the client library.
type silent struct{}

func (silent) Printf(string, ...any) {}

// connect starts a server and a client, which send nothing yet.
func connect(t testing.TB) *editor {
	t.Helper()
	e := &editor{t: t, dir: tempDir(t), published: make(chan publishedDiagnostics, 1000), serverRequests: make(chan string, 100),
		versions: map[string]int{}, texts: map[string]string{}, done: make(chan error, 1)}
	toServer, fromClient := io.Pipe()
	toClient, fromServer := io.Pipe()
	go func() {
		err := lsp.Serve(context.Background(), toServer, fromServer, lsp.Options{Version: "test", Schema: schema(t), Kinds: authoring.FileKinds(authoring.Options{}),
			Commands: []string{"chat", "run", "test"}})
		_ = fromServer.Close()
		_ = toServer.Close()
		e.done <- err
	}()
	e.conn = jsonrpc2.NewConn(context.Background(), jsonrpc2.NewBufferedStream(lsptest.Pipe{Reader: toClient, WriteCloser: fromClient}, jsonrpc2.VSCodeObjectCodec{}),
		jsonrpc2.HandlerWithError(e.handle), jsonrpc2.SetLogger(silent{}))
	var once sync.Once
	t.Cleanup(func() {
		once.Do(func() { _ = e.conn.Close() })
		select {
		case <-e.done:
		case <-time.After(time.Minute):
			t.Error("the server did not end after its editor")
		}
	})
	return e
}

func tempDir(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// start initializes a server with a folder of files, given by name.
func start(t testing.TB, files map[string]string, capabilities ...map[string]any) *editor {
	t.Helper()
	e := connect(t)
	for name, text := range files {
		e.write(name, text)
	}
	can := map[string]any{"textDocument": map[string]any{"documentSymbol": map[string]any{"hierarchicalDocumentSymbolSupport": true}}}
	for _, more := range capabilities {
		can = more
	}
	e.call("initialize", map[string]any{"processId": nil, "rootUri": "file://" + e.dir, "capabilities": can}, nil)
	e.notify("initialized", map[string]any{})
	return e
}

func (e *editor) handle(_ context.Context, _ *jsonrpc2.Conn, req *jsonrpc2.Request) (any, error) {
	if req.Method != "textDocument/publishDiagnostics" {
		e.serverRequests <- req.Method
		return nil, nil
	}
	var p publishedDiagnostics
	if err := json.Unmarshal(*req.Params, &p); err != nil {
		return nil, err
	}
	e.published <- p
	return nil, nil
}

// write writes a file in the folder.
func (e *editor) write(name, text string) {
	e.t.Helper()
	path := filepath.Join(e.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		e.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		e.t.Fatal(err)
	}
}

// tryCall calls a method and returns its error.
func (e *editor) tryCall(method string, params, result any) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return e.conn.Call(ctx, method, params, result)
}

func (e *editor) call(method string, params, result any) {
	e.t.Helper()
	if err := e.tryCall(method, params, result); err != nil {
		e.t.Fatalf("%s: %v", method, err)
	}
}

func (e *editor) notify(method string, params any) {
	e.t.Helper()
	if err := e.conn.Notify(context.Background(), method, params); err != nil {
		e.t.Fatalf("%s: %v", method, err)
	}
}

func (e *editor) uri(name string) string { return "file://" + filepath.Join(e.dir, name) }

// openFile opens a file of the folder.
func (e *editor) openFile(name string) {
	e.t.Helper()
	text, err := os.ReadFile(filepath.Join(e.dir, name))
	if err != nil {
		e.t.Fatal(err)
	}
	e.open(name, string(text))
}

// open opens a document with a text.
func (e *editor) open(name, text string) {
	e.t.Helper()
	e.versions[name], e.texts[name] = 1, text
	e.notify("textDocument/didOpen", map[string]any{"textDocument": map[string]any{
		"uri": e.uri(name), "languageId": "yaml", "version": 1, "text": text}})
}

// replace replaces the text of an open document.
func (e *editor) replace(name, text string) {
	e.t.Helper()
	e.change(name, map[string]any{"text": text})
	e.texts[name] = text
}

func (e *editor) change(name string, edit map[string]any) {
	e.t.Helper()
	e.versions[name]++
	e.notify("textDocument/didChange", map[string]any{
		"textDocument":   map[string]any{"uri": e.uri(name), "version": e.versions[name]},
		"contentChanges": []any{edit}})
}

// diagnostics waits for the diagnostics of the latest version of a document.
func (e *editor) diagnostics(name string) []diagnostic {
	e.t.Helper()
	deadline := time.After(time.Minute)
	for {
		select {
		case p := <-e.published:
			if p.URI == e.uri(name) && (p.Version == nil || *p.Version == e.versions[name]) {
				return p.Diagnostics
			}
		case <-deadline:
			e.t.Fatalf("no diagnostics of %s", name)
		}
	}
}

// cutCursor removes the cursor from a text and returns its position.
func cutCursor(t testing.TB, text string) (string, position) {
	t.Helper()
	before, after, found := strings.Cut(text, cursor)
	if !found {
		t.Fatalf("no cursor in:\n%s", text)
	}
	line := before[strings.LastIndexByte(before, '\n')+1:]
	return before + after, position{strings.Count(before, "\n"), utf16Length(line)}
}

func utf16Length(text string) int {
	n := 0
	for _, r := range text {
		if n++; r > 0xffff {
			n++
		}
	}
	return n
}

// positionOf returns the parameters for a position in an open document: into
// characters after the start of the nth occurrence of a word.
func (e *editor) positionOf(name, word string, nth, into int) map[string]any {
	e.t.Helper()
	text, from := e.texts[name], 0
	for ; nth >= 0; nth-- {
		i := strings.Index(text[from:], word)
		if i < 0 {
			e.t.Fatalf("%q is not in %s", word, name)
		}
		from += i + 1
	}
	from += into - 1
	line := text[strings.LastIndexByte(text[:from], '\n')+1 : from]
	return map[string]any{"textDocument": map[string]any{"uri": e.uri(name)},
		"position": position{strings.Count(text[:from], "\n"), utf16Length(line)}}
}

// withParam adds a parameter.
func withParam(params map[string]any, key string, value any) map[string]any {
	params[key] = value
	return params
}

// applyEdits applies edits to a text.
func applyEdits(t testing.TB, text string, edits []textEdit) string {
	t.Helper()
	for i := len(edits) - 1; i >= 0; i-- {
		for j := range i { // edits come in any order; all refer to the original text
			if isAfter(edits[j].Range.Start, edits[i].Range.Start) {
				edits[i], edits[j] = edits[j], edits[i]
			}
		}
		text = text[:byteOffset(text, edits[i].Range.Start)] + edits[i].NewText + text[byteOffset(text, edits[i].Range.End):]
	}
	return text
}

func isAfter(p, q position) bool {
	return p.Line > q.Line || p.Line == q.Line && p.Character > q.Character
}

func byteOffset(text string, p position) int {
	at := 0
	for ; p.Line > 0; p.Line-- {
		at += strings.IndexByte(text[at:], '\n') + 1
	}
	for n := 0; n < p.Character; {
		for _, r := range text[at:] {
			n += utf16Length(string(r))
			at += len(string(r))
			break
		}
	}
	return at
}
