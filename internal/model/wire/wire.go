// Package wire is what the clients of model providers share: HTTP calls to one endpoint,
// responses and streams within limits, and one set of errors.
package wire

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/internal/modelparams"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
)

// Limits of a response.
const (
	MaxAnswer    = 64 << 20 // bytes of a response that is not streamed, and of the text of one that is
	maxEvent     = 16 << 20 // bytes of one event of a stream
	maxErrorBody = 64 << 10 // bytes that are read of an error
)

// ErrTooLong reports a response that exceeds a limit.
var ErrTooLong = errors.New("the response is too long")

// Config is the model and the server to call.
type Config struct {
	Info       model.Info         // describes the model; ID is used in errors, Name in requests
	BaseURL    string             // the server's address, without the path of the method
	BaseURLEnv string             // the environment variable that BaseURL is from, for error messages; empty for the document
	Key        string             // empty for none
	Credential string             // source of the key for error messages: id of an auth or name of a variable
	Params     map[string]any     // inference parameters, sent unchanged
	Headers    http.Header        // that the document adds to each request; nil for none
	HTTP       *http.Client       // carries the calls; nil means http.DefaultTransport
	Account    Account            // where the model is in a cloud; zero for others
	Own        bool               // the server is the provider's own, with all of its protocol; other servers have less
	Batched    bool               // calls are made in batches, whose answers are not streamed
	NoCache    bool               // requests do not ask the provider to cache prompts
	Files      *remotefs.Client   // opens the bucket of batches; nil without one
	Bucket     *remotefs.Identity // that uses the bucket of batches; nil for that of the environment
	Idle       time.Duration      // how long a request about batches waits for the server; 0 for two minutes

	// Authorize adds credentials that a request cannot have as a fixed Key: a signature, or a
	// token that expires. Its errors are one line without secrets. Nil for none.
	Authorize func(req *http.Request, body []byte) error
}

// Account is where a model is in a cloud.
type Account struct {
	Project string // the project that pays for calls
	Region  string // where the model runs
}

// Server is one model of one server. It is immutable and safe for concurrent use.
type Server struct {
	Config
	Base    *url.URL                   // the parsed BaseURL
	Encoded map[string]json.RawMessage // Params as JSON
	form    Format
	http    *http.Client
}

// Format describes a wire format.
type Format struct {
	Answers string               // what a response is called in errors, such as chat completion
	Example string               // a base URL for error messages
	Params  modelparams.Protocol // decides which parameters a request can have
	Lines   bool                 // whether a stream is one JSON object per line instead of server-sent events
	Turns   TurnRules            // the order of messages
	Forbids bool                 // a request can have tools and forbid to call them

	Records func(io.Reader) RecordReader // reads a stream of another format; nil for server-sent events or lines
}

// NewServer checks a Config. It calls nothing.
func NewServer(c Config, form Format) (*Server, error) {
	base, err := url.Parse(c.BaseURL)
	if err != nil || !spec.IsHTTPAddress(c.BaseURL) {
		return nil, fmt.Errorf("model %s: %s must be an http or https address, such as %s", c.Info.ID, cmp.Or(c.BaseURLEnv, "base_url"), form.Example)
	}
	c.Info.Endpoint = httpx.Server(base)
	s := &Server{Config: c, Base: base, form: form, http: &http.Client{}}
	if s.Encoded, err = form.Params.Encode(c.Params); err != nil {
		return nil, fmt.Errorf("model %s: %w", c.Info.ID, err)
	}
	if c.HTTP != nil {
		*s.http = *c.HTTP
	}
	// Conversations and keys are sent only to the server that the document names, so
	// redirects are not followed.
	s.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return s, nil
}

// Call is one request.
type Call struct {
	URL    string      // the URL of the method
	Header http.Header // credentials and versions; Content-Type is added
	Body   any         // is encoded as JSON

	Answer   ResponseReader    // reads the response to a request with special features; nil for that of the protocol
	Received func(http.Header) // gets the headers of a successful response; nil for none
	Dropped  string            // what of the document the request does not have, and why; empty for nothing
}

// Ask sends a call and passes the body of the response to take, which reports what is wrong
// with its form. All other errors are complete: an *Error of package model, or the
// context's.
func (s *Server) Ask(ctx context.Context, call Call, take func(raw []byte) error) error {
	return s.ask(ctx, call, func(resp *http.Response) error { return s.whole(ctx, resp, take) })
}

// ask sends a call and passes a successful response to read, then closes it.
func (s *Server) ask(ctx context.Context, call Call, read func(*http.Response) error) error {
	resp, err := s.post(ctx, call)
	if err != nil {
		return err
	}
	defer func() { drainAndClose(resp.Body) }() // read replaces a body that it has read to its end
	if call.Received != nil {
		call.Received(resp.Header)
	}
	return read(resp)
}

// encodeBody writes the body of a request. The members of a map are in the order of their names, as package json
// writes them. Messages that are encoded are written as they are: package json would read each of them again.
func encodeBody(b *bytes.Buffer, body any) error {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	members, ok := body.(map[string]any)
	if !ok {
		return enc.Encode(body)
	}
	b.WriteByte('{')
	for i, name := range slices.Sorted(maps.Keys(members)) {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := enc.Encode(name); err != nil {
			return err
		}
		b.Bytes()[b.Len()-1] = ':' // in place of the line end of Encode
		if messages, ok := members[name].([]json.RawMessage); ok && len(messages) > 0 {
			writeArray(b, messages)
			continue
		}
		if err := enc.Encode(members[name]); err != nil {
			return err
		}
		b.Truncate(b.Len() - 1)
	}
	b.WriteByte('}')
	return nil
}

// writeArray writes an array of encoded elements.
func writeArray(b *bytes.Buffer, elements []json.RawMessage) {
	size := len(elements) + 1
	for _, one := range elements {
		size += len(one)
	}
	b.Grow(size)
	b.WriteByte('[')
	for i, one := range elements {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(one)
	}
	b.WriteByte(']')
}

func (s *Server) post(ctx context.Context, call Call) (*http.Response, error) {
	var body bytes.Buffer
	if err := encodeBody(&body, call.Body); err != nil {
		return nil, s.requestError(err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, call.URL, &body)
	if err != nil {
		return nil, s.requestError(err)
	}
	for name, values := range call.Header {
		req.Header[name] = values
	}
	values := [...]string{"application/json", httpx.UserAgent()}
	req.Header["Content-Type"] = values[:1:1] // Set allocates a slice for each
	if s.addHeaders(req.Header); req.Header["User-Agent"] == nil {
		req.Header["User-Agent"] = values[1:]
	}
	if s.Authorize != nil {
		if err := s.Authorize(req, body.Bytes()); err != nil {
			return nil, s.authorizationError(ctx, err)
		}
	}
	resp, err := s.http.Do(req)
	if err != nil {
		return nil, s.connectionError(ctx, "cannot reach", err)
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		defer drainAndClose(resp.Body)
		return nil, s.statusError(resp)
	}
	if coding := httpx.ForeignCoding(resp.Header); coding != "" {
		defer drainAndClose(resp.Body)
		return nil, s.newError(fmt.Sprintf("the response has the content coding %s, which was not requested", coding))
	}
	return resp, nil
}

// addHeaders adds the headers of the document. A list that the client sends, too, such as
// anthropic-beta, has the entries of both.
func (s *Server) addHeaders(to http.Header) {
	for name, values := range s.Headers {
		for _, value := range values {
			if given := to.Get(name); given != "" && given != value {
				value = given + "," + value
			}
			to[name] = []string{value}
		}
	}
}

// whole reads a response that is not streamed.
func (s *Server) whole(ctx context.Context, resp *http.Response, take func(raw []byte) error) error {
	raw, err := readAll(resp.Body, MaxAnswer, resp.ContentLength)
	if err != nil {
		return s.connectionError(ctx, "lost the connection to", err)
	}
	_ = resp.Body.Close()
	resp.Body = http.NoBody
	if err := take(raw); err != nil {
		return s.responseError(resp, raw, err)
	}
	return nil
}

// inOnePiece reports whether a server answers a request for a stream with one JSON object,
// as some do, not all of them with JSON's media type. It is never true for a stream of
// lines, which may have one line.
func (s *Server) inOnePiece(resp *http.Response) bool {
	if s.form.Lines {
		return false
	}
	switch mediaTypeOf(resp) {
	case "application/json":
		return true
	case "text/event-stream", "application/vnd.amazon.eventstream":
		return false
	}
	return beginsWithBrace(resp)
}

// mediaTypeOf returns the media type of a body in lower case, without its parameters.
func mediaTypeOf(resp *http.Response) string {
	kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(kind))
}

// beginsWithBrace reports whether a body begins as a JSON object.
func beginsWithBrace(resp *http.Response) bool {
	body := bufio.NewReader(resp.Body)
	first, _ := body.Peek(1) // the reader of the body will get the same error
	resp.Body = struct {
		io.Reader
		io.Closer
	}{body, resp.Body}
	return string(first) == "{"
}

// readAll reads a body of at most limit bytes. announced is its length, -1 if it is unknown.
func readAll(r io.Reader, limit, announced int64) ([]byte, error) {
	const most = 1 << 20 // a server may announce more than it sends
	var body bytes.Buffer
	body.Grow(int(min(max(announced, 0), most)) + bytes.MinRead)
	_, err := body.ReadFrom(io.LimitReader(r, limit+1))
	if err == nil && int64(body.Len()) > limit {
		return nil, ErrTooLong
	}
	return body.Bytes(), err
}

// drainAndClose reads a small rest of the body, so that the connection can be reused, and
// closes it. If the server keeps the body open, the connection is closed.
func drainAndClose(body io.ReadCloser) {
	if body == http.NoBody {
		return // a timer would cost more than the rest
	}
	const grace = 50 * time.Millisecond
	cut := time.AfterFunc(grace, func() { _ = body.Close() })
	defer cut.Stop()
	_, _ = io.CopyN(io.Discard, body, 4<<10)
	_ = body.Close()
}

// versionPattern matches the versions of protocols in URLs: v1, v1beta, v1alpha1.
var versionPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^v[0-9]+((alpha|beta)[0-9]*)?$`) })

// IsVersion reports whether a segment of a path is the version of a protocol, so that a
// base URL may contain it or not.
func IsVersion(segment string) bool { return versionPattern().MatchString(segment) }

// TextList converts a single text, such as that of the parameter stop, to a list.
func TextList(raw json.RawMessage) json.RawMessage {
	if strings.HasPrefix(string(raw), "[") {
		return raw
	}
	return slices.Concat(json.RawMessage("["), raw, json.RawMessage("]"))
}

// Camel converts top_p to topP.
func Camel(name string) string {
	var b strings.Builder
	up := false
	for _, r := range name {
		switch {
		case r == '_':
			up = b.Len() > 0
			continue
		case up:
			r, up = unicode.ToUpper(r), false
		}
		b.WriteRune(r)
	}
	return b.String()
}

// opaqueWords returns the words of messages that give no reason: "Bad Request", "Provider
// returned error", "Request contains an invalid argument."
var opaqueWords = sync.OnceValue(func() map[string]bool {
	words := map[string]bool{}
	for _, word := range strings.Fields(`a an and api argument bad been by code contains error exception failed for from has http
		invalid is occurred of provider rejected request returned server status the this unknown upstream was with your 400`) {
		words[word] = true
	}
	return words
})

// opaqueCodes are the codes of any rejected request, in lower case and without marks.
var opaqueCodes = map[string]bool{
	"":                      true,
	"400":                   true,
	"badrequest":            true,
	"badrequesterror":       true,
	"badresponsestatuscode": true, // gateways
	"invalidargument":       true, // Google
	"invalidrequest":        true,
	"invalidrequesterror":   true, // OpenAI, Anthropic
	"validationexception":   true, // AWS
}

// opaque reports whether an error gives no reason: no parameter, no code of its own, and no
// word that says more than that the request was rejected.
func (f APIError) opaque() bool {
	words := func(text string) []string {
		return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	}
	if hasValue(f.Param) || hasValue(f.Details) || !opaqueCodes[strings.Join(words(f.code()), "")] {
		return false
	}
	for _, word := range words(f.Message) {
		if !opaqueWords()[word] {
			return false
		}
	}
	return true
}

// hasValue reports whether a field of JSON is not empty.
func hasValue(raw json.RawMessage) bool {
	switch string(raw) {
	case "", "null", `""`, "[]", "{}":
		return false
	}
	return true
}
