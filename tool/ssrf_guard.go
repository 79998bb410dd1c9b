package tool

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"

	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/internal/trust"
)

// maxConcurrentCalls is how many rows a step may work on at once, and so call one server.
const maxConcurrentCalls = 32

// layer is a transport that sends nothing itself, such as one that records requests: the
// transport of the tool, which checks addresses, is below it.
type layer interface {
	Over(next http.RoundTripper) http.RoundTripper
}

// newHTTPClient returns the HTTP client of one tool. Unless private addresses are
// allowed, the address of every connection is checked after name resolution and before
// any data is sent, so that neither DNS nor a redirect can lead to a private address.
func newHTTPClient(given *http.Client, allowPrivate bool) *http.Client {
	c := &http.Client{}
	if given != nil {
		*c = *given
	}
	if c.CheckRedirect == nil {
		c.CheckRedirect = httpx.CheckRedirect
	}
	if l, ok := c.Transport.(layer); ok {
		c.Transport = l.Over(newGuardedDialer(httpx.Transport(maxConcurrentCalls), allowPrivate))
		return c
	}
	switch {
	case c.Transport == nil:
		c.Transport = newGuardedDialer(httpx.Transport(maxConcurrentCalls), allowPrivate)
	case !allowPrivate:
		if t, ok := c.Transport.(*http.Transport); ok {
			c.Transport = newGuardedDialer(t.Clone(), false)
			break
		}
		c.Transport = &literalGuard{c.Transport}
	}
	return c
}

// newGuardedDialer makes t check the addresses that it dials. Behind a proxy the proxy
// resolves the name; there the name is resolved here too, and rejected if that gives a
// private address or none.
func newGuardedDialer(t *http.Transport, allowPrivate bool) *http.Transport {
	if allowPrivate {
		t.DialContext = httpx.DialContext
		return t
	}
	dialer := httpx.Dialer()
	checked := *dialer
	checked.Control = func(_, address string, _ syscall.RawConn) error { return checkAddress(address) }
	t.DialTLSContext = nil
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if host, _, err := net.SplitHostPort(address); err == nil {
			if err := checkHostName(host); err != nil {
				return nil, err
			}
		}
		return checked.DialContext(ctx, network, address)
	}
	if t.Proxy == nil {
		return t
	}
	proxyFor := t.Proxy
	t.Proxy = func(req *http.Request) (*url.URL, error) {
		if err := checkHostName(req.URL.Hostname()); err != nil {
			return nil, err
		}
		return httpx.CheckProxied(proxyFor, req, func(addresses []netip.Addr) error { return checkResolved(req.URL.Hostname(), addresses) })
	}
	direct := t.DialContext
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if httpx.IsProxy(proxyFor, address) {
			return dialer.DialContext(ctx, network, address)
		}
		return direct(ctx, network, address)
	}
	return t
}

// literalGuard wraps a transport whose dialer is not accessible: it checks only addresses
// that are written in the URL.
type literalGuard struct{ next http.RoundTripper }

// RoundTrip rejects a URL whose host is a private address.
func (g *literalGuard) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := checkHostName(req.URL.Hostname()); err != nil {
		return nil, err
	}
	return g.next.RoundTrip(req)
}

// checkHostName checks the host of a URL before it is resolved.
func checkHostName(host string) error {
	if ip, err := netip.ParseAddr(host); err == nil && private(ip) {
		return blocked(ip)
	}
	if trust.IsPrivateHost(host) {
		return &refusedError{host + " is a private address; set allow_private: true to call it"}
	}
	return nil
}

// checkResolved checks the addresses of a host that a proxy will resolve as well.
func checkResolved(host string, addresses []netip.Addr) error {
	if len(addresses) == 0 {
		return &refusedError{"the address of " + host + " cannot be checked, because only the proxy can resolve the name; set allow_private: true to call it, or QTYPE_TRUST_PROXY=1 if the proxy refuses private addresses"}
	}
	for _, ip := range addresses {
		if private(ip) {
			return blocked(ip)
		}
	}
	return nil
}

// checkAddress checks an address before a connection is made.
func checkAddress(address string) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return &refusedError{"cannot check the address"}
	}
	if private(to.Addr()) {
		return blocked(to.Addr())
	}
	return nil
}

func blocked(ip netip.Addr) error {
	return &refusedError{fmt.Sprintf("%s is a private address; set allow_private: true to call it", ip.Unmap().WithZone(""))}
}

// private reports whether an address is not on the public Internet.
func private(ip netip.Addr) bool { return trust.IsPrivate(ip) }
