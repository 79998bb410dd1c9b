// Package wire is what the clients of model providers share: one endpoint that
// is called over HTTP, reading its answers whole and as streams under limits,
// and one way to say what went wrong.
package wire

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/model"
)

// Limits of what a server may send.
const (
	MaxAnswer = 64 << 20 // bytes of an answer that is not streamed, and of the text of one that is
	maxEvent  = 16 << 20 // bytes of one event of a stream
	maxFault  = 64 << 10 // bytes of an error body that are read
)

// ErrTooLong says that an answer goes over a limit.
var ErrTooLong = errors.New("the answer is longer than qtype reads")

// Config says which model of which server is called.
type Config struct {
	Info       model.Info     // what the model is; ID goes into errors, Name into requests
	BaseURL    string         // the server's address, without the path of the method
	Key        string         // the credential; empty where there is none
	Credential string         // where the key came from, in a user's words: an auth's id or a variable's name
	Params     map[string]any // inference parameters, sent as they are
	HTTP       *http.Client   // carries the calls; nil means a plain one
}

// Server is one model behind one server. It is safe for concurrent use and changed by nobody.
type Server struct {
	Config
	Base    *url.URL                   // BaseURL, read
	Encoded map[string]json.RawMessage // Params as JSON
	form    Format
	http    *http.Client
}

// Format says what is particular about a wire format.
type Format struct {
	Answers  string   // what an answer is called in errors, such as chat completion
	Example  string   // an address as errors show one
	Reserved []string // names of parameters that qtype itself fills
	Lines    bool     // a stream is one JSON object a line, and not server-sent events
}

// NewServer checks a Config. Nothing is called yet.
func NewServer(c Config, form Format) (*Server, error) {
	base, err := url.Parse(c.BaseURL)
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
		return nil, fmt.Errorf("model %s: base_url must be an http or https address, such as %s", c.Info.ID, form.Example)
	}
	c.Info.Endpoint = httpx.Server(base)
	s := &Server{Config: c, Base: base, form: form, http: &http.Client{}}
	if s.Encoded, err = encode(c.Params, form.Reserved); err != nil {
		return nil, fmt.Errorf("model %s: %w", c.Info.ID, err)
	}
	if c.HTTP != nil {
		*s.http = *c.HTTP
	}
	// A conversation and a key belong to the server that the document names, so
	// they are not carried on to where it points.
	s.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return s, nil
}

// encode writes inference parameters as JSON, once.
func encode(params map[string]any, reserved []string) (map[string]json.RawMessage, error) {
	encoded := make(map[string]json.RawMessage, len(params))
	for _, name := range slices.Sorted(maps.Keys(params)) { // always the same one in the error
		if slices.Contains(reserved, name) {
			return nil, fmt.Errorf("inference_params must not hold %q: qtype sets it", name)
		}
		raw, err := json.Marshal(params[name])
		if err != nil {
			return nil, fmt.Errorf("inference_params: %s cannot be written as JSON", name)
		}
		encoded[name] = raw
	}
	return encoded, nil
}

// Call is one request.
type Call struct {
	URL    string      // where it goes
	Header http.Header // credentials and versions; the content's type is added
	Body   any         // is written as JSON
}

// Ask sends a call and hands the answer, which comes in one piece, to take: that
// says what is wrong with its form. All other errors are complete: an *Error of
// package model, or the context's.
func (s *Server) Ask(ctx context.Context, call Call, take func(raw []byte) error) error {
	return s.ask(ctx, call, func(resp *http.Response) error { return s.whole(ctx, resp, take) })
}

// ask sends a call and lets read have the response of a server that said 200;
// then it hangs up.
func (s *Server) ask(ctx context.Context, call Call, read func(*http.Response) error) error {
	resp, err := s.post(ctx, call) //nolint:bodyclose // drainAndClose closes it
	if err != nil {
		return err
	}
	defer drainAndClose(resp.Body)
	return read(resp)
}

func (s *Server) post(ctx context.Context, call Call) (*http.Response, error) {
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(call.Body); err != nil {
		return nil, s.unwritable(err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, call.URL, &body)
	if err != nil {
		return nil, s.unwritable(err)
	}
	for name, values := range call.Header {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.http.Do(req)
	if err != nil {
		return nil, s.broken(ctx, "cannot reach", err)
	}
	if resp.StatusCode != http.StatusOK {
		defer drainAndClose(resp.Body)
		return nil, s.refusal(resp)
	}
	return resp, nil
}

// whole reads an answer in one piece and hands it to take.
func (s *Server) whole(ctx context.Context, resp *http.Response, take func(raw []byte) error) error {
	raw, err := readAll(resp.Body, MaxAnswer)
	if err != nil {
		return s.broken(ctx, "lost the connection to", err)
	}
	if err := take(raw); err != nil {
		return s.unreadable(resp, raw, err)
	}
	return nil
}

// inOnePiece tells whether a server answers a stream's request with one JSON
// object, as some do, not all of them under JSON's own content type. A stream of
// lines that has one line is none the less a stream.
func (s *Server) inOnePiece(resp *http.Response) bool {
	if s.form.Lines {
		return false
	}
	switch kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind {
	case "application/json":
		return true
	case "text/event-stream":
		return false
	}
	body := bufio.NewReader(resp.Body)
	first, _ := body.Peek(1) // what is wrong with the body is told by whoever reads it
	resp.Body = struct {
		io.Reader
		io.Closer
	}{body, resp.Body}
	return string(first) == "{"
}

// readAll reads a whole body up to limit bytes.
func readAll(r io.Reader, limit int64) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(raw)) > limit {
		return nil, ErrTooLong
	}
	return raw, err
}

// drainAndClose reads what little may be left, so that the connection can be used
// again, and closes. A server that keeps it open has its connection cut.
func drainAndClose(body io.ReadCloser) {
	const grace = 50 * time.Millisecond
	cut := time.AfterFunc(grace, func() { _ = body.Close() })
	defer cut.Stop()
	_, _ = io.CopyN(io.Discard, body, 4<<10)
	_ = body.Close()
}
