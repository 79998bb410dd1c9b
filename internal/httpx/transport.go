package httpx

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/qtype-dev/qtype/internal/trust"
)

// Transport returns a transport that times out connecting, but has no limit for an
// answer: each call sets its own. Calls for a document, by their context, reach only the
// servers that its policy allows, also after redirects. It keeps up to perServer idle connections to a
// server, which should be the number of concurrent calls.
func Transport(perServer int) *http.Transport {
	return &http.Transport{
		Proxy:                 Proxy,
		DialContext:           DialContext,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          4 * perServer,
		MaxIdleConnsPerHost:   perServer,
		IdleConnTimeout:       90 * time.Second,
	}
}

// Dialer returns the dialer of a Transport, for transports that check addresses.
func Dialer() *net.Dialer {
	return &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
}

// Proxy returns the proxy of the environment for a request. It is called for each request,
// so it is where the policy of the document decides about the server. A name that the proxy would
// resolve is resolved here first, and refused if an address of it is.
func Proxy(req *http.Request) (*url.URL, error) { return policyProxy(http.ProxyFromEnvironment, req) }

func policyProxy(proxyFor func(*http.Request) (*url.URL, error), req *http.Request) (*url.URL, error) {
	p, reading, host := trust.From(req.Context()), trust.ReadingOf(req.Context()), trust.HostPort(req.URL)
	if err := errors.Join(p.Address(req.URL), reading.Request(host)); err != nil {
		return nil, err
	}
	if !p.Restricted() && reading == nil {
		return proxyFor(req) // without a name resolution, which may be slow where only the proxy has one
	}
	return CheckProxied(proxyFor, req, func(addresses []netip.Addr) error {
		if len(addresses) == 0 {
			return p.Unresolved(req.URL)
		}
		if p.Unseen(host) {
			p.Seen.Add(host, addresses...)
		}
		for _, ip := range addresses {
			to := netip.AddrPortFrom(ip, 1).String()
			if err := cmp.Or(p.Dial(host, to), reading.Dial(host, to)); err != nil {
				return err
			}
			reading.Connected(host, to)
		}
		return nil
	})
}

// pinTime limits the resolution of the names that the user allows a document.
const pinTime = 5 * time.Second

// Pin records the addresses of the servers that the user allows a document to call, also at private
// addresses. An unresolved name has the addresses of its first use.
func Pin(ctx context.Context, p *trust.Policy) {
	if !p.Restricted() || p.Seen == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, pinTime)
	defer cancel()
	var wait sync.WaitGroup
	for _, host := range p.Grants.Hosts {
		wait.Go(func() { pin(ctx, p, host) })
	}
	wait.Wait()
}

// pin records the addresses of one server.
func pin(ctx context.Context, p *trust.Policy, host string) {
	name := host
	if before, _, err := net.SplitHostPort(host); err == nil {
		name = before
	}
	if strings.HasPrefix(name, "*.") || !p.Unseen(host) {
		return
	}
	if addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", name); err == nil {
		p.Seen.Add(host, addresses...)
	}
}

// trustProxy is the environment variable that declares that the proxy refuses private addresses,
// for networks where only the proxy resolves names.
const trustProxy = "QTYPE_TRUST_PROXY"

// CheckProxied returns the proxy for a request, if check accepts the addresses of its server: none
// if the name cannot be resolved here. The dialer checks requests that do not use a proxy; it
// accepts the address of the proxy itself.
func CheckProxied(proxyFor func(*http.Request) (*url.URL, error), req *http.Request, check func([]netip.Addr) error) (*url.URL, error) {
	proxy, err := proxyFor(req)
	if err != nil || proxy == nil && !IsProxy(proxyFor, trust.HostPort(req.URL)) {
		return proxy, err
	}
	host := req.URL.Hostname()
	if ip, err := netip.ParseAddr(host); err == nil {
		return proxy, check([]netip.Addr{ip})
	}
	addresses, err := net.DefaultResolver.LookupNetIP(req.Context(), "ip", host)
	switch {
	case err == nil:
		return proxy, check(addresses)
	case proxy != nil && os.Getenv(trustProxy) == "1":
		return proxy, nil
	}
	return proxy, check(nil)
}

// DialContext connects to a server as Dialer does, if the policy of the document of the
// context allows its resolved address.
func DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	d, p, reading := Dialer(), trust.From(ctx), trust.ReadingOf(ctx)
	if !p.Restricted() && reading == nil || IsProxy(http.ProxyFromEnvironment, address) {
		return d.DialContext(ctx, network, address)
	}
	pin(ctx, p, address)
	d.Control = func(_, resolved string, _ syscall.RawConn) error {
		return cmp.Or(p.Dial(address, resolved), reading.Dial(address, resolved))
	}
	conn, err := d.DialContext(ctx, network, address)
	if err == nil {
		reading.Connected(address, conn.RemoteAddr().String())
	}
	return conn, err
}

// IsProxy reports whether the address is that of the proxy for outgoing calls. The
// operator configured it, so it may be private.
func IsProxy(proxyFor func(*http.Request) (*url.URL, error), address string) bool {
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
			port = map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}[proxy.Scheme]
		}
		if net.JoinHostPort(proxy.Hostname(), port) == address {
			return true
		}
	}
	return false
}

// UserAgent is the User-Agent of requests: qtype/ and the version that the build
// recorded, qtype/dev if it recorded none.
var UserAgent = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return userAgent("")
	}
	const module = "github.com/qtype-dev/qtype"
	if info.Main.Path == module {
		return userAgent(info.Main.Version)
	}
	for _, dep := range info.Deps { // a program that uses the library
		if dep.Path == module {
			return userAgent(dep.Version)
		}
	}
	return userAgent("")
})

// userAgent returns the product token of a version (RFC 9110, section 10.1.5).
func userAgent(version string) string {
	version = strings.TrimPrefix(version, "v")
	if version == "" || version == "(devel)" {
		return "qtype/dev"
	}
	return "qtype/" + strings.Map(func(r rune) rune {
		if r > ' ' && r < 0x7f && !strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r) {
			return r
		}
		return '-'
	}, version)
}

const maxRedirects = 10

// plainHeaders are the headers of a request that another server than the first may get.
// Any other may be a credential.
var plainHeaders = []string{"Accept", "Accept-Encoding", "Accept-Language", "Content-Type", "If-Modified-Since", "If-None-Match", "Range", "User-Agent"}

// CheckRedirect is for clients that follow redirects: at most ten, to http and https. What LimitHeaders
// removes is not sent.
func CheckRedirect(req *http.Request, via []*http.Request) error {
	if len(via) >= maxRedirects {
		return fmt.Errorf("stopped after %d redirects", maxRedirects)
	}
	if req.URL.Scheme != "http" && req.URL.Scheme != "https" {
		return errors.New("redirect to an address that is not http or https")
	}
	LimitHeaders(req, via[0])
	return nil
}

// LimitHeaders removes from a request that follows a redirect what is only for the server of the
// first request: credentials and all other headers with a special meaning. The header Referer, which has the
// query of the address before, is never sent.
func LimitHeaders(req, first *http.Request) {
	req.Header.Del("Referer")
	if req.URL.Scheme == first.URL.Scheme && req.URL.Host == first.URL.Host {
		return
	}
	for name := range req.Header {
		if !slices.Contains(plainHeaders, name) {
			req.Header.Del(name)
		}
	}
	req.Host = ""
}
