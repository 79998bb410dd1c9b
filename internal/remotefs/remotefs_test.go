package remotefs_test

import (
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/remotefs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRemote(t *testing.T) {
	tests := map[string]string{
		"a.csv": "", "/a/b.csv": "", `C:\a.csv`: "", "c://x": "", "file:///a": "", "local://a": "", "a b://c": "", "://x": "",
		"HTTPS://h/a": "https", "s3://b/k": "s3", "memory://x": "memory",
	}
	for address, want := range tests {
		if got, ok := remotefs.Remote(address); got != want || ok != (want != "") {
			t.Errorf("%q: got %q, %v", address, got, ok)
		}
	}
}

func TestJoin(t *testing.T) {
	tests := []struct{ base, ref, want string }{
		{"a/app.yaml", "m.yaml", "a/m.yaml"},
		{"a/app.yaml", "../m.yaml", "m.yaml"},
		{"file:///a/app.yaml", "m.yaml", "/a/m.yaml"},
		{"a/app.yaml", "/x/../m.yaml", "/m.yaml"},
		{"a/app.yaml", "https://h/m.yaml", "https://h/m.yaml"},
		{"https://h/a/app.yaml?sig=1", "m.yaml", "https://h/a/m.yaml"},
		{"https://h/a/app.yaml", "../../m.yaml", "https://h/m.yaml"},
		{"https://u:p@h/a/app.yaml", "b/m.yaml", "https://u:p@h/a/b/m.yaml"},
		{"https://h/a/app.yaml", "/m.yaml", "https://h/m.yaml"},
		{"https://h/a/app.yaml", "a:b.yaml", "https://h/a/a:b.yaml"},
		{"https://h", "m.yaml", "https://h/m.yaml"},
		{"s3://b/a/app.yaml", "m.yaml", "s3://b/a/m.yaml"},
		{"s3://b/a/app.yaml", "../../../m.yaml", "s3://b/m.yaml"},
		{"s3://b/a/app.yaml", "/m.yaml", "s3://b/m.yaml"},
		{"abfs://c@acc.dfs.core.windows.net/a/app.yaml", "m.yaml", "abfs://c@acc.dfs.core.windows.net/a/m.yaml"},
		{"s3://b/a/app.yaml", "gs://b/m.yaml", "gs://b/m.yaml"},
	}
	for _, tt := range tests {
		if got := remotefs.Join(tt.base, tt.ref); got != tt.want {
			t.Errorf("%s with %s: got %s, want %s", tt.base, tt.ref, got, tt.want)
		}
	}
}

func TestIsUnder(t *testing.T) {
	tests := []struct {
		document, address string
		want              bool
	}{
		{"https://h/a/app.yaml?sig=1", "https://h/a/m.yaml", true},
		{"https://h/a/app.yaml", "https://H/a/b/m.yaml", true},
		{"https://h/a/app.yaml", "https://h/m.yaml", false},
		{"https://h/a/app.yaml", "https://h/ab.yaml", false},
		{"https://h/a/app.yaml", "http://h/a/m.yaml", false},
		{"https://h/a/app.yaml", "https://h:8443/a/m.yaml", false},
		{"https://h/a/app.yaml", "https://h.evil/a/m.yaml", false},
		{"https://h/a/app.yaml", "https://h/a/../m.yaml", false},
		{"https://h/a/app.yaml", "https://h/a/%2e%2e/m.yaml", false},
		{"https://h/a/app.yaml", "https://h/a/..%2fm.yaml", false},
		{"https://h/a/app.yaml", "https://u@h/a/m.yaml", false},
		{"https://u:p@h/a/app.yaml", "https://u:p@h/a/m.yaml", true},
		{"https://h", "https://h/m.yaml", true},
		{"s3://b/a/app.yaml", "s3://b/a/m.yaml", true},
		{"s3://b/a/app.yaml", "s3://b/m.yaml", false},
		{"s3://b/a/app.yaml", "s3://c/a/m.yaml", false},
		{"s3://b/a%zz/app.yaml", "s3://b/a%zz/m.yaml", true},
		{"s3://b/a%zz/app.yaml", "s3://b/a%zz/../m.yaml", false},
	}
	for _, tt := range tests {
		if got := remotefs.IsUnder(remotefs.Base(tt.document), tt.address); got != tt.want {
			t.Errorf("%s from %s: got %v", tt.address, tt.document, got)
		}
	}
}

func TestRedacted(t *testing.T) {
	tests := map[string]string{
		"a?b.csv":                         "a?b.csv",
		"https://ann:s3cret@h/a?sig=x#y":  "https://h/a",
		"https://h":                       "https://h",
		"https://h/":                      "https://h/",
		"https://h?key=s3cret":            "https://h",
		"s3://key:s3cret@b/a":             "s3://b/a",
		"abfs://c@acc.dfs.x/a?sig=s3cret": "abfs://c@acc.dfs.x/a",
	}
	for address, want := range tests {
		if got := remotefs.Redacted(address); got != want {
			t.Errorf("%s: got %s, want %s", address, got, want)
		}
	}
}

func read(t *testing.T, address string) string {
	t.Helper()
	in, err := remotefs.Open(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(in)
	if err := errors.Join(err, in.Close()); err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestLocal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "a.txt")
	out, err := remotefs.Create(t.Context(), "file://"+path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(out, "one"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("visible before Commit: %v", err)
	}
	if err := out.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := out.Abort(); err != nil {
		t.Error(err)
	}
	if got := read(t, path); got != "one" {
		t.Errorf("got %q", got)
	}

	if out, err = remotefs.Create(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(out, "two"); err != nil {
		t.Fatal(err)
	}
	if err := out.Abort(); err != nil {
		t.Error(err)
	}
	if got := read(t, "file://"+path); got != "one" {
		t.Errorf("after Abort: %q", got)
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}

func TestLocalErrors(t *testing.T) {
	dir := t.TempDir()
	_, err := remotefs.Open(t.Context(), filepath.Join(dir, "none"))
	var missing *remotefs.NotFoundError
	if !errors.As(err, &missing) || !errors.Is(err, fs.ErrNotExist) || !strings.HasSuffix(err.Error(), "none: does not exist") {
		t.Error(err)
	}
	for name, open := range map[string]func() error{
		"open":   func() error { _, err := remotefs.Open(t.Context(), dir); return err },
		"create": func() error { _, err := remotefs.Create(t.Context(), dir); return err },
	} {
		var access *remotefs.AccessError
		if err := open(); !errors.As(err, &access) || access.Reason() != "is a directory, not a file" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSchemes(t *testing.T) {
	_, err := remotefs.Open(t.Context(), "memory://x/y")
	var scheme *remotefs.SchemeError
	if !errors.As(err, &scheme) || scheme.Scheme != "memory" || !strings.Contains(err.Error(), "https, s3, gs") {
		t.Error(err)
	}
	for _, address := range []string{"s3://", "gs://bucket", "az://bucket/"} {
		if _, err := remotefs.Open(t.Context(), address); err == nil || !strings.Contains(err.Error(), "missing object key") {
			t.Errorf("%s: %v", address, err)
		}
	}
	if _, err := remotefs.Create(t.Context(), "https://u:s3cret@h/a"); err == nil || err.Error() != "https://h/a: https:// can only be read" {
		t.Error(err)
	}
}

func TestHTTP(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if user != "ann" || password != "s3cret" || r.URL.RawQuery != "sig=s3cret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, "hello")
	}))
	defer server.Close()
	address := strings.Replace(server.URL, "http://", "http://ann:s3cret@", 1) + "/a?sig=s3cret"
	if got := read(t, address); got != "hello" {
		t.Errorf("got %q", got)
	}
}

// oddServer fails in many ways.
func oddServer(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/missing":
		http.NotFound(w, r)
	case "/gone":
		w.WriteHeader(http.StatusGone)
	case "/forbidden":
		w.WriteHeader(http.StatusForbidden)
	case "/loop":
		http.Redirect(w, r, "/loop?sig=s3cret", http.StatusFound)
	case "/elsewhere":
		http.Redirect(w, r, "ftp://h/x", http.StatusFound)
	case "/moved":
		http.Redirect(w, r, "/private/x", http.StatusFound)
	case "/silent":
		<-r.Context().Done()
	case "/stalls":
		_, _ = io.WriteString(w, "begin")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	case "/cut":
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "begin")
	default:
		_, _ = io.WriteString(w, "moved here")
	}
}

func TestHTTPErrors(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(oddServer))
	defer server.Close()
	client, shortTimeout := &remotefs.Client{IdleTimeout: time.Hour}, &remotefs.Client{IdleTimeout: 100 * time.Millisecond}
	defer func() { _, _ = client.Close(), shortTimeout.Close() }()
	tests := map[string]string{
		"/missing":   "does not exist",
		"/gone":      "does not exist",
		"/forbidden": "the server answered 403 Forbidden",
		"/loop":      "stopped after 5 redirects",
		"/elsewhere": "redirect to ftp://",
		"/silent":    "no data from server for 100ms",
		"/stalls":    "no data from server for 100ms",
		"/cut":       "the connection was closed before the answer was complete",
	}
	for path, want := range tests {
		t.Run(path[1:], func(t *testing.T) {
			reader := client
			if strings.Contains(want, "no data") {
				reader = shortTimeout
			}
			in, err := reader.Open(t.Context(), strings.Replace(server.URL, "://", "://ann:s3cret@", 1)+path+"?sig=s3cret")
			if err == nil {
				_, err = io.ReadAll(in)
				_ = in.Close()
			}
			var reason interface{ Reason() string }
			if !errors.As(err, &reason) || reason.Reason() != want || err.Error() != server.URL+path+": "+want {
				t.Errorf("got %v", err)
			}
		})
	}
	errRefused := errors.New("refused")
	client.Allow = func(address string) error {
		if strings.Contains(address, "/private/") {
			return errRefused
		}
		return nil
	}
	if _, err := client.Open(t.Context(), server.URL+"/moved"); !errors.Is(err, errRefused) {
		t.Errorf("got %v", err)
	}
	for address, want := range map[string]string{
		"http://":              "invalid URL",
		"http://h h/?key=x":    "invalid URL",
		"http://127.0.0.1:1/x": "connection refused",
	} {
		if _, err := client.Open(t.Context(), address); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "key=") {
			t.Errorf("%s: %v", address, err)
		}
	}
}
