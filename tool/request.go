package tool

import (
	"bytes"
	"context"
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
	"time"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// request is what a call sends.
type request struct {
	url         *url.URL
	header      http.Header // of arguments
	body        []byte
	contentType string // of the body; empty for none
}

// name returns the name by which the server knows an argument.
func (a *api) name(v *spec.Variable) string { return a.declared.ArgumentName(v) }

// request returns the request of a call. Optional fields of records that are null are
// left out.
func (a *api) request(args map[string]any) (*request, error) {
	for _, v := range a.info.Inputs {
		if given, ok := args[v.ID]; ok {
			args[v.ID] = withoutUnset(v.Type, given)
		}
	}
	u, err := a.address(args)
	if err != nil {
		return nil, err
	}
	r := &request{url: u, header: http.Header{}}
	for _, v := range a.declared.HeaderParameters {
		written, err := texts(args[v.ID])
		value := strings.Join(written, ",")
		switch {
		case err != nil:
			return nil, &pathArgumentError{v.ID, err.Error()}
		case len(written) == 0:
			continue
		case !isSendable(a.name(v), value):
			return nil, &pathArgumentError{v.ID, "contains a character that is not allowed in a header"}
		}
		r.header.Set(a.name(v), value)
	}
	r.body, r.contentType, err = a.payload(args)
	return r, err
}

// withoutUnset returns a value without the optional fields of records that are null.
func withoutUnset(t spec.Type, v any) any {
	if record, ok := v.(*value.Record); ok {
		v = value.ToGo(record)
	}
	switch v := v.(type) {
	case []any:
		if t.Elem == nil {
			return v
		}
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = withoutUnset(*t.Elem, item)
		}
		return out
	case map[string]any:
		if t.Custom == nil {
			return v
		}
		out := map[string]any{}
		for name, field := range v {
			out[name] = field
		}
		for _, p := range t.Custom.Properties {
			field, given := out[p.Name]
			switch {
			case given && field == nil && p.Type.Optional:
				delete(out, p.Name)
			case given:
				out[p.Name] = withoutUnset(p.Type, field)
			}
		}
		return out
	}
	return v
}

// address returns the URL of a call, with the arguments of the path and the query.
func (a *api) address(args map[string]any) (*url.URL, error) {
	u, err := a.endpoint.fill(func(name string) (string, error) {
		written, err := texts(args[name])
		if err != nil {
			return "", &pathArgumentError{name, err.Error()}
		}
		return strings.Join(written, ","), nil
	})
	if err != nil {
		return nil, err
	}
	query := url.Values{}
	for _, v := range a.query {
		pairs, err := a.formPairs(a.name(v), args[v.ID])
		if err != nil {
			return nil, &pathArgumentError{v.ID, err.Error()}
		}
		for _, p := range pairs {
			query.Add(p.name, p.text)
		}
	}
	if len(query) > 0 {
		if u.RawQuery != "" {
			u.RawQuery += "&"
		}
		u.RawQuery += query.Encode()
	}
	return u, nil
}

// payload returns the body of a call and its type. Both are empty for a method without a
// body, and if the optional input that is the whole body is not given.
func (a *api) payload(args map[string]any) (body []byte, contentType string, err error) {
	if !a.hasBody {
		return nil, "", nil
	}
	whole, given := args[a.declared.Body]
	switch {
	case a.declared.Body != "" && !given:
		return nil, "", nil
	case a.declared.BodyFormat == spec.BodyForm:
		body, err = a.formBody(args)
		return body, "application/x-www-form-urlencoded", err
	case a.declared.BodyFormat == spec.BodyMultipart:
		return a.multipartBody(args)
	case a.declared.BodyFormat == spec.BodyRaw:
		return a.rawBody(whole)
	case a.declared.Body == "":
		fields := map[string]any{}
		for _, v := range a.body {
			if value, ok := args[v.ID]; ok {
				fields[a.name(v)] = value
			}
		}
		whole = fields
	}
	if body, err = writeJSON(whole); err != nil {
		return nil, "", &pathArgumentError{strings.Join(ids(a.body), ", "), err.Error()}
	}
	return body, "application/json", nil
}

// rawBody returns the text or the bytes of an argument as the body.
func (a *api) rawBody(whole any) ([]byte, string, error) {
	v := a.body[0]
	if v.Type.IsMedia() {
		raw, err := fileBytes(whole)
		return raw, "application/octet-stream", a.inArgument(v, err)
	}
	written, err := text(whole)
	return []byte(written), "text/plain; charset=utf-8", a.inArgument(v, err)
}

// inArgument adds the argument to an error, nil for none.
func (a *api) inArgument(v *spec.Variable, err error) error {
	if err == nil {
		return nil
	}
	return &pathArgumentError{v.ID, err.Error()}
}

// fileBytes returns the content of a file. Models write it as base64.
func fileBytes(v any) ([]byte, error) {
	switch v := v.(type) {
	case []byte:
		return v, nil
	case string:
		if raw, err := base64.StdEncoding.DecodeString(v); err == nil {
			return raw, nil
		}
		return []byte(v), nil
	}
	return nil, fmt.Errorf("must be a file, not %s", value.Describe(v))
}

func ids(vars []*spec.Variable) []string {
	list := make([]string, len(vars))
	for i, v := range vars {
		list[i] = v.ID
	}
	return list
}

// endpoint is a URL with placeholders: {name} is replaced by an argument.
type endpoint struct {
	parts []spec.EndpointPart
}

// parseEndpoint parses an endpoint and checks that it is a URL.
func parseEndpoint(text string) (*endpoint, error) {
	parts, err := spec.ParseEndpoint(text)
	return &endpoint{parts: parts}, err
}

// names lists the placeholders.
func (e *endpoint) names() []string {
	var names []string
	for _, p := range e.parts {
		if p.Name != "" && !slices.Contains(names, p.Name) {
			names = append(names, p.Name)
		}
	}
	return names
}

// pathArgumentError is what is wrong with an argument of the URL.
type pathArgumentError struct{ name, problem string }

func (e *pathArgumentError) Error() string { return e.name + ": " + e.problem }

// fill returns the URL of a call. Arguments are percent-encoded, so that they cannot
// change the structure of the URL. One that a server may treat as a relative path
// segment is rejected.
func (e *endpoint) fill(value func(name string) (string, error)) (*url.URL, error) {
	var b strings.Builder
	for _, p := range e.parts {
		if p.Name == "" {
			b.WriteString(p.Text)
			continue
		}
		v, err := value(p.Name)
		if err != nil {
			return nil, err
		}
		if p.InQuery {
			b.WriteString(url.QueryEscape(v))
			continue
		}
		if v == "" {
			return nil, &pathArgumentError{p.Name, "must not be empty: it is part of the path"}
		}
		if hasDotDot(v) {
			return nil, &pathArgumentError{p.Name, "must not hold . or .. as a part of the path"}
		}
		b.WriteString(url.PathEscape(v))
	}
	u, err := url.Parse(b.String())
	if err != nil {
		return nil, err
	}
	if path := u.EscapedPath(); hasDotDot(path) && !hasDotDot(e.staticPart()) { // composed of several parts: .{x} with x = .
		return nil, &pathArgumentError{strings.Join(e.names(), ", "), "must not make . or .. a part of the path"}
	}
	return u, nil
}

// staticPart returns the endpoint with x for every placeholder.
func (e *endpoint) staticPart() string { return spec.StaticEndpoint(e.parts) }

// hasDotDot reports whether a segment of the path is . or .., with any separator that a
// server may accept.
func hasDotDot(path string) bool {
	for part := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '/' || r == '\\' }) {
		if part == "." || part == ".." {
			return true
		}
	}
	return false
}

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
		e.Message = a.excerpt(resp, raw)
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
