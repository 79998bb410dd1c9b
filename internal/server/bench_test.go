package server_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/memory/sqlite"
	"github.com/qtype-dev/qtype/internal/server"
	"github.com/qtype-dev/qtype/memory"
)

// benchFlow answers in 50 chunks; MEMORY and USE are replaced by a memory and its use.
const benchFlow = `id: bench
models: [{type: Model, id: mock, provider: mock, rules: [{text: ANSWER}]}]
MEMORYflows:
  - id: talk
    interface: {type: Conversational}
    variables: [{id: message, type: ChatMessage}, {id: answer, type: ChatMessage}]
    inputs: [message]
    outputs: [answer]
    steps: [{type: LLMInference, id: reply, model: mock, USEinputs: [message], outputs: [answer]}]
`

// benchServer returns a server of benchFlow, with a memory if store is not nil.
func benchServer(b *testing.B, store memory.Store) *server.Server {
	b.Helper()
	declared, use := "", ""
	if store != nil {
		declared, use = "memories: [{id: talks, policy: message_window, max_messages: 20}]\n", "memory: talks, "
	} else {
		store = memory.NewInProcess()
	}
	answer := strconv.Quote(strings.Repeat("twenty-four-characters. ", 50))
	path := filepath.Join(b.TempDir(), "app.qtype.yaml")
	text := strings.NewReplacer("ANSWER", answer, "MEMORY", declared, "USE", use).Replace(benchFlow)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	app, err := qtype.Open(b.Context(), path, qtype.WithStore(store))
	if err != nil {
		b.Fatal(err)
	}
	s := server.New(app, server.Options{})
	b.Cleanup(func() {
		_ = s.Shutdown(b.Context())
		_ = app.Close(b.Context())
	})
	return s
}

// benchRequests sends requests to a path; body returns that of the nth.
func benchRequests(b *testing.B, s *server.Server, path string, body func(n int) string) {
	b.Helper()
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n++
		req := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body(n)))
		req.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, req)
		if w.Code != http.StatusOK || w.Body.Len() < 1000 {
			b.Fatalf("%d: %s", w.Code, w.Body)
		}
	}
}

// BenchmarkStream measures a whole streamed request without a network: workload W6.
func BenchmarkStream(b *testing.B) {
	stores := map[string]func(b *testing.B) memory.Store{
		"stateless": func(*testing.B) memory.Store { return nil },
		"inprocess": func(*testing.B) memory.Store { return memory.NewInProcess() },
		"sqlite": func(b *testing.B) memory.Store {
			s, err := sqlite.Open(filepath.Join(b.TempDir(), "memory.db"))
			if err != nil {
				b.Fatal(err)
			}
			return s
		},
	}
	for name, open := range stores {
		b.Run(name, func(b *testing.B) {
			benchRequests(b, benchServer(b, open(b)), "/flows/talk/stream", func(n int) string {
				return `{"id":"s-` + strconv.Itoa(n%400) + `","messages":[{"id":"m","role":"user","parts":[{"type":"text","text":"hello"}]}]}`
			})
		})
	}
}

// BenchmarkREST measures a request that is answered as a whole.
func BenchmarkREST(b *testing.B) {
	benchRequests(b, benchServer(b, nil), "/flows/talk", func(int) string { return `{"message":"hello"}` })
}
