package recording

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/internal/recording/calls"
)

// maxBody is the maximum size of a body that is recorded, in bytes.
const maxBody = 64 << 20

// idleConnections is how many idle connections to one server are kept.
const idleConnections = 8

// shownHeaders returns the headers of responses that are recorded. Others may have
// credentials, or differ in each response.
func shownHeaders() []string {
	return []string{"Content-Disposition", "Content-Type", "Etag", "Last-Modified", "Link", "Location", "Retry-After"}
}

// httpRequest is a request to a server as it is recorded: without headers, which have
// credentials.
type httpRequest struct {
	Method string    `json:"method"`
	URL    string    `json:"url"`
	Body   *httpBody `json:"body,omitempty"`
}

// httpResponse is the response of a server as it is recorded.
type httpResponse struct {
	Status int               `json:"status,omitempty"`
	Header map[string]string `json:"header,omitempty"`
	Body   *httpBody         `json:"body,omitempty"`
	Error  string            `json:"error,omitempty"` // why there was no response
}

// httpBody is a body in the most readable form.
type httpBody struct {
	JSON   json.RawMessage     `json:"json,omitempty"`
	Form   map[string][]string `json:"form,omitempty"`
	Text   string              `json:"text,omitempty"`
	Base64 string              `json:"base64,omitempty"`
}

// Transport records the requests of an HTTP client, or replays them. Use it with
// Session.Client.
type Transport struct {
	session *Session
	next    http.RoundTripper // nil in a replay
}

// Client returns an HTTP client whose requests are recorded or replayed.
func (s *Session) Client() *http.Client {
	t := &Transport{session: s}
	if !s.Replays() {
		t.next = httpx.Transport(idleConnections)
	}
	return &http.Client{Transport: t}
}

// Over returns the transport with another one that sends the requests, such as one that
// checks addresses. In a replay nothing is sent.
func (t *Transport) Over(next http.RoundTripper) http.RoundTripper {
	if t.session.Replays() {
		return t
	}
	return &Transport{session: t.session, next: next}
}

// CloseIdleConnections closes the idle connections of what sends the requests.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// RoundTrip replays the response, or sends the request and records it.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := readBody(req)
	if err != nil {
		return nil, err
	}
	shown := httpRequest{Method: req.Method, URL: t.session.address(req.URL), Body: t.session.body(req.Header.Get("Content-Type"), body)}
	answer, err := exchange(t.session, kindHTTP, req.URL.Host, shown, func() (*httpResponse, error) {
		resp, err := t.next.RoundTrip(req)
		if err != nil {
			if req.Context().Err() != nil {
				return nil, err
			}
			return &httpResponse{Error: httpx.Reason(err)}, nil
		}
		return t.session.response(resp)
	})
	if err != nil {
		return nil, err
	}
	return answer.http(req)
}

// readBody reads the body of a request, which can be sent afterwards.
func readBody(req *http.Request) ([]byte, error) {
	if req.Body == nil {
		return nil, nil
	}
	raw, err := io.ReadAll(io.LimitReader(req.Body, maxBody+1))
	err = errors.Join(err, req.Body.Close())
	if err == nil && len(raw) > maxBody {
		err = fmt.Errorf("a body of more than %d MiB cannot be recorded", maxBody>>20)
	}
	req.Body = io.NopCloser(bytes.NewReader(raw))
	return raw, err
}

// address returns a URL without credentials, with its parameters in order.
func (s *Session) address(u *url.URL) string {
	shown := *u
	shown.User, shown.Fragment = nil, ""
	query := shown.Query()
	s.maskValues(query)
	shown.RawQuery = strings.ReplaceAll(query.Encode(), url.QueryEscape(mask), mask)
	return shown.String()
}

// maskValues replaces the values that are secrets.
func (s *Session) maskValues(all url.Values) {
	for _, values := range all {
		for i, v := range values {
			if s.isSecret(v) {
				values[i] = mask
			}
		}
	}
}

// body returns a body in the most readable form; nil for none.
func (s *Session) body(contentType string, raw []byte) *httpBody {
	if len(raw) == 0 {
		return nil
	}
	kind, params, _ := mime.ParseMediaType(contentType)
	switch {
	case kind == "application/x-www-form-urlencoded":
		if form, err := url.ParseQuery(string(raw)); err == nil {
			s.maskValues(form)
			return &httpBody{Form: form}
		}
	case strings.HasPrefix(kind, "multipart/") && params["boundary"] != "": // random
		raw = bytes.ReplaceAll(raw, []byte(params["boundary"]), []byte("boundary"))
	case kind == "application/json" || strings.HasSuffix(kind, "+json"):
		if json.Valid(raw) {
			return &httpBody{JSON: calls.Compact(raw)}
		}
	}
	if utf8.Valid(raw) {
		return &httpBody{Text: string(raw)}
	}
	return &httpBody{Base64: base64.StdEncoding.EncodeToString(raw)}
}

// response reads a response.
func (s *Session) response(resp *http.Response) (*httpResponse, error) {
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	err = errors.Join(err, resp.Body.Close())
	switch {
	case err != nil:
		return nil, err
	case len(raw) > maxBody:
		return nil, fmt.Errorf("a response of more than %d MiB cannot be recorded", maxBody>>20)
	}
	r := &httpResponse{Status: resp.StatusCode, Body: s.body(resp.Header.Get("Content-Type"), raw)}
	for name := range resp.Header {
		if slices.Contains(shownHeaders(), name) {
			if r.Header == nil {
				r.Header = map[string]string{}
			}
			r.Header[name] = resp.Header.Get(name)
		}
	}
	return r, nil
}

// http returns the response to a request.
func (r *httpResponse) http(req *http.Request) (*http.Response, error) {
	if r.Error != "" {
		return nil, errors.New(r.Error)
	}
	raw, err := r.Body.bytes()
	if err != nil {
		return nil, err
	}
	resp := &http.Response{StatusCode: r.Status, Status: fmt.Sprintf("%d %s", r.Status, http.StatusText(r.Status)), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(raw)), ContentLength: int64(len(raw)), Request: req}
	for name, v := range r.Header {
		resp.Header.Set(name, v)
	}
	return resp, nil
}

func (b *httpBody) bytes() ([]byte, error) {
	switch {
	case b == nil:
		return nil, nil
	case b.JSON != nil:
		return calls.Compact(b.JSON), nil
	case b.Form != nil:
		return []byte(url.Values(b.Form).Encode()), nil
	case b.Base64 != "":
		return base64.StdEncoding.DecodeString(b.Base64)
	}
	return []byte(b.Text), nil
}

// decodeNumbers decodes JSON with numbers as json.Number.
func decodeNumbers(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	return v, err
}
