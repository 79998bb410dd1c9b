package tool

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/spec"
)

// api is an HTTP endpoint (reference steps.md 4.1).
type api struct {
	info     Info
	method   string
	endpoint *endpoint
	query    []*spec.Variable // arguments that go into the query
	body     []*spec.Variable // arguments that go into the JSON body
	hasBody  bool             // the method sends one
	headers  http.Header      // sent with every request, credentials not among them
	auth     *credential
	timeout  time.Duration
	retry    httpx.Policy
	http     *http.Client
}

// methods lists the methods of an API tool and tells what each may do.
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
			return nil, missing // it names the tool already
		}
		return nil, fmt.Errorf("tool %s: %w", t.ID, err)
	}
	a := &api{method: strings.ToUpper(cmp.Or(t.Method, http.MethodGet)), timeout: 30 * time.Second}
	kind, ok := methods()[a.method]
	if !ok {
		return fail(fmt.Errorf("method %q is not one of GET, HEAD, OPTIONS, DELETE, PUT, POST, PATCH", t.Method))
	}
	a.hasBody = kind.body
	if kind.repeats {
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
	if a.headers, err = headers(t.Headers); err != nil {
		return fail(err)
	}
	if a.auth, err = readAuth(Service{Tool: t.ID, URL: t.Endpoint, Auth: t.Auth, AllowPrivate: t.AllowPrivate}, opts); err != nil {
		return fail(err)
	}
	if err := a.duplicateParam(); err != nil {
		return fail(err)
	}
	a.http = newHTTPClient(opts.HTTP, t.AllowPrivate)
	a.http.CheckRedirect = a.redirect
	server, err := url.Parse(a.endpoint.staticPart())
	if err != nil {
		return fail(errors.New("endpoint is not a URL"))
	}
	a.http.Transport = &authTransport{next: a.http.Transport, scheme: server.Scheme, host: server.Host, auth: a.auth}
	return a, nil
}

// duplicateParam tells of a header or a query parameter that the document sets beside the auth.
func (a *api) duplicateParam() error {
	c := a.auth
	if c.header != "" && a.headers.Get(c.header) != "" {
		return fmt.Errorf("headers and auth %s both set %s", c.name, c.header)
	}
	if c.query == "" {
		return nil
	}
	_, text, _ := strings.Cut(a.endpoint.staticPart(), "?")
	written, err := url.ParseQuery(text)
	if err != nil {
		return errors.New("endpoint holds a query that cannot be read")
	}
	if written.Has(c.query) || slices.ContainsFunc(a.query, func(v *spec.Variable) bool { return v.ID == c.query }) {
		return fmt.Errorf("the call's own query and auth %s both set %s", c.name, c.query)
	}
	return nil
}

// assignParams decides where each argument goes: into the path where the endpoint
// names it, else parameters into the query, and inputs into the body where the
// method has one.
func (a *api) assignParams(t *spec.APITool) error {
	named := a.endpoint.names()
	var all []*spec.Variable
	for _, v := range slices.Concat(t.Inputs, t.Parameters) {
		if slices.ContainsFunc(all, func(o *spec.Variable) bool { return o.ID == v.ID }) {
			return fmt.Errorf("argument %s is declared twice", v.ID)
		}
		all = append(all, v)
		switch {
		case slices.Contains(named, v.ID):
		case a.hasBody && slices.Contains(t.Inputs, v):
			a.body = append(a.body, v)
		default:
			a.query = append(a.query, v)
		}
	}
	for _, name := range named {
		if !slices.ContainsFunc(all, func(v *spec.Variable) bool { return v.ID == name }) {
			return fmt.Errorf("endpoint names {%s}, which is neither an input nor a parameter", name)
		}
	}
	a.info = Describe(t.Common(), all)
	return nil
}

// headers checks what the document wants to be sent.
func headers(declared map[string]string) (http.Header, error) {
	h := http.Header{}
	for _, name := range slices.Sorted(maps.Keys(declared)) { // always the same one in the error
		if !isSendable(name, declared[name]) {
			return nil, fmt.Errorf("header %q cannot be sent", name)
		}
		h.Set(name, declared[name])
	}
	return h, nil
}

// sendable tells whether HTTP can carry a header.
func isSendable(name, value string) bool {
	return httpguts.ValidHeaderFieldName(name) && httpguts.ValidHeaderFieldValue(value)
}

// Info tells what the tool is.
func (a *api) Info() Info { return a.info }

// Call makes the request, and again where the method may be repeated and the
// server is busy; all within the tool's timeout.
func (a *api) Call(ctx context.Context, args map[string]any) (any, error) {
	given, err := a.info.ValidateArgs(args)
	if err != nil {
		return nil, err
	}
	u, err := a.address(given)
	if err != nil {
		return nil, a.explain(err)
	}
	body, err := a.payload(given)
	if err != nil {
		return nil, a.explain(err)
	}
	within, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	tries := a.retry.Start()
	for {
		result, err := a.try(within, u, body)
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

// explain names the tool in an argument's fault.
func (a *api) explain(err error) error {
	var bad *pathArgumentError
	if errors.As(err, &bad) {
		return &ArgumentError{a.info.ID, bad.name, bad.problem}
	}
	return fmt.Errorf("tool %s: the endpoint cannot be called with these arguments", a.info.ID)
}

// busy tells whether a server may answer a repeated request.
func busy(status int) bool {
	return slices.Contains([]int{http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}, status)
}

// try makes one request.
func (a *api) try(ctx context.Context, u *url.URL, body []byte) (any, error) {
	req, err := http.NewRequestWithContext(ctx, a.method, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("tool %s: the endpoint cannot be called with these arguments", a.info.ID)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept", "application/json, text/*;q=0.9, */*;q=0.5")
	for name, values := range a.headers {
		req.Header[name] = values
	}
	if host := a.headers.Get("Host"); host != "" {
		req.Host = host
	}
	resp, err := a.http.Do(req)
	if err != nil {
		return nil, a.networkError(ctx, u, err)
	}
	defer func() { _ = resp.Body.Close() }()
	return a.read(ctx, u, resp)
}

// networkError makes an error of a call that did not come through.
func (a *api) networkError(ctx context.Context, u *url.URL, err error) error {
	e := &Error{Tool: a.info.ID, Method: a.method, URL: httpx.Server(u), Err: err, Temporary: true}
	var refused *refusedError
	var noToken *tokenError
	switch {
	case errors.As(err, &noToken):
		e.Message, e.Temporary = noToken.Error(), noToken.temporary
	case errors.As(err, &refused):
		e.Message, e.Temporary = refused.Error(), false
	case ctx.Err() != nil:
		e.Message = fmt.Sprintf("no complete answer within %s", a.timeout)
		e.Err = nil // it is not the caller's context that ended
	default:
		e.Message = httpx.Reason(err)
	}
	return e
}

// redirect follows where a server points, but takes headers to no other server
// than the endpoint's own, and a body not at all; signed does so for credentials.
func (a *api) redirect(req *http.Request, via []*http.Request) error {
	const most = 10
	first := via[0]
	if len(via) >= most {
		return &refusedError{fmt.Sprintf("the server points elsewhere more than %d times", most)}
	}
	if req.URL.Scheme != "http" && req.URL.Scheme != "https" {
		return &refusedError{"the server points to an address that is not http or https"}
	}
	if req.URL.Scheme == first.URL.Scheme && req.URL.Host == first.URL.Host {
		return nil
	}
	if req.Body != nil && req.Body != http.NoBody {
		return &refusedError{"the server points to another server, which does not get the arguments"}
	}
	for name := range a.headers {
		req.Header.Del(name)
	}
	req.Host = ""
	return nil
}

// refusedError says why qtype itself does not make a call.
type refusedError struct{ why string }

func (e *refusedError) Error() string { return e.why }
