package access

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/spec"
)

const (
	providerTimeout = 10 * time.Second // of calls of the OpenID provider and the ACME server
	failuresPerSec  = 1                // refused credentials of one address, before 429
	failuresAtOnce  = 20
)

// Control decides about each request to a server. It is safe for concurrent use.
type Control struct {
	limits      Limits
	publicCard  bool           // agent cards need no credential
	keys        *keySource     // nil: no API keys
	tokens      *tokenVerifier // nil: no tokens
	hosts       hostList
	origins     *originPolicy
	proxies     proxyList
	certs       *certificates // nil: no TLS
	attachments *AttachmentPolicy
	audit       *audit
	logger      *slog.Logger
	write       func(http.ResponseWriter, *http.Request, *problem.Problem)

	rates    *limiter // of principals, and of addresses without authentication
	failures *limiter // of addresses with invalid credentials
	requests *gauge
	streams  *gauge
	total    *gauge
}

// New reads keys, certificates and the configuration of the OpenID provider, and
// returns an error if any of them is invalid. Errors contain no secrets.
func New(cfg Config) (*Control, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.HTTP == nil {
		cfg.HTTP = &http.Client{Timeout: providerTimeout}
	}
	c := &Control{logger: cfg.Logger, audit: newAudit(cfg.Logger), write: cfg.WriteProblem, publicCard: cfg.PublicAgentCard}
	if c.write == nil {
		c.write = problem.Respond
	}
	var err error
	if c.keys, err = newKeySource(cfg, cfg.Logger); err != nil {
		return nil, err
	}
	if c.tokens, err = newTokenVerifier(cfg.OIDC, cfg.HTTP); err != nil {
		return nil, err
	}
	if c.hosts, err = newHostList(c.hostNames(cfg)); err != nil {
		return nil, err
	}
	if c.origins, err = newOriginPolicy(cfg.Origins, c.Authenticated()); err != nil {
		return nil, err
	}
	if c.proxies, err = newProxyList(cfg.Proxies); err != nil {
		return nil, err
	}
	if c.certs, err = newCertificates(cfg.TLS, cfg.HTTP, cfg.Logger); err != nil {
		return nil, err
	}
	if c.attachments, err = NewAttachmentPolicy(cfg.AttachmentHosts); err != nil {
		return nil, err
	}
	return c, c.limit(cfg)
}

// hostNames returns the names under which the server is reached. Without authentication
// those that it listens on and has certificates for are among them.
func (c *Control) hostNames(cfg Config) []string {
	if c.Authenticated() {
		return cfg.Hosts
	}
	names := slices.Concat(cfg.Hosts, cfg.TLS.Domains)
	if cfg.Host != "" && !strings.Contains(cfg.Host, ":") {
		names = append(names, cfg.Host) // an address does no harm
	}
	return names
}

// limit creates the limiters.
func (c *Control) limit(cfg Config) (err error) {
	c.limits = cfg.Limits.withDefaults(!c.Authenticated() && (cfg.Host == "" || isLoopback(cfg.Host)))
	if c.rates, err = newLimiter(c.limits.Rate, c.limits.Burst); err != nil {
		return err
	}
	c.requests, c.streams, c.total = newGauge(c.limits.Requests), newGauge(c.limits.Streams), newGauge(c.limits.Total)
	c.failures, err = newLimiter(failuresPerSec, failuresAtOnce)
	return err
}

// Authenticated reports whether requests need a key or token.
func (c *Control) Authenticated() bool { return c.keys != nil || c.tokens != nil }

// Authentication returns which credentials the server accepts: "oidc" if it accepts
// tokens, which may be in addition to keys, "key" for keys only, or "none".
func (c *Control) Authentication() string {
	switch {
	case c.tokens != nil:
		return "oidc"
	case c.keys != nil:
		return "key"
	}
	return "none"
}

// Limits returns the limits of requests, with defaults.
func (c *Control) Limits() Limits { return c.limits }

// Attachments returns which addresses named by clients the server may fetch.
func (c *Control) Attachments() *AttachmentPolicy { return c.attachments }

// Wrap returns a handler that checks each request before next handles it: host, origin,
// credential, rate and number of requests. It limits the body and the time of a request,
// sets the headers of security, and puts the caller into the context (PrincipalOf).
// Refused requests are answered with a problem and logged. /healthz and /readyz are
// public. Bodies return problems as errors; the cause of a context that ended by the
// time limit is a problem, too.
func (c *Control) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(plain http.ResponseWriter, r *http.Request) {
		w := c.respond(plain, r)
		switch {
		case c.isMetadata(r):
			c.writeMetadata(w, r)
		case c.isPublic(r):
			next.ServeHTTP(w, r)
		default:
			c.serve(w, r, next)
		}
		w.finish()
	})
}

// respond returns the response of a request with its headers. Each stream that waits keeps
// the stacks of Wrap, serve and handle, so they call other functions for what takes space.
func (c *Control) respond(plain http.ResponseWriter, r *http.Request) *response {
	w := newResponse(plain, r, c.limits)
	h := w.Header()
	setSecurityHeaders(h, c.proxies.secure(r))
	if !c.isPublic(r) {
		c.origins.setHeaders(h, r)
	}
	return w
}

// isPublic reports whether a request needs no credential.
func (c *Control) isPublic(r *http.Request) bool {
	probe := (r.URL.Path == "/healthz" || r.URL.Path == "/readyz") && (r.Method == http.MethodGet || r.Method == http.MethodHead)
	return probe || c.publicCard && isCard(r)
}

// isCard reports whether a request reads the card of an agent (A2A).
func isCard(r *http.Request) bool {
	return strings.HasSuffix(r.URL.Path, "/.well-known/agent-card.json") && r.Method == http.MethodGet
}

// serve passes a request to next, or refuses it.
func (c *Control) serve(w *response, r *http.Request, next http.Handler) {
	address := c.proxies.client(r)
	if err := c.checkRequest(r, w.body); err != nil {
		c.refuse(w, r, address, "", "", err)
		return
	}
	if isPreflight(r) {
		if err := c.origins.preflight(w.Header(), r); err != nil {
			c.refuse(w, r, address, "", "", err)
			return
		}
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if c.signIn(w, r, address) {
		return
	}
	p, ambient, reason, err := c.authenticate(r, address)
	if err == nil && ambient {
		err = c.origins.checkBrowser(r)
	}
	if err != nil {
		c.refuse(w, r, address, p.Name, reason, err)
		return
	}
	c.handle(w, r, next, caller{Principal: p, address: address})
}

// caller is who sent a request, and from where.
type caller struct {
	Principal
	address string
}

// limitKey is what the limits count by.
func (c caller) limitKey() string {
	if c.Name == "" {
		return "address " + c.address
	}
	return c.Name
}

// handle passes an accepted request to next, within the limits of its caller.
func (c *Control) handle(w *response, r *http.Request, next http.Handler, from caller) {
	refused := func(p *problem.Problem) { c.audit.refused(r, from.address, from.Name, p.Detail, p) }
	s, err := c.admit(from)
	if err != nil {
		c.refuse(w, r, from.address, from.Name, "", err)
		return
	}
	defer s.leave()
	w.slot, s.refused = s, refused
	ctx, cancel := s.withTimeLimit(WithPrincipal(r.Context(), from.Principal))
	defer cancel(context.Canceled)
	inner := r.WithContext(ctx)
	if w.body != nil {
		w.body.refused = refused
		inner.Body = w.body
	}
	next.ServeHTTP(w, inner)
	if inner.MultipartForm != nil {
		_ = inner.MultipartForm.RemoveAll() // temporary files; net/http removes only those of r
	}
}

// admit counts a request of a caller; the error is a *problem.Problem.
func (c *Control) admit(from caller) (*slot, error) {
	if wait, ok := c.rates.take(from.limitKey()); !ok {
		p := problem.New(http.StatusTooManyRequests, "rate_limited", "more than %g requests a second", c.limits.Rate)
		p.RetryAfter = wait
		return nil, p
	}
	return c.takeSlot(from.limitKey())
}

// checkRequest returns the problem of a request that nothing may handle.
func (c *Control) checkRequest(r *http.Request, b *body) error {
	if len(c.hosts) > 0 || !c.Authenticated() {
		if err := c.hosts.check(r); err != nil {
			return err
		}
	}
	if c.limits.HeaderCount >= 0 && countHeaders(r.Header) > c.limits.HeaderCount {
		return problem.New(http.StatusRequestHeaderFieldsTooLarge, "too_many_headers", "the request has more than %d headers", c.limits.HeaderCount)
	}
	if b != nil && c.limits.BodyBytes >= 0 && r.ContentLength > c.limits.BodyBytes {
		return bodyTooLarge(c.limits.BodyBytes)
	}
	return nil
}

func countHeaders(h http.Header) int {
	n := 0
	for _, values := range h {
		n += len(values)
	}
	return n
}

// refuse answers a request with a problem and logs it. An empty reason is that of the
// problem.
func (c *Control) refuse(w *response, r *http.Request, address, principal, reason string, err error) {
	p := problem.Of(err)
	if p == nil {
		p = problem.New(http.StatusInternalServerError, "internal", "the request could not be checked")
		c.logger.ErrorContext(r.Context(), "request not checked", "error", err.Error())
	}
	if reason == "" {
		reason = p.Detail
	}
	c.audit.refused(r, address, principal, reason, p)
	if p.Status == http.StatusUnauthorized {
		if isNavigation(r) {
			c.writeSignInPage(w, r, p)
			return
		}
		w.Header().Set("WWW-Authenticate", c.challenge(r, p))
	}
	if p.RetryAfter > 0 {
		w.Header().Set("Retry-After", p.Seconds())
	}
	c.write(w, r, p)
}

// Allowed reports whether a principal may call a flow. An entry NAME is an API key,
// user:NAME a user, role:NAME everyone with the role. Without the key allow every caller
// may; an empty list allows no caller. A caller without authentication may call only
// flows without the key.
func Allowed(flow *spec.Flow, p Principal) bool {
	if len(flow.Allow) == 0 {
		return flow.Allow == nil && !isWritten(flow, "allow")
	}
	return p.Name != "" && slices.ContainsFunc(flow.Allow, func(entry string) bool {
		if role, ok := strings.CutPrefix(entry, spec.RolePrefix); ok {
			return slices.Contains(p.Roles, role)
		}
		return entry == p.Name
	})
}

// Authorize returns a *problem.Problem with status 403 if the caller of a request may
// not call a flow, and logs the refused request.
func (c *Control) Authorize(r *http.Request, flow *spec.Flow) error {
	caller := PrincipalOf(r.Context())
	if Allowed(flow, caller) {
		return nil
	}
	p := problem.New(http.StatusForbidden, "flow_not_allowed", "you may not call the flow %q", flow.ID)
	if !c.Authenticated() {
		p.Detail = fmt.Sprintf("the flow %q lists its callers, but the server has no authentication", flow.ID)
	}
	c.audit.refused(r, c.proxies.client(r), caller.Name, p.Detail, p)
	return p
}

// isWritten reports whether the document has a key. Flows of programs have no positions.
func isWritten(n spec.Node, key string) bool {
	at := n.Position()
	if at == nil {
		return false
	}
	_, ok := at.Lookup(key)
	return ok
}

const (
	auditPerSecond = 50 // lines
	auditBurst     = 200
	maxLoggedPath  = 200 // bytes
)

// audit logs refused requests: who, what and why, without credentials, queries and
// bodies. The number of lines a second is limited, so that refused requests cannot fill
// a disk; the next line has the number of those left out.
type audit struct {
	logger  *slog.Logger
	lines   *rate.Limiter
	skipped atomic.Int64
}

func newAudit(logger *slog.Logger) *audit {
	return &audit{logger: logger, lines: rate.NewLimiter(auditPerSecond, auditBurst)}
}

// refused logs a refused request. reason is one of a fixed set of texts.
func (a *audit) refused(r *http.Request, address, principal, reason string, p *problem.Problem) {
	if !a.lines.Allow() {
		a.skipped.Add(1)
		return
	}
	path := r.URL.Path
	if len(path) > maxLoggedPath {
		path = path[:maxLoggedPath]
	}
	attrs := []slog.Attr{slog.Int("status", p.Status), slog.String("code", p.Code), slog.String("reason", reason),
		slog.String("method", r.Method), slog.String("path", path), slog.String("address", address)}
	if principal != "" {
		attrs = append(attrs, slog.String("principal", principal))
	}
	if n := a.skipped.Swap(0); n > 0 {
		attrs = append(attrs, slog.Int64("skipped", n))
	}
	a.logger.LogAttrs(r.Context(), slog.LevelWarn, "request refused", attrs...)
}
