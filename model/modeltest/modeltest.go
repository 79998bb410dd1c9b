// Package modeltest is the contract suite of chat models: what every client must do,
// for any wire format. A client's test describes the format and
// runs the suite, which uses a real HTTP server on loopback.
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

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
)

// key is the credential of all calls.
const key = "key-very-secret-0123456789"

// Answer is the content of a response.
type Answer struct {
	Chunks    []string        // the text, as a stream splits it
	Reasoning string          // reasoning before the text; empty for none
	Calls     []chat.ToolCall // the tool calls
	Length    bool            // whether the answer ended at the token limit
	Input     int             // tokens read
	Output    int             // tokens written
}

// Stop returns the reason for which the answer ends, in the words of a provider.
func (a Answer) Stop(length, calls, end string) string {
	switch {
	case a.Length:
		return length
	case len(a.Calls) > 0:
		return calls
	}
	return end
}

// Target is what a client is made for.
type Target struct {
	Info   model.Info     // what the model is
	URL    string         // the server's address
	Key    string         // the credential
	Params map[string]any // temperature and max_tokens
	HTTP   *http.Client   // carries the calls
}

// Config returns the configuration of the client.
func (t Target) Config() wire.Config {
	if t.Info.Known == nil {
		t.Info.Known, _ = catalogue.Lookup("", t.Info.Name)
	}
	return wire.Config{Info: t.Info, BaseURL: t.URL, Key: t.Key, Credential: "THE_KEY", Params: t.Params, HTTP: t.HTTP}
}

// Request is a request that a server received.
type Request struct {
	Path   string         // including the query
	Header http.Header    // of the request
	Body   map[string]any // JSON
}

// Conversation is the content of a request, independent of the provider.
type Conversation struct {
	Key         string   // the credential
	Model       string   // the provider's name of the model
	System      string   // text of the system message
	Messages    []string // "user: hello", "assistant: hi", "assistant calls find {…}", "result of find: found"
	Tools       []string // "find(city)": the names of the tools and of their arguments
	Stream      bool     // the answer is to be streamed
	Temperature any      // parameter of the same name
	MaxTokens   any      // token limit of the answer
}

// Wire describes the wire format of a provider.
type Wire struct {
	Open        func(Target) (model.Chat, error)           // makes the client
	Whole       func(Answer) string                        // encodes a response that is not streamed
	Stream      func(Answer) []string                      // encodes a streamed response: its records, the closing ones last
	Closing     int                                        // how many of the last records are required
	Kind        string                                     // content type of a stream
	ErrorBody   func(status int, message string) string    // encodes an error
	ErrorRecord string                                     // a record that reports an error within a stream
	Parse       func(t testing.TB, r Request) Conversation // decodes a request
	Reasoning   bool                                       // whether the protocol has reasoning
}

// Server answers the requests of a test with one handler after the other, then with the
// last one.
type Server struct {
	*httptest.Server
	t        testing.TB
	mu       sync.Mutex
	requests []Request
}

// Serve starts a server with these handlers.
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

// Calls returns the number of requests so far.
func (s *Server) Calls() int { return len(s.Requests()) }

// Requests returns the requests so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request{}, s.requests...)
}

// target returns a model of the server.
func (s *Server) target() Target {
	return Target{Info: model.Info{ID: "m", Name: "some-model"}, URL: s.URL, Key: key, HTTP: s.Client(),
		Params: map[string]any{"temperature": 0.5, "max_tokens": 77}}
}

// open makes a client of the server, with retries.
func (w Wire) open(t testing.TB, s *Server) model.Chat {
	t.Helper()
	m, err := w.Open(s.target())
	if err != nil {
		t.Fatal(err)
	}
	return model.WithRetry(m, model.CallPolicy{Timeout: time.Minute, MaxAttempts: 2, InitialDelay: time.Millisecond, MaxDelay: time.Second})
}

// answers returns a handler that sends the answer, streamed if requested.
func (w Wire) answers(a Answer, stream bool) http.HandlerFunc {
	if !stream {
		return Respond(http.StatusOK, "application/json", w.Whole(a))
	}
	return w.streams(w.Stream(a), "")
}

// streams returns a handler that sends records and then ends it: "truncated" closes
// the connection, "hang" keeps it open.
func (w Wire) streams(records []string, end string) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", w.Kind)
		for _, record := range records {
			_, _ = io.WriteString(rw, record)
			rw.(http.Flusher).Flush()
		}
		switch end {
		case "truncated":
			panic(http.ErrAbortHandler)
		case "hang":
			<-r.Context().Done()
		}
	}
}

// Respond returns a handler for one response; header holds names and values.
func Respond(status int, kind, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// Events returns the data of the events of a stream, and the error that ends it.
func Events(r io.Reader) (list []string, err error) {
	for e := wire.NewEvents(r); ; {
		data, err := e.Next()
		if err != nil {
			return list, err
		}
		list = append(list, string(data))
	}
}

// JSON encodes a value, for the bodies of responses.
func JSON(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(err)
	}
	return string(raw)
}
