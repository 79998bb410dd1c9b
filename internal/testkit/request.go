package testkit

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Reply is a response that was read.
type Reply struct {
	Status int         // the status code
	Header http.Header // the headers
	Body   string      // the body without the line feed at its end
}

// Into parses the body.
func (r Reply) Into(t testing.TB, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.Body), v); err != nil {
		t.Fatalf("%v: %s", err, r.Body)
	}
}

// Request sends a request and reads the response. headers are pairs of name and value, sent as they
// are written.
func Request(t testing.TB, method, address, body string, headers ...string) Reply {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	Must(t, err)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header[headers[i]] = []string{headers[i+1]} // not in the canonical form
	}
	resp, err := http.DefaultClient.Do(req)
	Must(t, err)
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	Must(t, err)
	return Reply{resp.StatusCode, resp.Header, strings.TrimSuffix(string(raw), "\n")}
}
