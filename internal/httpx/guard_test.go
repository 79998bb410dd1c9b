package httpx

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/internal/trust"
)

// guarded returns the context of an untrusted document.
func guarded(t *testing.T, hosts ...string) context.Context {
	return trust.With(t.Context(), trust.ForDocument("https://docs.example.com/a.yaml", false, trust.Grants{Hosts: hosts}, nil))
}

// call sends a request for a document through a transport with a proxy, which is recorded, and returns the error.
func call(ctx context.Context, t *testing.T, proxy, address string) string {
	t.Helper()
	u, err := url.Parse(proxy)
	testkit.Must(t, err)
	transport := Transport(1)
	transport.Proxy = func(req *http.Request) (*url.URL, error) { return policyProxy(http.ProxyURL(u), req) }
	t.Cleanup(transport.CloseIdleConnections)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	testkit.Must(t, err)
	transport.DialContext = Dialer().DialContext // DialContext knows only the proxy of the environment
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return err.Error()
	}
	_ = resp.Body.Close()
	return resp.Status
}

func TestPolicyProxy(t *testing.T) {
	testkit.ResolveNames(t, map[string][]string{
		"public.example.com.": {"93.184.216.34"}, "inside.example.com.": {"10.0.0.7"}, "rebound.example.com.": {"93.184.216.34", "169.254.169.254"},
	})
	var asked []string
	proxy := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked = append(asked, r.URL.Host) }))
	t.Cleanup(proxy.Close)
	for _, c := range []struct{ address, want string }{
		{"http://public.example.com/", "200 OK"},
		{"http://inside.example.com/", "the document may not call the private server inside.example.com:80"},
		{"http://unknown.example.com/", "the document may not call the server unknown.example.com:80, whose address cannot be checked before the proxy resolves its name"},
		{"http://granted.example.com/", "200 OK"},
		{"http://metadata.google.internal/", "private server"},
		{"http://2130706433/", "private server"},
		{"http://0x7f.1/", "private server"},
		{"http://[::ffff:169.254.169.254]/", "private server"},
		{"http://[64:ff9b::a00:1]/", "private server"},
		{proxy.URL + "/", "private server"},
		{"http://rebound.example.com/", "200 OK"},
		{"http://rebound.example.com/", "private server"}, // each request is checked
	} {
		if got := call(guarded(t, "granted.example.com"), t, proxy.URL, c.address); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s", c.address, got)
		}
	}
	if got := call(t.Context(), t, proxy.URL, "http://unknown.example.com/"); got != "200 OK" { // of a trusted document
		t.Error(got)
	}
	t.Setenv(trustProxy, "1")
	for address, want := range map[string]string{"http://unknown.example.com/": "200 OK", "http://inside.example.com/": "private server", "http://2130706433/": "private server"} {
		if got := call(guarded(t), t, proxy.URL, address); !strings.Contains(got, want) {
			t.Errorf("%s: %s", address, got)
		}
	}
	if got := strings.Join(asked[:min(3, len(asked))], " "); got != "public.example.com granted.example.com rebound.example.com" {
		t.Errorf("the proxy was asked for %s", got)
	}
}

// TestDialContext_Rebinding has a name whose address changes after it was checked: what is
// checked is the address of the connection.
func TestDialContext_Rebinding(t *testing.T) {
	var called bool
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called = true }))
	t.Cleanup(server.Close)
	testkit.ResolveNames(t, map[string][]string{"rebound.example.com.": {"93.184.216.34", "127.0.0.1"}})
	p := trust.From(guarded(t))
	u, err := url.Parse("http://rebound.example.com" + server.URL[strings.LastIndex(server.URL, ":"):])
	testkit.Must(t, err)
	_, err = CheckProxied(http.ProxyURL(u), (&http.Request{URL: u}).WithContext(t.Context()), func(addresses []netip.Addr) error {
		if len(addresses) != 1 || addresses[0].Unmap().String() != "93.184.216.34" {
			t.Errorf("first resolved to %s", addresses)
		}
		return nil
	})
	testkit.Must(t, err)
	client := &http.Client{Transport: Transport(1)}
	resp, err := client.Do((&http.Request{Method: http.MethodGet, URL: u, Header: http.Header{}}).WithContext(trust.With(t.Context(), p)))
	if err == nil {
		_ = resp.Body.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "private server") || called {
		t.Error(err, called)
	}
}
