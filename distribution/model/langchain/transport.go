package langchain

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"time"

	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/model"
)

// tailSize is how much of the end of an answer is buffered: the closing record of a
// stream, or the body of an error.
const tailSize = 64 << 10

// record is what the transport observed of one call.
type record struct {
	status int           // 0 without a response
	after  time.Duration // how long the server requests to wait
	tail   []byte        // the last bytes of the answer
	broken error         // why the connection failed
}

type recordKey struct{}

// fixTransport returns an HTTP client whose transport corrects the requests of
// langchaingo and records what it discards of the responses.
func fixTransport(c Config, cl client) *http.Client {
	carrier := *c.HTTP
	next := carrier.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	carrier.Transport = &transport{next: next, config: c, rewrite: cl.rewrite}
	carrier.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &carrier
}

type transport struct {
	next    http.RoundTripper
	config  Config
	rewrite func(body, params map[string]any)
}

// RoundTrip sends the request with the document's parameters.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	rec, _ := req.Context().Value(recordKey{}).(*record)
	if rec == nil {
		rec = &record{}
	}
	req, err := t.fixRequest(req)
	if err != nil {
		return nil, err
	}
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		rec.broken = err
		return nil, err
	}
	rec.status, rec.after = resp.StatusCode, httpx.RetryAfter(resp.Header, time.Now())
	resp.Body = &tailReader{ReadCloser: resp.Body, rec: rec}
	return resp, nil
}

// fixRequest rewrites the JSON body.
func (t *transport) fixRequest(req *http.Request) (*http.Request, error) {
	if t.rewrite == nil || req.Body == nil {
		return req, nil
	}
	raw, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	var body map[string]any
	if err := json.Unmarshal(raw, &body); err != nil {
		return nil, err
	}
	t.rewrite(body, t.config.Params)
	if raw, err = json.Marshal(body); err != nil {
		return nil, err
	}
	req = req.Clone(req.Context())
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(raw)), int64(len(raw))
	req.GetBody = nil
	if t.config.Key != "" {
		req.Header.Set("Authorization", "Bearer "+t.config.Key)
	}
	return req, nil
}

// tailReader buffers the end of what is read.
type tailReader struct {
	io.ReadCloser
	rec *record
}

func (w *tailReader) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	w.rec.tail = append(w.rec.tail, p[:n]...)
	if over := len(w.rec.tail) - tailSize; over > tailSize { // rarely, so that each byte is moved once
		w.rec.tail = append(w.rec.tail[:0], w.rec.tail[over:]...)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		w.rec.broken = err
	}
	return n, err
}

// failure converts an error of a call.
func (m *Model) failure(ctx context.Context, rec *record, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if rec.status == 0 {
		rec.status, err = statusIn(err)
	}
	e := m.newError(httpx.Scrub(httpx.SingleLine(err.Error(), 400), m.config.Key))
	e.RetryAfter = rec.after
	var network *url.Error
	var syntax *json.SyntaxError
	var shape *json.UnmarshalTypeError
	switch {
	case rec.status >= 300:
		e.Status = rec.status
		e.Message = httpx.Scrub(bodyMessage(rec, err), m.config.Key)
		e.Temporary = e.Status == 408 || e.Status == 409 || e.Status == 429 || e.Status >= 500
	case rec.broken != nil || errors.As(err, &network):
		cause := cmp.Or(rec.broken, err)
		e.Err, e.Temporary = cause, true
		what := "cannot reach"
		if rec.status != 0 {
			what = "lost the connection to"
		}
		e.Message = fmt.Sprintf("%s %s: %s", what, m.server, httpx.Reason(cause))
	case errors.Is(err, errTruncated):
		e.Temporary = true
	case errors.As(err, &syntax), errors.As(err, &shape):
		e.Message = "the response does not follow the protocol; check base_url"
	}
	if e.Status == http.StatusUnauthorized && m.config.Credential != "" {
		e.Message = fmt.Sprintf("the server rejected the credential %s: %s", m.config.Credential, e.Message)
	}
	return e
}

// statusIn finds the status in the text of an error, the only place where the Mistral
// client reports it.
func statusIn(err error) (int, error) {
	found := regexp.MustCompile(`(?s)\(HTTP Error (\d{3})\) (.*)`).FindStringSubmatch(err.Error())
	if found == nil {
		return 0, err
	}
	status, _ := strconv.Atoi(found[1]) // three digits
	return status, errors.New(found[2])
}

// bodyMessage returns the server's error message.
func bodyMessage(rec *record, err error) string {
	raw := rec.tail
	if len(raw) == 0 {
		raw = []byte(err.Error())
	}
	text := string(raw)
	if f, ok := wire.ParseAPIError(raw); ok && f.Message != "" {
		text = f.Message
	}
	if httpx.IsPage(text) {
		return wire.PageMessage(rec.status, httpx.Excerpt(text, 400))
	}
	return httpx.Excerpt(text, 400)
}

var _ model.Chat = (*Model)(nil)
