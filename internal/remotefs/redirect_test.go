package remotefs

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestOpen_RedirectToPlainHTTP(t *testing.T) {
	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("was called") }))
	defer plain.Close()
	secure := httptest.NewTLSServer(http.RedirectHandler(plain.URL, http.StatusFound))
	defer secure.Close()
	c := new(Client)
	c.http().Transport = secure.Client().Transport
	if _, err := c.Open(t.Context(), secure.URL); err == nil || !strings.Contains(err.Error(), "redirect from https to http") {
		t.Errorf("got %v", err)
	}
	_ = c.Close()
}

// TestOpen_RedirectSendsNoReferer checks that a signed address is not sent to the
// target of its redirect.
func TestOpen_RedirectSendsNoReferer(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Referer") + r.Header.Get("Authorization"); got != "" {
			t.Errorf("received %q", got)
		}
	}))
	defer other.Close()
	first := httptest.NewServer(http.RedirectHandler(strings.Replace(other.URL, "127.0.0.1", "localhost", 1), http.StatusFound))
	defer first.Close()
	in, err := Open(t.Context(), strings.Replace(first.URL, "://", "://ann:s3cret@", 1)+"/?sig=s3cret")
	if err != nil {
		t.Fatal(err)
	}
	if err := in.Close(); err != nil {
		t.Error(err)
	}
}
