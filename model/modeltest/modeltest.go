// Package modeltest is the contract of chat models: what every client of a
// provider must do, whatever the provider's wire format is. A client's tests
// tell how its server speaks and run the suite, which talks to a real HTTP
// server on loopback.
package modeltest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
)

// key is the credential that all calls carry.
const key = "key-very-secret-0123456789"

// Answer is what a server is to say.
type Answer struct {
	Pieces   []string        // the text, as a stream has it
	Thoughts string          // what a model that thinks says before; empty for none
	Calls    []chat.ToolCall // the tools that are called
	Length   bool            // the answer ended for want of room
	Input    int             // tokens that were read
	Output   int             // tokens that were written
}

// Target is what a client is made for.
type Target struct {
	Info   model.Info     // what the model is
	URL    string         // the server's address
	Key    string         // the credential
	Params map[string]any // temperature and max_tokens
	HTTP   *http.Client   // carries the calls
}

// Request is what a server was sent.
type Request struct {
	Path   string         // with the query
	Header http.Header    // of the request
	Body   map[string]any // JSON
}

// Conversation is what a request says, in words that no provider has a part in.
type Conversation struct {
	Key         string   // the credential
	Model       string   // the provider's name of the model
	System      string   // what the system says
	Said        []string // "user: hello", "assistant: hi", "assistant calls find {…}", "result of find: found"
	Tools       []string // "find(city)": the names of the tools and of their arguments
	Stream      bool     // the answer is to be streamed
	Temperature any      // the parameter of that name
	MaxTokens   any      // the room for the answer
}

// Wire is how the servers of a provider speak.
type Wire struct {
	Open     func(Target) (model.Chat, error)           // makes the client
	Whole    func(Answer) string                        // an answer in one piece
	Stream   func(Answer) []string                      // a streamed one: records as they go over the wire, the closing ones last
	Closing  int                                        // how many of the last records a stream cannot do without
	Kind     string                                     // a stream's content type
	Fault    func(status int, message string) string    // an error's body
	Broken   string                                     // a record that says of an error in the midst of a stream
	Heard    func(t testing.TB, r Request) Conversation // reads a request
	Thoughts bool                                       // the protocol knows thoughts
}

// Server answers the requests of a test, one after the other; the last answer is
// given again and again.
type Server struct {
	*httptest.Server
	t        testing.TB
	mu       sync.Mutex
	requests []Request
}

// Serve starts a server of handlers.
func Serve(t testing.TB, handlers ...http.HandlerFunc) *Server {
	t.Helper()
	s := &Server{t: t}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("reading the request: %v", err)
		}
		req := Request{Path: r.URL.RequestURI(), Header: r.Header}
		if err := json.Unmarshal(raw, &req.Body); err != nil {
			t.Errorf("the request is not JSON: %v", err)
		}
		s.mu.Lock()
		s.requests = append(s.requests, req)
		n := min(len(s.requests), len(handlers)) - 1
		s.mu.Unlock()
		handlers[n](w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// Calls is how many requests there were so far.
func (s *Server) Calls() int { return len(s.Requests()) }

// Requests are those so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request{}, s.requests...)
}

// target is a model behind the server.
func (s *Server) target() Target {
	return Target{Info: model.Info{ID: "m", Name: "some-model"}, URL: s.URL, Key: key, HTTP: s.Client(),
		Params: map[string]any{"temperature": 0.5, "max_tokens": 77}}
}

// open makes a patient client of the server.
func (w Wire) open(t testing.TB, s *Server) model.Chat {
	t.Helper()
	m, err := w.Open(s.target())
	if err != nil {
		t.Fatal(err)
	}
	return model.WithRetry(m, model.CallPolicy{Timeout: time.Minute, MaxAttempts: 2, InitialDelay: time.Millisecond, MaxDelay: time.Second})
}

// answers is a handler that says the answer, streamed where it is asked to.
func (w Wire) answers(a Answer, stream bool) http.HandlerFunc {
	if !stream {
		return Says(http.StatusOK, "application/json", w.Whole(a))
	}
	return w.streams(w.Stream(a), "")
}

// streams is a handler that sends records; after them end is done: "cut" breaks
// the connection, "hang" keeps it open.
func (w Wire) streams(records []string, end string) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", w.Kind)
		for _, record := range records {
			_, _ = io.WriteString(rw, record)
			rw.(http.Flusher).Flush()
		}
		switch end {
		case "cut":
			panic(http.ErrAbortHandler)
		case "hang":
			<-r.Context().Done()
		}
	}
}

// Says is a handler that gives one answer; the rest are headers, name and value.
func Says(status int, kind, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// JSON is a value as JSON, for the texts of servers.
func JSON(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(err)
	}
	return string(raw)
}
