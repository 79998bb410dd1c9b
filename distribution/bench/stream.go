package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/memory/sqlite"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/runtime"
)

// streamChunks is the number of deltas of an answer, each of 24 characters.
const streamChunks = 50

// streamDocument is a flow whose mock model answers with the chunks, each after a delay.
func streamDocument(withMemory bool, delay time.Duration) string {
	answer := strings.Repeat("twenty-four-characters. ", streamChunks)
	memories, use := "", ""
	if withMemory {
		memories, use = "memories: [{id: talks, policy: message_window, max_messages: 20}]\n", "memory: talks, "
	}
	return fmt.Sprintf(`id: bench
models: [{type: Model, id: mock, provider: mock, rules: [{text: %q, delay: %s}]}]
%sflows:
  - id: talk
    interface: {type: Conversational}
    variables: [{id: message, type: ChatMessage}, {id: answer, type: ChatMessage}]
    inputs: [message]
    outputs: [answer]
    steps: [{type: LLMInference, id: reply, model: mock, %sinputs: [message], outputs: [answer]}]
`, answer, delay, memories, use)
}

// serveStreams serves GET /stream as a request of a chat client to the flow: all of the
// server except the network of a second request.
func serveStreams(arguments []string) error { return serveFlow(arguments[0], "", 0) }

// serveStoredStreams is serveStreams with a memory in a SQLite file.
func serveStoredStreams(arguments []string) error { return serveFlow(arguments[0], arguments[1], 0) }

// serveSlowStreams is serveStreams with a model whose first word takes an hour.
func serveSlowStreams(arguments []string) error { return serveFlow(arguments[0], "", time.Hour) }

func serveFlow(address, database string, delay time.Duration) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	app, err := openStreams(database, delay)
	if err != nil {
		return err
	}
	access, err := qtype.NewAccess(benchAccess())
	if err != nil {
		return err
	}
	s := qtype.Handler(app, qtype.HandlerOptions{Access: access, MaxRuns: 100_000})
	err = access.Serve(access.Server(chatClient(s.Routes())), l)
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// openStreams opens the application, with a memory in a SQLite file if there is a name.
func openStreams(database string, delay time.Duration) (*runtime.App, error) {
	folder, err := os.MkdirTemp("", "qtype-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	path := filepath.Join(folder, "app.qtype.yaml")
	if err := os.WriteFile(path, []byte(streamDocument(database != "", delay)), 0o600); err != nil {
		return nil, err
	}
	store := memory.NewInProcess()
	if database != "" {
		if store, err = sqlite.Open(database); err != nil {
			return nil, err
		}
	}
	return qtype.Open(context.Background(), path, qtype.WithStore(store))
}

// benchAccess has no limits that the workload would reach.
func benchAccess() qtype.AccessConfig {
	cfg := qtype.AccessConfig{Host: "127.0.0.1", Logger: slog.New(slog.DiscardHandler)}
	cfg.Limits.Rate, cfg.Limits.Burst, cfg.Limits.Streams, cfg.Limits.Requests = 1e9, 1e9, 100_000, 100_000
	return cfg
}

// streamSessions is the number of conversations, which the requests take in turn: with
// 4,000 requests each has ten turns.
const streamSessions = 400

// chatClient makes the requests of clients of requests with GET: /stream is that of a chat
// client, /rest, /openai and /mcp are those of other clients of the same flow.
func chatClient(next http.Handler) http.Handler {
	var requests atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch session := requests.Add(1) % streamSessions; r.URL.Path {
		case "/stream":
			post(r, "/flows/talk/stream", fmt.Sprintf(`{"id":"s-%d","messages":[{"id":"m","role":"user","parts":[{"type":"text","text":"hello"}]}]}`, session))
		case "/rest":
			post(r, "/flows/talk", `{"message":"hello"}`)
		case "/openai":
			post(r, "/v1/chat/completions", `{"model":"talk","messages":[{"role":"user","content":"hello"}]}`)
		case "/mcp":
			r.Header.Set("Accept", "application/json, text/event-stream")
			r.Header.Set("Mcp-Protocol-Version", "2026-07-28")
			r.Header.Set("Mcp-Method", "tools/call")
			r.Header.Set("Mcp-Name", "talk")
			post(r, "/mcp", mcpCall)
		}
		next.ServeHTTP(w, r)
	})
}

// mcpCall calls the flow in the version of MCP that has no sessions.
const mcpCall = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"talk","arguments":{"message":"hello"},"_meta":{` +
	`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},` +
	`"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"}}}}`

// post makes a request one that sends a JSON text.
func post(r *http.Request, path, body string) {
	r.Method, r.URL.Path = http.MethodPost, path
	r.Header.Set("Content-Type", "application/json")
	r.Body = io.NopCloser(strings.NewReader(body))
}

// serveBareStreams serves the chunks of GET /stream, and an answer for other paths, from a
// handler of net/http without anything else.
func serveBareStreams(arguments []string) error {
	chunk := []byte("data: {\"type\":\"text-delta\",\"id\":\"0\",\"delta\":\"twenty-four-characters. \"}\n\n")
	mux := http.NewServeMux()
	mux.HandleFunc("/stream", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for range streamChunks {
			_, _ = w.Write(chunk) // fails only if the client has gone
			w.(http.Flusher).Flush()
		}
		_, _ = io.WriteString(w, "data: [DONE]\n\n")
	})
	mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write(chunk)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	answer := `{"answer":"` + strings.Repeat("twenty-four-characters. ", streamChunks) + `"}`
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answer)
	})
	server := &http.Server{Addr: arguments[0], Handler: mux, ReadHeaderTimeout: time.Minute}
	return server.ListenAndServe()
}
