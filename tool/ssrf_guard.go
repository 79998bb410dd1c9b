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
// private address.
func newGuardedDialer(t *http.Transport, allowPrivate bool) *http.Transport {
	if allowPrivate {
		t.DialContext = httpx.DialContext
		return t
	}
	dialer := httpx.Dialer()
	checked := *dialer
	checked.Control = func(_, address string, _ syscall.RawConn) error { return checkAddress(address) }
	t.DialContext, t.DialTLSContext = checked.DialContext, nil
	if t.Proxy == nil {
		return t
	}
	proxyFor := t.Proxy
	t.Proxy = func(req *http.Request) (*url.URL, error) {
		proxy, err := proxyFor(req)
		if proxy == nil || err != nil {
			return proxy, err
		}
		return proxy, checkName(req.Context(), req.URL.Hostname())
	}
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if httpx.IsProxy(proxyFor, address) {
			return dialer.DialContext(ctx, network, address)
		}
		return checked.DialContext(ctx, network, address)
	}
	return t
}

// literalGuard wraps a transport whose dialer is not accessible: it checks only addresses
// that are written in the URL.
type literalGuard struct{ next http.RoundTripper }

// RoundTrip rejects a URL whose host is a private address.
func (g *literalGuard) RoundTrip(req *http.Request) (*http.Response, error) {
	host := req.URL.Hostname()
	if host == "localhost" {
		host = "127.0.0.1"
	}
	if ip, err := netip.ParseAddr(host); err == nil && private(ip) {
		return nil, blocked(ip)
	}
	return g.next.RoundTrip(req)
}

func checkName(ctx context.Context, host string) error {
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil //nolint:nilerr // a name that only the proxy can resolve
	}
	for _, ip := range addrs {
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
