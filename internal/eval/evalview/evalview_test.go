package evalview_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/eval/evalrun"
	"github.com/qtype-dev/qtype/internal/eval/evalview"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// serve serves a report and returns the address with the token.
func serve(t *testing.T, file string) *url.URL {
	t.Helper()
	raw := func(name, text string) map[string]json.RawMessage {
		return map[string]json.RawMessage{name: json.RawMessage(text)}
	}
	r := &evalrun.Report{Version: 1, App: "shop", Rows: 1, Variants: []evalrun.VariantReport{{ID: "base"}},
		Results: []*evalrun.Result{{Variant: "base", Row: 1234567, Inputs: raw("question", `"Where?"`), Outputs: raw("answer", `"Here <b>, key-1."`)}}}
	v, err := evalview.New(&evalrun.Page{Report: r}, file, func(text string) string { return strings.ReplaceAll(text, "key-1", "***") })
	testkit.Must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	address, ended := make(chan string, 1), make(chan error, 1)
	go func() { ended <- v.Serve(ctx, "0", func(a string) { address <- a }) }()
	t.Cleanup(func() {
		cancel()
		testkit.Must(t, <-ended)
	})
	u, err := url.Parse(<-address)
	testkit.Must(t, err)
	return u
}

// send sends a request with headers, in pairs.
func send(t *testing.T, method, address, body string, headers ...string) (status int, text string, h http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	testkit.Must(t, err)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(r)
	testkit.Must(t, err)
	defer response.Body.Close()
	all, err := io.ReadAll(response.Body)
	testkit.Must(t, err)
	return response.StatusCode, string(all), response.Header
}

// TestView checks who may read the page and write annotations: only who has the token, and no other page even with it.
func TestView(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.annotations.jsonl")
	u := serve(t, file)
	token, base := u.Query().Get("token"), "http://"+u.Host
	status, page, h := send(t, "GET", u.String(), "")
	if status != 200 || !strings.Contains(page, "Evaluation of shop") || strings.Contains(page, "key-1") || !strings.Contains(h.Get("Content-Security-Policy"), "connect-src 'self'; frame-ancestors 'none'") {
		t.Fatalf("%d %v %.300s", status, h, page)
	}
	bearer := []string{"Authorization", "Bearer " + token}
	const made = `{"row": 1234567, "variant": "base", "trial": 0, "label": "fail", "note": "too short"}`
	for name, c := range map[string]struct {
		method, path, body string
		headers            []string
		want               int
	}{
		"the page without a token":  {"GET", "/", "", nil, 403},
		"the page with another one": {"GET", "/?token=x", "", nil, 403},
		"annotations without token": {"GET", "/annotations", "", nil, 403},
		"a write without token":     {"POST", "/annotations", made, nil, 403},
		"a write of another origin": {"POST", "/annotations", made, append(bearer, "Origin", "https://attacker.example"), 403},
		"a write of another site":   {"POST", "/annotations", made, append(bearer, "Sec-Fetch-Site", "cross-site"), 403},
		"a rebound name":            {"POST", "/annotations", made, append(bearer, "Host", "attacker.example"), 421},
		"no annotation":             {"POST", "/annotations", `{"file": "/etc/passwd"}`, bearer, 400},
		"an unknown result":         {"POST", "/annotations", `{"row": 9, "variant": "base", "label": "fail"}`, bearer, 400},
		"a large one":               {"POST", "/annotations", `{"note": "` + strings.Repeat("x", 1<<20) + `"}`, bearer, 413},
	} {
		if status, text, _ := send(t, c.method, base+c.path, c.body, c.headers...); status != c.want {
			t.Errorf("%s: %d %.200s", name, status, text)
		}
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Fatalf("a refused request has written: %v", err)
	}
	for range 2 { // the second one replaces the first
		if status, text, _ := send(t, "POST", base+"/annotations", made, append(bearer, "Origin", base)...); status != 200 || strings.Count(text, "too short") != 1 {
			t.Fatalf("%d %s", status, text)
		}
	}
	line := testkit.ReadFile(t, file)
	if want := `{"answer":"Here <b>, ***.","label":"fail","note":"too short","question":"Where?","row":1234567,"time":"`; !strings.HasPrefix(line, want) || strings.Count(line, "\n") != 1 {
		t.Errorf("got %s, want %s", line, want)
	}
	if status, text, _ := send(t, "POST", base+"/annotations", `{"row": 1234567, "variant": "base", "label": "", "note": ""}`, bearer...); status != 200 || text != "[]\n" || testkit.ReadFile(t, file) != "" {
		t.Errorf("an empty one does not delete: %d %s", status, text)
	}
	testkit.Must(t, os.WriteFile(file, []byte("no JSON\n"), 0o600))
	if status, text, _ := send(t, "POST", base+"/annotations", made, bearer...); status != 500 || !strings.Contains(text, ":1: not an annotation") || testkit.ReadFile(t, file) != "no JSON\n" {
		t.Errorf("a file that is none of annotations: %d %s", status, text)
	}
}
