package tool

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"

	"github.com/qtype-dev/qtype/spec"
)

// Handlers answer for the caller of one run, in place of the handlers of the
// application. They may be called by several goroutines at the same time.
type Handlers struct {
	Approve Approver                      // decides about calls that require approval; nil: the application's
	Client  func(id string) ClientHandler // returns the handler of the ClientTool with an id; nil, or a nil handler: the application's
}

type handlersKey struct{}

// WithHandlers returns a context in which h answers for the caller.
func WithHandlers(ctx context.Context, h Handlers) context.Context {
	return context.WithValue(ctx, handlersKey{}, &h)
}

// ApproverOf returns the approver of the run, otherwise app.
func ApproverOf(ctx context.Context, app Approver) Approver {
	if h, _ := ctx.Value(handlersKey{}).(*Handlers); h != nil && h.Approve != nil {
		return h.Approve
	}
	return app
}

// ClientHandlerOf returns the run's handler of the ClientTool with an id, otherwise app.
func ClientHandlerOf(ctx context.Context, id string, app ClientHandler) ClientHandler {
	h, _ := ctx.Value(handlersKey{}).(*Handlers)
	if h == nil || h.Client == nil {
		return app
	}
	if own := h.Client(id); own != nil {
		return own
	}
	return app
}

// RawTool is a Tool that takes its arguments as the model wrote them. It is not
// declared in the document: the caller of a run offers it to Agents.
type RawTool interface {
	Tool
	// CallRaw runs the tool with a JSON object that was not checked.
	CallRaw(ctx context.Context, args string) (any, error)
}

type callerToolsKey struct{}

// WithCallerTools returns a context in which Agents offer more tools to their models.
func WithCallerTools(ctx context.Context, tools []RawTool) context.Context {
	return context.WithValue(ctx, callerToolsKey{}, tools)
}

// CallerTools returns the tools of WithCallerTools.
func CallerTools(ctx context.Context) []RawTool {
	tools, _ := ctx.Value(callerToolsKey{}).([]RawTool)
	return tools
}

// Client returns an HTTP client for one server: it sends the credentials to this server
// only, follows no redirects, and connects to private addresses only if they are allowed.
func Client(s Service, opts Options) (*http.Client, error) {
	if !isWebURL(s.URL) {
		return nil, errors.New("the url is not an http or https address")
	}
	u, err := url.Parse(s.URL)
	if err != nil {
		return nil, err
	}
	if err := opts.Policy.Address(u); err != nil {
		return nil, err
	}
	auth, err := readAuth(s, opts)
	if err != nil {
		return nil, err
	}
	c := newHTTPClient(opts.HTTP, s.AllowPrivate && opts.Policy.AllowsPrivate(u))
	c.Transport = &authTransport{next: c.Transport, host: u.Host, scheme: u.Scheme, auth: auth}
	c.CheckRedirect = noRedirect
	return c, nil
}

// PublicClient returns an HTTP client that connects to no private address: each address
// is checked after name resolution, also after redirects. given may be nil.
func PublicClient(given *http.Client) *http.Client { return newHTTPClient(given, false) }

func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// isWebURL reports whether a text is the URL of a web server.
func isWebURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
}

// Host is what a tool of another module gets of the program.
type Host struct {
	HTTP   func(Service) (*http.Client, error) // makes a client for a server, which the document may reach, with its credentials
	Secret func(spec.Secret) (string, error)   // resolves a key of the document
	Getenv func(name string) string            // returns a variable of the environment
}

// Maker is the declaration of a tool of another module. The program calls the handler with arguments that fit
// Arguments, and converts what it returns to the types of Results. Unless HasEffects is false, `qtype test` does not call it.
type Maker interface {
	spec.Tool
	// Make returns what runs the calls. It calls nothing.
	Make(Host) (ClientHandler, error)
}

// Environment returns the environment variables that a document declares for a program.
// secret resolves references to a secret manager; nil where there is none.
func Environment(declared map[string]spec.Secret, secret func(spec.Secret) (string, error)) (map[string]string, error) {
	given := make(map[string]string, len(declared))
	for _, name := range slices.Sorted(maps.Keys(declared)) { // sorted, so that the error is always the same
		text := declared[name].Reveal()
		if secret != nil {
			var err error
			if text, err = secret(declared[name]); err != nil {
				return nil, fmt.Errorf("env %s: %w", name, err)
			}
		}
		given[name] = text
	}
	return given, nil
}
