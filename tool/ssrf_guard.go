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
	dialer := httpx.Dialer()
	if allowPrivate {
		t.DialContext = dialer.DialContext
		return t
	}
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
		if isProxy(proxyFor, address) {
			return dialer.DialContext(ctx, network, address)
		}
		return checked.DialContext(ctx, network, address)
	}
	return t
}

// isProxy reports whether the address is that of the proxy for outgoing calls. The
// operator configured it, so it may be private.
func isProxy(proxyFor func(*http.Request) (*url.URL, error), address string) bool {
	for _, outside := range []string{"http://example.com", "https://example.com"} {
		u, err := url.Parse(outside)
		if err != nil {
			continue
		}
		proxy, err := proxyFor(&http.Request{URL: u})
		if err != nil || proxy == nil {
			continue
		}
		port := proxy.Port()
		if port == "" {
			port = map[string]string{"http": "80", "https": "443", "socks5": "1080"}[proxy.Scheme]
		}
		if net.JoinHostPort(proxy.Hostname(), port) == address {
			return true
		}
	}
	return false
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
func private(ip netip.Addr) bool {
	ip = embedded(ip.Unmap().WithZone(""))
	if !ip.IsGlobalUnicast() || ip.IsPrivate() || ip.IsLoopback() || ip.IsLinkLocalUnicast() {
		return true
	}
	for _, p := range reservedPrefixes() {
		if p.Contains(ip) {
			return true
		}
	}
	return false
}

// reservedPrefixes returns the blocks of the IANA special-purpose registries (RFC 6890)
// that netip has no method for.
func reservedPrefixes() []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix("0.0.0.0/8"),       // this network
		netip.MustParsePrefix("100.64.0.0/10"),   // shared address space, metadata services of some clouds
		netip.MustParsePrefix("192.0.0.0/24"),    // protocol assignments
		netip.MustParsePrefix("192.0.2.0/24"),    // documentation
		netip.MustParsePrefix("198.18.0.0/15"),   // benchmarks
		netip.MustParsePrefix("198.51.100.0/24"), // documentation
		netip.MustParsePrefix("203.0.113.0/24"),  // documentation
		netip.MustParsePrefix("240.0.0.0/4"),     // reserved
		netip.MustParsePrefix("fec0::/10"),       // site-local addresses, deprecated
	}
}

// embedded returns the IPv4 address inside of an IPv6 address that a gateway or the
// operating system would extract: NAT64 (RFC 6052), 6to4 (RFC 3056) and IPv4-compatible
// addresses. It returns other addresses unchanged.
func embedded(ip netip.Addr) netip.Addr {
	if !ip.Is6() {
		return ip
	}
	b := ip.As16()
	switch {
	case [12]byte(b[:12]) == [12]byte{0, 0x64, 0xff, 0x9b}:
		return netip.AddrFrom4([4]byte(b[12:]))
	case b[0] == 0x20 && b[1] == 0x02:
		return netip.AddrFrom4([4]byte(b[2:6]))
	case [12]byte(b[:12]) == [12]byte{}:
		return netip.AddrFrom4([4]byte(b[12:])) // ::1 and :: become 0.0.0.x, which is rejected as well
	}
	return ip
}
