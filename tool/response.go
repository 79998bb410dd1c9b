package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/internal/httpx"
)

// Limits of a response.
const (
	maxAnswer  = 32 << 20 // bytes of a body
	maxExcerpt = 300      // characters of an error's body in a message
)

// response is what a server answered.
type response struct {
	value  any         // the result
	header http.Header // the headers
	size   int         // bytes of the body
}

// read returns the result of a response.
func (a *api) read(ctx context.Context, u *url.URL, resp *http.Response) (*response, error) {
	e := &Error{Tool: a.info.ID, Method: a.method, URL: httpx.Server(u)}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case resp.StatusCode >= 300:
		e.Status, e.RetryAfter = resp.StatusCode, httpx.RetryAfter(resp.Header, time.Now())
		e.Message, e.Temporary = a.excerpt(resp, raw), busy(resp.StatusCode)
		return nil, e
	case err != nil:
		return nil, a.networkError(ctx, u, err)
	case httpx.ForeignCoding(resp.Header) != "":
		e.Message = fmt.Sprintf("the answer has the content coding %s, which was not requested", httpx.ForeignCoding(resp.Header))
		return nil, e
	case len(raw) > maxAnswer:
		e.Message = fmt.Sprintf("the answer is longer than %d MiB", maxAnswer>>20)
		return nil, e
	}
	got := &response{value: raw, header: resp.Header, size: len(raw)}
	if a.download && len(raw) > 0 {
		return got, nil
	}
	if got.value, err = decode(resp.Header.Get("Content-Type"), raw); err != nil {
		e.Message = err.Error()
		return nil, e
	}
	return got, nil
}

// excerpt returns the start of an error's body, without the tool's credentials, which
// some servers echo.
func (a *api) excerpt(resp *http.Response, raw []byte) string {
	text := string(raw[:min(len(raw), 16<<10)])
	for name, values := range a.headers {
		if isSensitiveHeader(name) {
			text = httpx.Scrub(text, strings.Join(values, ""))
		}
	}
	text = httpx.Excerpt(a.auth.redact(text), maxExcerpt)
	status := http.StatusText(resp.StatusCode)
	switch {
	case text == "":
		return status
	case resp.StatusCode == http.StatusUnauthorized && a.auth.name != "":
		return fmt.Sprintf("the server rejected auth %s: %s", a.auth.name, text)
	}
	return text
}

// isSensitiveHeader reports whether the name of a header suggests that its value is a credential.
func isSensitiveHeader(name string) bool {
	name = strings.ToLower(name)
	for _, word := range []string{"auth", "cookie", "key", "secret", "token"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

// decode converts a body to a value: an empty one to null, JSON of any media type to its
// value, other text to text and other bytes to bytes. text/plain is parsed as JSON only if
// it is an object or a list: a server that sends 007 as text does not mean a number.
func decode(contentType string, raw []byte) (any, error) {
	trimmed := bytes.TrimSpace(bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf")))
	if len(trimmed) == 0 {
		if len(raw) == 0 {
			return nil, nil
		}
		return string(raw), nil
	}
	kind, _, _ := mime.ParseMediaType(contentType)
	isJSON := kind == "application/json" || strings.HasSuffix(kind, "+json")
	if isJSON || !strings.HasPrefix(kind, "text/") || trimmed[0] == '{' || trimmed[0] == '[' {
		value, err := parseJSON(trimmed)
		switch {
		case err == nil:
			return value, nil
		case isJSON:
			return nil, fmt.Errorf("the answer has the type %s but is not JSON: %s", kind, httpx.SingleLine(string(raw[:min(len(raw), 1<<10)]), 80))
		}
	}
	if !utf8.Valid(raw) {
		return raw, nil
	}
	return string(raw), nil
}

// parseJSON parses one value and keeps the text of numbers.
func parseJSON(raw []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var value any
	if err := dec.Decode(&value); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one value")
	}
	return value, nil
}
