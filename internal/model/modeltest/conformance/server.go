// Package conformance is a server on loopback that enforces what the providers of chat models
// enforce. It speaks their protocols, streamed and not, runs scenarios that return reasoning, signatures and other items that
// must come back, and refuses a request that breaks a rule with the error of the provider.
//
// The rules are data, rules.yaml; so are the scenarios, scenarios.yaml. The server has no memory of conversations: what it
// issues names itself, so that another process can check what comes back. Any client can use it, in any language:
// see the program in serve.
package conformance

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"strings"
	"sync"
)

// Handler is the server. Its addresses are /SCENARIO/SERVER/…, such as /tool/openai/v1/responses. It is safe for
// concurrent use.
type Handler struct {
	// Book has the rules; nil means Rules.
	Book *Book

	mu       sync.Mutex
	verdicts []Verdict
}

// Verdict is what the server found in a request.
type Verdict struct {
	// Scenario is the name of the scenario.
	Scenario string
	// Server is the name of the server.
	Server string
	// Wire is the protocol.
	Wire string
	// Path is the path of the address, after the name of the server.
	Path string
	// Model is the name of the model.
	Model string
	// Step is the step of the scenario that was requested.
	Step int
	// Stream is whether the answer was to be streamed.
	Stream bool
	// Status is the HTTP status of the answer.
	Status int
	// Rules are the ids of the rules that the request was checked against.
	Rules []string
	// Violations are the rules that the request breaks.
	Violations []Violation
	// Returned counts the items of former answers of this server in the request that must not change.
	Returned int
	// Issued counts such items of the answer.
	Issued int
	// Changes are the items that did not come back as they were sent, or came to another server, whether a rule forbids it or not.
	Changes []Change
	// Prefix has a digest of the request up to each of its parts: the tools, then the parts in their order, without
	// reasoning. Requests that begin alike have a common beginning.
	Prefix []string
	// Body is the request.
	Body json.RawMessage
}

// Violation is a rule that a request breaks.
type Violation struct {
	// Rule is the id of the rule.
	Rule string
	// Number is its number.
	Number string
	// Text is the error of the provider, or what the server noticed where the provider accepts the request.
	Text string
	// At is the place in the request.
	At string
	// Refused is whether the provider refuses such a request.
	Refused bool
}

// Change is an item that did not come back as it was sent.
type Change struct {
	// Kind is lost, altered, reordered, phase or foreign.
	Kind string
	// Item is the kind of the item, and its name.
	Item string
	// At is the place in the request.
	At string
	// Earlier is whether the item is of an earlier turn.
	Earlier bool
}

// Verdicts returns what was found in the requests so far.
func (h *Handler) Verdicts() []Verdict {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]Verdict{}, h.verdicts...)
}

// Reset forgets the verdicts.
func (h *Handler) Reset() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.verdicts = nil
}

func (h *Handler) book() *Book {
	if h.Book == nil {
		return Rules()
	}
	return h.Book
}

// wireOf returns the protocol of a path; nil for other paths.
func wireOf(rest string) *wireFormat {
	switch {
	case strings.HasSuffix(rest, "/chat/completions"):
		return chatWire()
	case strings.HasSuffix(rest, "/responses"):
		return responsesWire()
	case strings.HasSuffix(rest, "/messages"), strings.HasSuffix(rest, ":rawPredict"), strings.HasSuffix(rest, ":streamRawPredict"):
		return messagesWire()
	case strings.Contains(rest, "/models/") && (strings.HasSuffix(rest, ":generateContent") || strings.HasSuffix(rest, ":streamGenerateContent")):
		return geminiWire()
	case strings.Contains(rest, "/model/") && (strings.HasSuffix(rest, "/converse") || strings.HasSuffix(rest, "/converse-stream")):
		return converseWire()
	case strings.HasSuffix(rest, "/api/chat"):
		return ollamaWire()
	}
	return nil
}

// ServeHTTP answers a request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fields := strings.SplitN(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/", 3)
	if r.URL.Path == "/verdicts" {
		h.list(w, r)
		return
	}
	if len(fields) < 3 {
		http.Error(w, "the address must be /SCENARIO/SERVER/…, such as /tool/openai/v1/responses", http.StatusNotFound)
		return
	}
	scenario, okScenario := lookupScenario(fields[0])
	server, okServer := h.book().server(fields[1])
	if !okScenario || !okServer {
		http.Error(w, fmt.Sprintf("no scenario %q or no server %q", fields[0], fields[1]), http.StatusNotFound)
		return
	}
	rest := "/" + fields[2]
	if r.Method == http.MethodGet {
		h.model(w, rest)
		return
	}
	wire := wireOf(rest)
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64<<20))
	body, errJSON := parseNode(raw)
	switch {
	case wire == nil:
		http.Error(w, "no such path: "+rest, http.StatusNotFound)
		return
	case err != nil || errJSON != nil || !body.isObject():
		http.Error(w, "the body is not a JSON object", http.StatusBadRequest)
		return
	}
	c := &conversation{wire: wire, server: server, path: rest, scenario: scenario, header: r.Header, body: body, origin: server.Name}
	if key := r.Header.Get(server.Account); server.Account != "" && key != "" {
		c.origin += "/" + letters(seal(key), 6)
	}
	h.answer(w, c, raw)
}

// answer checks a request and answers it.
func (h *Handler) answer(w http.ResponseWriter, c *conversation, raw []byte) {
	c.wire.read(c)
	c.reasons = h.book().reasons(c)
	v := Verdict{Scenario: c.scenario.Name, Server: c.server.Name, Wire: c.wire.name, Path: c.path, Model: c.model, Step: c.stepIndex(), Stream: c.stream, Status: http.StatusOK, Body: raw}
	refusal, text := Refusal{}, ""
	for i := range h.book().Rules {
		rule := &h.book().Rules[i]
		if rule.Check.Name == "" || !rule.matches(c) {
			continue
		}
		v.Rules = append(v.Rules, rule.ID)
		for _, b := range checks()[rule.Check.Name](c, rule.Check) {
			f := Violation{Rule: rule.ID, Number: rule.Number, Text: rule.text(b, c), At: b.at, Refused: rule.Refusal.Status != 0}
			v.Violations = append(v.Violations, f)
			if f.Refused && text == "" {
				refusal, text, v.Status = rule.Refusal, f.Text, rule.Refusal.Status
				refusal.Param = b.fill(refusal.Param, c)
			}
		}
	}
	v.Returned, v.Changes = c.changes()
	v.Prefix = c.prefixes()
	a := newAnswer(c)
	if text == "" {
		v.Issued = a.opaque(c)
	}
	h.mu.Lock()
	h.verdicts = append(h.verdicts, v)
	h.mu.Unlock()
	if text == "" {
		c.wire.write(w, c, a)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if c.wire.name == "converse" {
		w.Header().Set("X-Amzn-Errortype", "ValidationException")
	}
	w.WriteHeader(refusal.Status)
	_, _ = w.Write(encode(c.wire.refusal(c, refusal, text))) // a client that has gone needs no answer
}

// text returns the error of a rule.
func (r *Rule) text(b breach, c *conversation) string {
	values := make([]string, len(r.Check.Values))
	for i, v := range r.Check.Values {
		values[i] = "'" + v + "'"
	}
	return strings.ReplaceAll(b.fill(r.Refusal.Text, c), "{values}", strings.Join(values, ", "))
}

// model answers GET /models/{id}, and lists the models.
func (h *Handler) model(w http.ResponseWriter, rest string) {
	entry := func(m Model) object {
		return object{"id": m.ID, "object": "model", "created": 1780000000, "owned_by": "provider", "shutdown_date": optional(m.ShutdownDate)}
	}
	w.Header().Set("Content-Type", "application/json")
	if strings.HasSuffix(rest, "/models") {
		list := array{}
		for _, m := range h.book().Models {
			list = append(list, entry(m))
		}
		_, _ = w.Write(encode(object{"object": "list", "data": list}))
		return
	}
	id, _ := url.PathUnescape(path.Base(rest)) // what cannot be unescaped is unknown
	for _, m := range h.book().Models {
		if m.ID == id {
			_, _ = w.Write(encode(entry(m)))
			return
		}
	}
	w.WriteHeader(http.StatusNotFound)
	_, _ = w.Write(encode(object{"error": object{"message": fmt.Sprintf("The model `%s` does not exist or you do not have access to it.", id), "type": "invalid_request_error", "param": nil, "code": "model_not_found"}}))
}

// list answers GET /verdicts, and forgets them after DELETE.
func (h *Handler) list(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodDelete {
		h.Reset()
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(encode(h.Verdicts()))
}

// TB is the part of a test that New needs.
type TB interface {
	Helper()
	Cleanup(func())
}

// Running is a Handler that listens on loopback.
type Running struct {
	*Handler
	// URL is the address of the server, without a path.
	URL string
}

// New starts a server that is closed at the end of the test.
func New(t TB) *Running {
	t.Helper()
	h := &Handler{}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return &Running{Handler: h, URL: s.URL}
}

// Scenario returns the servers for a scenario.
func (r *Running) Scenario(name string) Endpoint {
	return Endpoint{url: r.URL, scenario: name, book: r.book()}
}

// Endpoint is a scenario at a server.
type Endpoint struct {
	url, scenario string
	book          *Book
}

// BaseURL returns the base URL for a client of a provider, such as openai or deepseek.
func (s Endpoint) BaseURL(server string) string {
	at, _ := s.book.server(server)
	return s.url + "/" + s.scenario + "/" + server + at.Base
}

// Address returns the base URL of the service of a provider, for the HTTP client of Client; that of BaseURL if the
// provider has no fixed one.
func (s Endpoint) Address(server string) string {
	at, _ := s.book.server(server)
	if len(at.Hosts) != 1 || strings.ContainsAny(at.Hosts[0], "*:") {
		return s.BaseURL(server)
	}
	return "https://" + at.Hosts[0] + at.Base
}

// Client returns an HTTP client for which the server is all providers: it calls it in place of the providers'
// own hosts, and nothing else.
func (s Endpoint) Client() *http.Client { return &http.Client{Transport: s} }

// RoundTrip sends a request for the host of a provider to the server.
func (s Endpoint) RoundTrip(req *http.Request) (*http.Response, error) {
	to, err := url.Parse(s.url)
	if err != nil {
		return nil, err
	}
	out := req.Clone(req.Context())
	if req.URL.Host != to.Host {
		name, ok := s.book.serverOf(req.URL.Host)
		if !ok {
			return nil, fmt.Errorf("no server simulates %s", req.URL.Host)
		}
		prefix := "/" + s.scenario + "/" + name
		if out.URL.RawPath != "" {
			out.URL.RawPath = prefix + out.URL.RawPath
		}
		out.URL.Path = prefix + out.URL.Path
		out.URL.Scheme, out.URL.Host, out.Host = to.Scheme, to.Host, to.Host
	}
	return http.DefaultTransport.RoundTrip(out)
}

// serverOf returns the server that simulates a host.
func (b *Book) serverOf(host string) (string, bool) {
	for _, s := range b.Servers {
		for _, pattern := range s.Hosts {
			if ok, err := path.Match(pattern, host); ok && err == nil {
				return s.Name, true
			}
		}
	}
	return "", false
}
