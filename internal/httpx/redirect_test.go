package httpx_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// TestCheckRedirect_Credentials follows redirects to the same server, to another port and
// back. Credentials are sent to the first server only.
func TestCheckRedirect_Credentials(t *testing.T) {
	var got []string
	var first, other *httptest.Server
	answer := func(name string, next func() string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var sent []string
			for _, key := range []string{"Authorization", "Cookie", "X-Api-Key", "Api-Key", "X-Goog-Api-Key", "Private-Token", "X-My-Header", "Referer", "Accept"} {
				if r.Header.Get(key) != "" {
					sent = append(sent, key)
				}
			}
			got = append(got, name+r.URL.Path+": "+strings.Join(sent, " "))
			if to := next(); r.URL.Path != "/end" && to != "" {
				http.Redirect(w, r, to, http.StatusFound)
			}
		})
	}
	steps := []string{}
	next := func() string {
		if len(steps) == 0 {
			return ""
		}
		to := steps[0]
		steps = steps[1:]
		return to
	}
	first, other = httptest.NewServer(answer("first", next)), httptest.NewServer(answer("other", next))
	t.Cleanup(first.Close)
	t.Cleanup(other.Close)
	steps = []string{first.URL + "/same", other.URL + "/away", first.URL + "/end"}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, first.URL+"/start?signature=x", http.NoBody)
	testkit.Must(t, err)
	for _, key := range []string{"Authorization", "Cookie", "X-Api-Key", "Api-Key", "X-Goog-Api-Key", "Private-Token", "X-My-Header", "Accept"} {
		req.Header.Set(key, "secret")
	}
	transport := httpx.Transport(1)
	t.Cleanup(transport.CloseIdleConnections)
	resp, err := (&http.Client{Transport: transport, CheckRedirect: httpx.CheckRedirect}).Do(req)
	testkit.Must(t, err)
	testkit.Must(t, resp.Body.Close())
	all := "Authorization Cookie X-Api-Key Api-Key X-Goog-Api-Key Private-Token X-My-Header Accept"
	want := []string{"first/start: " + all, "first/same: " + all, "other/away: Accept", "first/end: "}
	if len(got) != 4 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] || !strings.HasPrefix(got[3], want[3]) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

func TestCheckRedirect_Limits(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		to := "/again"
		if r.URL.Path == "/file" {
			to = "file:///etc/passwd"
		}
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusFound)
	}))
	t.Cleanup(server.Close)
	for path, want := range map[string]string{"/": "stopped after 10 redirects", "/file": "redirect to an address that is not http or https"} {
		resp, err := (&http.Client{CheckRedirect: httpx.CheckRedirect}).Get(server.URL + path)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
		if resp != nil {
			_ = resp.Body.Close()
		}
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}
