package access_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/internal/testkit"
)

func TestAttachmentPolicy_Check(t *testing.T) {
	policy, err := access.NewAttachmentPolicy([]string{"Files.example.com", "cdn.example.com:8443", "*.images.example.com"})
	testkit.Must(t, err)
	tests := map[string]string{
		"https://files.example.com/a.png":            "",
		"https://FILES.example.com.:443/a.png":       "",
		"https://cdn.example.com:8443/a.png":         "",
		"https://a.b.images.example.com/a.png":       "",
		"https://images.example.com/a.png":           "does not fetch attachments from this host",
		"https://.images.example.com/a.png":          "does not fetch attachments from this host",
		"https://files.example.com.attacker.test/":   "does not fetch attachments from this host",
		"https://attackerimages.example.com/a.png":   "does not fetch attachments from this host",
		"https://files.example.com:8443/a.png":       "does not fetch attachments from this host",
		"https://files.example.com@attacker.test/":   "contains a user name",
		"https://attacker.test#@files.example.com/":  "does not fetch attachments from this host",
		"https://attacker.test\\@files.example.com/": "is not a URL",
		"https://169.254.169.254/latest/meta-data":   "does not fetch attachments from this host",
		"http://files.example.com/a.png":             "only over https",
		"file:///etc/passwd":                         "is not a URL",
		"gopher://files.example.com/":                "only over https",
		"//files.example.com/a.png":                  "only over https",
		"https:files.example.com":                    "is not a URL",
		"":                                           "is not a URL",
	}
	for address, want := range tests {
		err := policy.Check(address)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || problem.Of(err).Status != 422) {
			t.Errorf("%s: got %v, want %q", address, err, want)
		}
	}
	for _, invalid := range []string{"", "*", "*.", "https://files.example.com", "a*.example.com", "files.example.com/a", "a b"} {
		if _, err := access.NewAttachmentPolicy([]string{invalid}); err == nil {
			t.Errorf("the host %q is accepted", invalid)
		}
	}
}

// Without a list nothing is fetched; a name that resolves to a private address is not
// fetched even if it is on the list.
func TestAttachmentPolicy_Fetch(t *testing.T) {
	called := false
	local := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called = true }))
	t.Cleanup(local.Close)
	host := strings.TrimPrefix(local.URL, "https://")
	port := host[strings.LastIndex(host, ":"):]
	none, err := access.NewAttachmentPolicy(nil)
	testkit.Must(t, err)
	listed, err := access.NewAttachmentPolicy([]string{host, "localhost" + port})
	testkit.Must(t, err)
	for _, address := range []string{local.URL + "/a.png", "https://localhost" + port + "/a.png"} {
		if _, _, err := none.Fetch(t.Context(), address); err == nil || !strings.Contains(err.Error(), "does not fetch") {
			t.Errorf("no list, %s: %v", address, err)
		}
		if _, _, err := (*access.AttachmentPolicy)(nil).Fetch(t.Context(), address); err == nil {
			t.Errorf("no policy, %s: fetched", address)
		}
		if _, _, err := listed.Fetch(t.Context(), address); err == nil || err.Error() != "the attachment could not be fetched" {
			t.Errorf("listed, %s: %v", address, err)
		}
	}
	if called {
		t.Error("the local server was called")
	}
}

// Content, redirects and sizes, with a transport that leads all names to one server.
func TestAttachmentPolicy_FetchAllowed(t *testing.T) {
	files := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/a.png":
			w.Header().Set("Content-Type", "image/png; a=b")
			_, _ = io.WriteString(w, r.Host)
		case "/listed":
			http.Redirect(w, r, "https://b.files.example.com/a.png", http.StatusFound)
		case "/other":
			http.Redirect(w, r, "https://attacker.test/a.png", http.StatusFound)
		case "/plain":
			http.Redirect(w, r, "http://a.files.example.com/a.png", http.StatusFound)
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		case "/large":
			_, _ = w.Write(make([]byte, 21<<20))
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(files.Close)
	policy, err := access.NewAttachmentPolicy([]string{"*.files.example.com"})
	testkit.Must(t, err)
	transport := files.Client().Transport.(*http.Transport).Clone()
	transport.TLSClientConfig.InsecureSkipVerify = true
	transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", files.Listener.Addr().String())
	}
	t.Cleanup(transport.CloseIdleConnections)
	access.SetTransport(policy, transport)
	for path, want := range map[string]string{"/a.png": "a.files.example.com", "/listed": "b.files.example.com"} {
		content, mediaType, err := policy.Fetch(t.Context(), "https://a.files.example.com"+path)
		if err != nil || string(content) != want || mediaType != "image/png" {
			t.Errorf("%s: %q, %s, %v", path, content, mediaType, err)
		}
	}
	for path, want := range map[string]string{"/other": "does not fetch attachments from this host", "/plain": "only over https", "/loop": "could not be fetched",
		"/large": "is larger than 20971520 bytes", "/none": "could not be fetched"} {
		if _, _, err := policy.Fetch(t.Context(), "https://a.files.example.com"+path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
}
