package access

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"sync"
)

// ipv6Client is how many bits of an IPv6 address identify a client: it can choose the
// others.
const ipv6Client = 64

// proxyList has the reverse proxies that are trusted to name the address of a client.
type proxyList []netip.Prefix

func newProxyList(entries []string) (proxyList, error) {
	var list proxyList
	for _, entry := range entries {
		prefix, err := netip.ParsePrefix(entry)
		if err != nil {
			ip, err := netip.ParseAddr(entry)
			if err != nil {
				return nil, fmt.Errorf("the trusted proxy %q is not an address or prefix such as 10.0.0.0/8", entry)
			}
			prefix = netip.PrefixFrom(ip, ip.BitLen())
		}
		list = append(list, prefix)
	}
	return list, nil
}

func (l proxyList) contains(ip netip.Addr) bool {
	for _, prefix := range l {
		if prefix.Contains(ip) {
			return true
		}
	}
	return false
}

// client returns the address of the client of a request, for limits and logs: that of
// the connection, or behind trusted proxies the last address in X-Forwarded-For that is
// not one of them. Clients can write earlier entries of this header. IPv6 addresses are
// shortened to their network.
func (l proxyList) client(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return "unknown"
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return "unknown"
	}
	ip = ip.Unmap().WithZone("")
	if !l.contains(ip) {
		return clientNetwork(ip)
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && l.contains(ip); i-- {
		next, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		ip = next.Unmap().WithZone("")
	}
	return clientNetwork(ip)
}

// sent reports whether a request comes from a trusted proxy.
func (l proxyList) sent(r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && l.contains(from.Addr().Unmap().WithZone(""))
}

// secure reports whether the client sent a request over TLS, to this server or to a
// trusted proxy.
func (l proxyList) secure(r *http.Request) bool {
	return r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" && l.sent(r)
}

// forwardedPrefix is the form of the prefixes that X-Forwarded-Prefix may name.
var forwardedPrefix = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+/?$`) })

// mountPoint returns the path below which clients reach the server: the prefix that a trusted
// proxy removes and names in X-Forwarded-Prefix, and that of another handler, which
// http.StripPrefix removes. It is empty for the root.
func (l proxyList) mountPoint(r *http.Request) string {
	outer := r.Header.Get("X-Forwarded-Prefix")
	if !l.sent(r) || !forwardedPrefix().MatchString(outer) {
		outer = ""
	}
	outer = strings.TrimSuffix(outer, "/")
	u, err := url.ParseRequestURI(r.RequestURI)
	if err != nil {
		return outer
	}
	inner, stripped := strings.CutSuffix(u.Path, r.URL.Path)
	if !stripped || !strings.HasPrefix(inner, "/") || strings.HasPrefix(inner, "//") {
		return outer
	}
	return outer + inner
}

// Address returns the address of the server as the client of a request knows it, without a final
// slash. A nil Control trusts no proxy.
func (c *Control) Address(r *http.Request) string {
	var trusted proxyList
	if c != nil {
		trusted = c.proxies
	}
	scheme := "http://"
	if trusted.secure(r) {
		scheme = "https://"
	}
	return scheme + r.Host + trusted.mountPoint(r)
}

// clientNetwork returns what an address counts as: itself, or its network with IPv6.
func clientNetwork(ip netip.Addr) string {
	if ip.Is6() && !ip.IsLoopback() {
		if network, err := ip.Prefix(ipv6Client); err == nil {
			return network.String()
		}
	}
	return ip.String()
}
