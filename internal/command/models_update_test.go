package command

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
)

// TestModelsUpdate_Attacks reads files of models from servers that attack.
func TestModelsUpdate_Attacks(t *testing.T) {
	const rows = `{"openai": {"models": {"new-model": {"cost": {"input": 1}}}}}`
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	for range 33 {
		_, err := z.Write(bytes.Repeat([]byte{' '}, 1<<20))
		testkit.Must(t, err)
	}
	testkit.Must(t, z.Close())
	sent := make(chan http.Header, 1)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent <- r.Header
		_, _ = w.Write([]byte(rows))
	}))
	t.Cleanup(func() { testkit.CloseServer(other) })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/file":
			w.Header().Set("Location", "file:///etc/hostname")
			w.WriteHeader(http.StatusFound)
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		case "/other":
			http.Redirect(w, r, other.URL+"/models", http.StatusFound)
		case "/bomb":
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb.Bytes())
		case "/huge":
			part := bytes.Repeat([]byte{' '}, 1<<20)
			for range 40 {
				if _, err := w.Write(part); err != nil {
					return
				}
			}
		case "/latin":
			_, _ = w.Write([]byte(strings.Replace(rows, "new", "n\xe9w", 1)))
		}
	}))
	t.Cleanup(func() { testkit.CloseServer(server) })
	update := func(path string) (out, errs string) {
		cmd := testkit.Command(t, "qtype", "models", "update", strings.Replace(server.URL, "//", "//ada:secret@", 1)+path, "-o", "-")
		cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), "NO_PROXY=*")
		var o, e strings.Builder
		cmd.Stdout, cmd.Stderr = &o, &e
		_ = cmd.Run() // the output shows a failure
		return o.String(), e.String()
	}
	for path, want := range map[string]string{
		"/file": "redirect to an address that is not http or https", "/loop": "stopped after 10 redirects",
		"/bomb": "larger than 32 MiB", "/huge": "larger than 32 MiB", "/latin": "the file is not UTF-8 text",
	} {
		if out, errs := update(path); out != "" || !strings.Contains(errs, want) || strings.Contains(errs, "secret") {
			t.Errorf("%s: %q, %s", path, out, errs)
		}
	}
	if out, errs := update("/other"); !strings.Contains(out, "new-model") || strings.Contains(out+errs, "secret") {
		t.Errorf("%s\n%s", out, errs)
	}
	if h := <-sent; h.Get("Authorization") != "" || h.Get("Referer") != "" {
		t.Errorf("another server got %v", h)
	}
}
