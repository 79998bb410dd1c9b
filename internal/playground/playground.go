// Package playground is what the playground page calls: the checker, completion, the
// formatter, the diagram, the texts of `qtype explain` and `qtype memory replay`, for one
// document in memory. It reads no files, no environment variables and no servers, so that
// a document of anyone can be opened. Package wasm compiles it for browsers.
package playground

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"sync"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/qtype-dev/qtype/internal/lsp"
)

// The limits of what a page may send, in bytes.
const (
	maxDocument   = 1 << 20
	maxTranscript = 1 << 20
)

// uri is the name of the document in the language server.
const uri = "untitled:app.qtype.yaml"

// A Session edits one document. It is safe for concurrent use; calls are done in order.
type Session struct {
	mu      sync.Mutex
	conn    *jsonrpc2.Conn // to the language server
	version int
	stop    func()
}

// New starts a session. schema is the JSON schema of documents.
func New(ctx context.Context, version, schema string) (*Session, error) {
	ctx, cancel := context.WithCancel(ctx)
	toServer, toServerEnd := io.Pipe()
	fromServerEnd, fromServer := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = lsp.Serve(ctx, toServer, fromServer, lsp.Options{Version: version, Schema: schema, Isolated: true})
		_ = fromServer.CloseWithError(io.EOF)
		_ = toServer.CloseWithError(io.ErrClosedPipe)
	}()
	conn := jsonrpc2.NewConn(ctx, jsonrpc2.NewBufferedStream(pipes{fromServerEnd, toServerEnd}, jsonrpc2.VSCodeObjectCodec{}), ignore{})
	s := &Session{conn: conn, stop: func() {
		cancel()
		_ = conn.Close() // may be closed already
		<-ended
	}}
	if err := s.start(ctx); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// pipes are the ends of the connection that the session has.
type pipes struct {
	*io.PipeReader
	*io.PipeWriter
}

// Close closes both.
func (p pipes) Close() error { return errors.Join(p.PipeReader.Close(), p.PipeWriter.Close()) }

// start opens an empty document. The page requests diagnostics.
func (s *Session) start(ctx context.Context) error {
	if _, err := s.request(ctx, "initialize", map[string]any{"capabilities": map[string]any{"textDocument": map[string]any{"diagnostic": map[string]any{}}}}); err != nil {
		return err
	}
	return s.conn.Notify(ctx, "textDocument/didOpen", map[string]any{"textDocument": map[string]any{
		"uri": uri, "languageId": "qtype", "version": 0, "text": "",
	}})
}

// Close ends the session.
func (s *Session) Close() { s.stop() }

// ignore drops what the server sends: the page requests.
type ignore struct{}

// Handle implements jsonrpc2.Handler.
func (ignore) Handle(context.Context, *jsonrpc2.Conn, *jsonrpc2.Request) {}

// answer is the result of a call: a result, or an error.
type answer struct {
	Result any    `json:"result,omitempty"`
	Error  string `json:"error,omitempty"`
}

// Call calls a function by its name with parameters as JSON, and returns the answer as
// JSON: {"result": …} or {"error": "…"}. It does not panic.
func (s *Session) Call(ctx context.Context, name string, params []byte) (result []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() {
		if r := recover(); r != nil {
			result = encode(answer{Error: fmt.Sprintf("internal error (a bug in qtype): %v", r)})
		}
	}()
	call, known := calls[name]
	if !known {
		return encode(answer{Error: fmt.Sprintf("the playground has no function %q", name)})
	}
	done, err := call(ctx, s, params)
	if err != nil {
		return encode(answer{Error: err.Error()})
	}
	return encode(answer{Result: done})
}

// encode returns an answer as JSON.
func encode(a answer) []byte {
	raw, err := json.Marshal(a)
	if err != nil { // answers consist of texts, numbers, lists and objects
		raw, _ = json.Marshal(answer{Error: err.Error()})
	}
	return raw
}

// calls is the table of the functions.
var calls = map[string]func(context.Context, *Session, []byte) (any, error){
	"check":    typed((*Session).check),
	"complete": typed((*Session).complete),
	"hover":    typed((*Session).hover),
	"format":   typed((*Session).format),
	"draw":     typed((*Session).draw),
	"explain":  typed((*Session).explain),
	"replay":   typed((*Session).replay),
}

// typed adapts a function with typed parameters.
func typed[P any](f func(*Session, context.Context, P) (any, error)) func(context.Context, *Session, []byte) (any, error) {
	return func(ctx context.Context, s *Session, raw []byte) (any, error) {
		var params P
		dec := json.NewDecoder(strings.NewReader(string(raw)))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&params); err != nil {
			return nil, fmt.Errorf("the parameters are malformed: %w", err)
		}
		return f(s, ctx, params)
	}
}

// documentParams are the parameters of functions on a text.
type documentParams struct {
	Text string `json:"text"`
}

// positionParams are the parameters of functions at the cursor.
type positionParams struct {
	Text      string `json:"text"`
	Line      int    `json:"line"`      // 0-based
	Character int    `json:"character"` // 0-based, in UTF-16 code units
}

// checkSize returns an error for a document that is too large for a page.
func checkSize(text string) error {
	if len(text) > maxDocument {
		return fmt.Errorf("the document has %d bytes; the playground takes at most %d", len(text), maxDocument)
	}
	return nil
}

// open makes a text the document of the language server.
func (s *Session) open(ctx context.Context, text string) error {
	if err := checkSize(text); err != nil {
		return err
	}
	s.version++
	return s.conn.Notify(ctx, "textDocument/didChange", map[string]any{
		"textDocument": map[string]any{"uri": uri, "version": s.version}, "contentChanges": []any{map[string]any{"text": text}},
	})
}

// request calls the language server.
func (s *Session) request(ctx context.Context, method string, params any) (json.RawMessage, error) {
	var result json.RawMessage
	err := s.conn.Call(ctx, method, params, &result)
	var failed *jsonrpc2.Error
	if errors.As(err, &failed) {
		return nil, errors.New(failed.Message)
	}
	return result, err
}

// check returns the diagnostics of a text, as the language server reports them.
func (s *Session) check(ctx context.Context, p documentParams) (any, error) {
	if err := s.open(ctx, p.Text); err != nil {
		return nil, err
	}
	return s.request(ctx, "textDocument/diagnostic", map[string]any{"textDocument": map[string]any{"uri": uri}})
}

// complete returns the proposals at the cursor.
func (s *Session) complete(ctx context.Context, p positionParams) (any, error) {
	return s.at(ctx, "textDocument/completion", p)
}

// hover returns the description of what is at the cursor; null for nothing.
func (s *Session) hover(ctx context.Context, p positionParams) (any, error) {
	return s.at(ctx, "textDocument/hover", p)
}

// at calls the language server for a position.
func (s *Session) at(ctx context.Context, method string, p positionParams) (any, error) {
	if err := s.open(ctx, p.Text); err != nil {
		return nil, err
	}
	return s.request(ctx, method, map[string]any{
		"textDocument": map[string]any{"uri": uri}, "position": map[string]any{"line": p.Line, "character": p.Character},
	})
}

// An Example is a document that the page offers to start from.
type Example struct {
	Name       string `json:"name"`
	Title      string `json:"title"`
	Text       string `json:"text"`
	Transcript string `json:"transcript"` // for its memories
}

// offered are the examples of the page by folder, the first one is shown first. Others
// need files that a page does not have.
var offered = []string{"chat", "context", "routing", "support_inbox", "agent_tools", "approval"}

// Examples returns the examples of the page from the folder of examples.
func Examples(files fs.FS) ([]Example, error) {
	var all []Example
	for _, name := range offered {
		text, err := fs.ReadFile(files, path.Join(name, "app.qtype.yaml"))
		if err != nil {
			return nil, fmt.Errorf("read an example: %w", err)
		}
		all = append(all, Example{Name: name, Title: strings.ReplaceAll(name, "_", " "), Text: withoutSchema(string(text)), Transcript: transcript})
	}
	return all, nil
}

// withoutSchema removes the line that names the schema for editors.
func withoutSchema(text string) string {
	if first, rest, _ := strings.Cut(text, "\n"); strings.HasPrefix(first, "# yaml-language-server:") {
		return strings.TrimPrefix(rest, "#\n")
	}
	return text
}

// transcript is the conversation that is replayed until the user writes another one.
var transcript = strings.Join([]string{
	`{"role": "user", "content": "Good morning. The rear brake of my bicycle squeals on every descent."}`,
	`{"role": "assistant", "content": "Good morning! Does it squeal only when the rim is wet, or always?"}`,
	`{"role": "user", "content": "Always, and since last week the lever comes close to the handlebar."}`,
	`{"role": "assistant", "content": "Then the pads are worn and the cable is stretched. Both are quickly replaced."}`,
	`{"role": "user", "content": "Could you also look at the lamp? It flickers on cobblestones."}`,
	`{"role": "assistant", "content": "Of course. The connector at the hub is often loose, we clean and fasten it."}`,
	`{"role": "user", "content": "I need it back before Friday evening. On Saturday we leave for a tour along the river, four days with luggage."}`,
	`{"role": "assistant", "content": "It is ready on Thursday at 16:00. Shall we also check the rack and its screws before the tour?"}`,
	`{"role": "user", "content": "Yes, please. What does everything cost together?"}`,
	`{"role": "assistant", "content": "Pads and cable are 38 euros, the lamp 12, and the check of the rack is free."}`,
	`{"role": "user", "content": "Good. Please write me a message when it is ready."}`,
}, "\n") + "\n"
