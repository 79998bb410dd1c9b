package tool

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/internal/trust"
	"github.com/qtype-dev/qtype/spec"
)

// api is an HTTP endpoint.
type api struct {
	info     Info
	declared *spec.APITool
	method   string
	endpoint *endpoint
	query    []*spec.Variable // arguments sent in the query
	body     []*spec.Variable // arguments sent in the body
	hasBody  bool             // whether the method sends a body
	download bool             // whether the result is the bytes of the answer
	headers  http.Header      // sent with every request; credentials are added later
	auth     *credential
	timeout  time.Duration
	retry    httpx.Policy
	http     *http.Client
}

// methods lists the HTTP methods: whether they send a body and whether they are idempotent.
func methods() map[string]struct{ body, repeats bool } {
	return map[string]struct{ body, repeats bool }{
		http.MethodGet: {repeats: true}, http.MethodHead: {repeats: true}, http.MethodOptions: {repeats: true},
		http.MethodDelete: {repeats: true}, http.MethodPut: {body: true, repeats: true},
		http.MethodPost: {body: true}, http.MethodPatch: {body: true},
	}
}

// NewAPI makes the tool of an HTTP endpoint. It calls nothing; an error means that
// the declaration cannot work.
func NewAPI(t *spec.APITool, opts Options) (Tool, error) {
	fail := func(err error) (Tool, error) {
		if missing, ok := errors.AsType[*spec.NotAvailableError](err); ok {
			return nil, missing // it already names the tool
		}
		return nil, fmt.Errorf("tool %s: %w", t.ID, err)
	}
	a := &api{declared: t, method: strings.ToUpper(cmp.Or(t.Method, http.MethodGet)), timeout: 30 * time.Second}
	if all := t.Conflicts(); len(all) > 0 {
		return fail(errors.New(all[0].Problem))
	}
	if _, problem := t.Duplicate(); problem != "" {
		return fail(errors.New(problem))
	}
	kind := methods()[a.method]
	a.hasBody = kind.body || t.HasBody()
	a.download = len(t.Outputs) == 1 && t.Outputs[0].Type.IsMedia()
	if kind.repeats || t.IdempotencyHeader != "" {
		a.retry = httpx.Policy{MaxAttempts: 3, InitialDelay: 200 * time.Millisecond, MaxDelay: 5 * time.Second}
	}
	if t.Timeout > 0 {
		a.timeout = time.Duration(t.Timeout)
	}
	var err error
	if a.endpoint, err = parseEndpoint(t.Endpoint); err != nil {
		return fail(err)
	}
	if err := a.assignParams(t); err != nil {
		return fail(err)
	}
	if a.headers, err = headers(t.Headers, opts); err != nil {
		return fail(err)
	}
	if a.auth, err = readAuth(Service{Tool: t.ID, URL: t.Endpoint, Auth: t.Auth, Audience: t.AuthAudience, AllowPrivate: t.AllowPrivate}, opts); err != nil {
		return fail(err)
	}
	server, err := url.Parse(a.endpoint.staticPart())
	if err != nil {
		return fail(errors.New("endpoint is not a URL"))
	}
	a.http = newHTTPClient(opts.HTTP, t.AllowPrivate && opts.Policy.AllowsPrivate(server))
	a.http.CheckRedirect = a.redirect
	a.http.Transport = &authTransport{next: a.http.Transport, scheme: server.Scheme, host: server.Host, auth: a.auth}
	return a, nil
}

// assignParams decides where each argument is sent: in the path where the endpoint
// names it, else parameters in the query, and inputs in the body if the method has one.
func (a *api) assignParams(t *spec.APITool) error {
	named := a.endpoint.names()
	var all []*spec.Variable
	for _, v := range t.Arguments() {
		if slices.ContainsFunc(all, func(o *spec.Variable) bool { return o.ID == v.ID }) {
			return fmt.Errorf("argument %s is declared twice", v.ID)
		}
		all = append(all, v)
		switch {
		case slices.Contains(named, v.ID), slices.Contains(t.HeaderParameters, v):
		case a.hasBody && slices.Contains(t.Inputs, v):
			a.body = append(a.body, v)
		default:
			a.query = append(a.query, v)
		}
	}
	a.info = Describe(t.Common(), all)
	return nil
}

// headers converts the declared headers.
func headers(declared map[string]spec.Secret, opts Options) (http.Header, error) {
	h := http.Header{}
	for _, name := range slices.Sorted(maps.Keys(declared)) { // sorted, so that of two spellings the same one stays
		value, err := declared[name].Resolve(opts.Secret)
		switch {
		case err != nil:
			return nil, fmt.Errorf("header %s: %w", name, err)
		case !spec.IsHeaderValue(value):
			return nil, fmt.Errorf("the header %s has a value that HTTP cannot carry", name)
		}
		h.Set(name, value)
	}
	return h, nil
}

// isSendable reports whether HTTP can carry a header.
func isSendable(name, value string) bool {
	return httpguts.ValidHeaderFieldName(name) && httpguts.ValidHeaderFieldValue(value)
}

// Info describes the tool.
func (a *api) Info() Info { return a.info }

// Call sends the request, and those of further pages.
func (a *api) Call(ctx context.Context, args map[string]any) (any, error) {
	given, err := a.info.ValidateArgs(args)
	if err != nil {
		return nil, err
	}
	r, err := a.request(given)
	if err != nil {
		return nil, a.explain(err)
	}
	if a.declared.Pagination != nil {
		return a.pages(ctx, r)
	}
	if name := a.declared.IdempotencyHeader; name != "" {
		r.header.Set(name, cmp.Or(CallerOf(ctx).Repeat, rand.Text()))
	}
	result, err := a.send(ctx, r)
	if err != nil {
		return nil, err
	}
	return result.value, nil
}

// send sends one request. Idempotent requests are retried while the server is busy, all
// within the tool's timeout.
func (a *api) send(ctx context.Context, r *request) (*response, error) {
	within, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	tries := a.retry.Start()
	for {
		result, err := a.try(within, r)
		if err == nil {
			return result, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		var failure *Error
		if !errors.As(err, &failure) {
			return nil, err
		}
		if within.Err() == nil && busy(failure.Status) && tries.Next(within, failure.RetryAfter) {
			continue
		}
		failure.Attempts = tries.Count()
		return nil, failure
	}
}

// explain adds the tool to an error about an argument.
func (a *api) explain(err error) error {
	var bad *pathArgumentError
	if errors.As(err, &bad) {
		return &ArgumentError{a.info.ID, bad.name, bad.problem}
	}
	return fmt.Errorf("tool %s: invalid request for these arguments", a.info.ID)
}

// busy reports whether a request with this response may succeed later.
func busy(status int) bool {
	return slices.Contains([]int{http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}, status)
}

// try sends one request once.
func (a *api) try(ctx context.Context, r *request) (*response, error) {
	req, err := http.NewRequestWithContext(ctx, a.method, r.url.String(), bytes.NewReader(r.body))
	if err != nil {
		return nil, fmt.Errorf("tool %s: invalid request for these arguments", a.info.ID)
	}
	if r.contentType != "" {
		req.Header.Set("Content-Type", r.contentType)
	}
	req.Header.Set("Accept", "application/json, text/*;q=0.9, */*;q=0.5")
	for _, headers := range []http.Header{a.headers, r.header} {
		for name, values := range headers {
			req.Header[name] = values
		}
	}
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
	}
	resp, err := a.http.Do(req)
	if err != nil {
		return nil, a.networkError(ctx, r.url, err)
	}
	defer func() { _ = resp.Body.Close() }()
	return a.read(ctx, r.url, resp)
}

// networkError converts an error of the transport.
func (a *api) networkError(ctx context.Context, u *url.URL, err error) error {
	e := &Error{Tool: a.info.ID, Method: a.method, URL: httpx.Server(u), Err: err}
	var refused *refusedError
	var noToken *tokenError
	switch {
	case errors.As(err, &noToken):
		e.Message = noToken.Error()
	case errors.As(err, &refused):
		e.Message = refused.Error()
	case ctx.Err() != nil:
		e.Message = fmt.Sprintf("no complete answer within %s", a.timeout)
		e.Err = nil // the caller's context has not ended
	default:
		e.Message = httpx.Reason(err)
	}
	return e
}

// redirect follows redirects, but sends the declared headers to the endpoint's server
// only, and a body to no other server. authTransport does the same for credentials.
func (a *api) redirect(req *http.Request, via []*http.Request) error {
	const most = 10
	first := via[0]
	if len(via) >= most {
		return &refusedError{fmt.Sprintf("stopped after %d redirects", most)}
	}
	if req.URL.Scheme != "http" && req.URL.Scheme != "https" {
		return &refusedError{"redirect to an address that is not http or https"}
	}
	httpx.LimitHeaders(req, first)
	if req.URL.Scheme == first.URL.Scheme && req.URL.Host == first.URL.Host {
		return nil
	}
	if req.Body != nil && req.Body != http.NoBody {
		return &refusedError{"redirect to another server, which must not get the arguments"}
	}
	for name := range a.headers { // also headers that are usually no credentials
		req.Header.Del(name)
	}
	for _, v := range a.declared.HeaderParameters {
		req.Header.Del(a.name(v))
	}
	return nil
}

// refusedError is why qtype itself does not send a request.
type refusedError struct{ why string }

func (e *refusedError) Error() string { return e.why }

// IsRefused reports whether a request was not sent, because its address is not allowed.
func IsRefused(err error) bool {
	return errors.As(err, new(*refusedError)) || errors.As(err, new(*trust.RefusedError))
}

// defaultMaxPages is the default of Pagination.MaxPages.
const defaultMaxPages = 10

// pages sends a request and those of further pages, and returns the first result with
// the items of all pages.
func (a *api) pages(ctx context.Context, r *request) (any, error) {
	declared := a.declared.Pagination
	var first any
	var all []any
	size, most := 0, cmp.Or(declared.MaxPages, defaultMaxPages)
	for number := 1; ; number++ {
		page, err := a.send(ctx, r)
		if err != nil {
			return nil, err
		}
		if size += page.size; size > maxAnswer {
			return nil, a.pageError(r.url, "the pages are longer than %d MiB", maxAnswer>>20)
		}
		items, ok := fieldOf(page.value, declared.Items).([]any)
		if !ok && page.value != nil {
			return nil, a.pageError(r.url, "page %d has no list at %s", number, itemsPlace(declared.Items))
		}
		all = append(all, items...)
		if first == nil {
			first = page.value
		}
		next, err := a.nextPage(r.url, page, len(items))
		if err != nil {
			return nil, err
		}
		switch {
		case next == nil || number == most && declared.AtLimit == "truncate":
			return withItems(first, declared.Items, all), nil
		case number == most:
			return nil, a.pageError(r.url, "the result has more than the %d pages of max_pages", most)
		case next.String() == r.url.String():
			return nil, a.pageError(r.url, "page %d names itself as the next page", number)
		}
		following := *r
		following.url = next
		r = &following
	}
}

// itemsPlace names a field in messages.
func itemsPlace(path string) string {
	if path == "" {
		return "the top level of the answer"
	}
	return path
}

func (a *api) pageError(u *url.URL, format string, args ...any) *Error {
	return &Error{Tool: a.info.ID, Method: a.method, URL: httpx.Server(u), Message: fmt.Sprintf(format, args...)}
}

// nextPage returns the address of the page after one with n items, nil after the last one.
func (a *api) nextPage(u *url.URL, page *response, n int) (*url.URL, error) {
	declared := a.declared.Pagination
	if declared.More != "" && fieldOf(page.value, declared.More) != true {
		return nil, nil
	}
	switch declared.Type {
	case spec.PagesByLink:
		address := nextLink(page.header.Values("Link"))
		if declared.Next != "" {
			address = cursorText(fieldOf(page.value, declared.Next))
		}
		return a.linkedPage(u, address)
	case spec.PagesByCursor:
		cursor := cursorText(fieldOf(page.value, declared.Next))
		if cursor == "" {
			return nil, nil
		}
		return withParameter(u, declared.Parameter, cursor), nil
	}
	if n == 0 {
		return nil, nil
	}
	at, step := 1, 1
	if declared.Type == spec.PagesByOffset {
		at, step = 0, n
	}
	if given := u.Query().Get(declared.Parameter); given != "" {
		var err error
		if at, err = strconv.Atoi(given); err != nil {
			return nil, &ArgumentError{a.info.ID, declared.Parameter, "is not a number, so the next page is not known"}
		}
	}
	return withParameter(u, declared.Parameter, strconv.Itoa(at+step)), nil
}

// linkedPage returns the address of a page that a server names; it must be on that server.
func (a *api) linkedPage(u *url.URL, address string) (*url.URL, error) {
	if address == "" {
		return nil, nil
	}
	next, err := u.Parse(address)
	if err != nil {
		return nil, a.pageError(u, "the address of the next page is not a URL")
	}
	if next.Scheme != u.Scheme || next.Host != u.Host {
		return nil, a.pageError(u, "the next page is on another server, %s", httpx.Server(next))
	}
	return next, nil
}

// nextLink returns the address of the link with rel=next of Link headers (RFC 8288).
func nextLink(headers []string) string {
	for _, header := range headers {
		for header != "" {
			_, rest, found := strings.Cut(header, "<")
			if !found {
				break
			}
			address, rest, found := strings.Cut(rest, ">")
			if !found {
				break
			}
			parameters, following, _ := strings.Cut(rest, "<")
			if following != "" {
				following = "<" + following
			}
			header = following
			for part := range strings.SplitSeq(strings.TrimRight(parameters, ", "), ";") {
				name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
				if strings.EqualFold(name, "rel") && strings.Contains(" "+strings.Trim(value, `"`)+" ", " next ") {
					return address
				}
			}
		}
	}
	return ""
}

// withParameter returns an address with a query parameter.
func withParameter(u *url.URL, name, value string) *url.URL {
	next := *u
	query := next.Query()
	query.Set(name, value)
	next.RawQuery = query.Encode()
	return &next
}

// cursorText returns the text of a cursor, empty for none.
func cursorText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	}
	return ""
}

// fieldOf returns the value at a path such as data.-1.id, nil for none. A number is the
// index of an item, from the end if it is negative.
func fieldOf(v any, path string) any {
	if path == "" {
		return v
	}
	for part := range strings.SplitSeq(path, ".") {
		switch in := v.(type) {
		case map[string]any:
			v = in[part]
		case []any:
			i, err := strconv.Atoi(part)
			if i < 0 {
				i += len(in)
			}
			if err != nil || i < 0 || i >= len(in) {
				return nil
			}
			v = in[i]
		default:
			return nil
		}
	}
	return v
}

// withItems returns the result with all items in place of those of the first page.
func withItems(first any, path string, all []any) any {
	if path == "" {
		return all
	}
	parent, name := "", path
	if i := strings.LastIndexByte(path, '.'); i >= 0 {
		parent, name = path[:i], path[i+1:]
	}
	if object, ok := fieldOf(first, parent).(map[string]any); ok {
		object[name] = all
	}
	return first
}
