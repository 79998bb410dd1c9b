package tool

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/spec"
)

func TestPrivate(t *testing.T) {
	tests := map[string]bool{
		"127.0.0.1": true, "127.9.9.9": true, "10.0.0.1": true, "172.16.0.1": true, "192.168.1.1": true, "169.254.169.254": true, "100.64.0.1": true,
		"0.0.0.0": true, "0.1.2.3": true, "255.255.255.255": true, "224.0.0.1": true, "198.18.0.1": true, "240.0.0.1": true, "192.0.0.8": true,
		"::1": true, "::": true, "fe80::1": true, "fe80::1%eth0": true, "fc00::1": true, "fd00:ec2::254": true, "fec0::1": true, "ff02::1": true,
		"::ffff:127.0.0.1": true, "::ffff:10.0.0.1": true, "64:ff9b::7f00:1": true, "64:ff9b::a9fe:a9fe": true, "2002:7f00:1::": true, "::127.0.0.1": true,
		"8.8.8.8": false, "1.1.1.1": false, "172.32.0.1": false, "100.128.0.1": false, "2606:4700::1111": false, "::ffff:8.8.8.8": false, "64:ff9b::808:808": false,
	}
	for text, want := range tests {
		if got := private(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// local starts a server that counts its requests.
func local(t *testing.T) (*httptest.Server, *int) {
	t.Helper()
	n := 0
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { n++ }))
	t.Cleanup(s.Close)
	return s, &n
}

func declare(t *testing.T, endpoint string, c *http.Client) Tool {
	t.Helper()
	made, err := NewAPI(&spec.APITool{ToolBase: spec.ToolBase{ID: "find"}, Endpoint: endpoint}, Options{HTTP: c})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestGuard_ChecksResolvedAddress(t *testing.T) {
	s, n := local(t)
	port := s.URL[strings.LastIndex(s.URL, ":"):]
	tests := map[string]*http.Client{"own client": nil, "given client": s.Client(), "no proxy": {Transport: &http.Transport{}}}
	for name, c := range tests {
		for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]"} {
			_, err := declare(t, "http://"+host+port, c).Call(t.Context(), nil)
			if err == nil || !strings.Contains(err.Error(), "is a private address; set allow_private: true to call it") {
				t.Errorf("%s, %s: got %v", name, host, err)
			}
		}
	}
	if *n != 0 {
		t.Errorf("the server was called %d times", *n)
	}
}

// opaque is a transport whose dialer is not accessible.
type opaque struct{ next http.RoundTripper }

func (o opaque) RoundTrip(r *http.Request) (*http.Response, error) { return o.next.RoundTrip(r) }

func TestGuard_OtherTransport(t *testing.T) {
	s, n := local(t)
	_, err := declare(t, s.URL, &http.Client{Transport: opaque{s.Client().Transport}}).Call(t.Context(), nil)
	if err == nil || !strings.Contains(err.Error(), "127.0.0.1 is a private address") || *n != 0 {
		t.Errorf("got %v", err)
	}
}

func TestGuard_Proxy(t *testing.T) {
	var asked []string
	proxy := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked = append(asked, r.URL.Host) }))
	t.Cleanup(proxy.Close)
	u, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{Proxy: http.ProxyURL(u)}
	t.Cleanup(transport.CloseIdleConnections)
	c := &http.Client{Transport: transport}
	testkit.ResolveNames(t, map[string][]string{"shop.example.com.": {"93.184.216.34"}, "inside.example.com.": {"10.0.0.7"}})
	if _, err := declare(t, "http://shop.example.com/x", c).Call(t.Context(), nil); err != nil {
		t.Errorf("got %v", err)
	}
	_, err = declare(t, "http://unknown.example.com/x", c).Call(t.Context(), nil)
	if err == nil || !strings.Contains(err.Error(), "the address of unknown.example.com cannot be checked, because only the proxy can resolve the name; set allow_private: true") {
		t.Errorf("got %v", err)
	}
	for _, inside := range []string{"http://localhost/x", "http://169.254.169.254/latest/meta-data", "http://inside.example.com/", "http://2852039166/", "http://0xa9fea9fe/", "http://0251.0376.0251.0376/",
		"http://169.16689662/", "http://[::ffff:a9fe:a9fe]/", "http://[64:ff9b::a9fe:a9fe]/", "http://[2001:0:4136:e378:8000:63bf:5601:5601]/", "http://metadata.google.internal/", proxy.URL} {
		_, err := declare(t, inside, c).Call(t.Context(), nil)
		if err == nil || !strings.Contains(err.Error(), "is a private address") {
			t.Errorf("%s: got %v", inside, err)
		}
	}
	if len(asked) != 1 || asked[0] != "shop.example.com" {
		t.Errorf("the proxy was asked for %v", asked)
	}
}

func TestGuard_ChecksDialedAddress(t *testing.T) {
	s, n := local(t)
	if err := checkAddress(s.Listener.Addr().String()); err == nil {
		t.Error("the listener's address passed")
	}
	if err := checkAddress(net.JoinHostPort("not an address", "80")); err == nil || *n != 0 {
		t.Error("an address that cannot be read passed")
	}
}

// TestGuard_PrivateName has a public name with a private address: that of the connection is
// checked.
func TestGuard_PrivateName(t *testing.T) {
	s, n := local(t)
	testkit.ResolveNames(t, map[string][]string{"rebound.example.com.": {"127.0.0.1"}})
	_, err := declare(t, "http://rebound.example.com"+s.URL[strings.LastIndex(s.URL, ":"):], nil).Call(t.Context(), nil)
	if err == nil || !strings.Contains(err.Error(), "127.0.0.1 is a private address") || *n != 0 {
		t.Errorf("got %v, %d calls", err, *n)
	}
}
