package access_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/internal/testkit"
)

func TestMain(m *testing.M) {
	if address := os.Getenv(connectVariable); address != "" {
		openConnections(address)
		return
	}
	goleak.VerifyTestMain(m)
}

const (
	ciKey  = "ci-key-0123456789abcdef"
	adaKey = "ada-key-0123456789abcdef"
)

// server is a running server under access control.
type server struct {
	control *access.Control
	http    *http.Server
	url     string
	log     *logBuffer
	client  *http.Client
}

// logBuffer collects log lines.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// start serves h on a loopback port. A nil h writes the name of the caller.
func start(t testing.TB, cfg access.Config, h http.Handler) *server {
	t.Helper()
	lines := &logBuffer{}
	cfg.Logger = slog.New(slog.NewJSONHandler(lines, &slog.HandlerOptions{Level: slog.LevelDebug}))
	control, err := access.New(cfg)
	testkit.Must(t, err)
	if h == nil {
		h = http.HandlerFunc(writeCaller)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	s := &server{control: control, http: control.Server(h), log: lines, url: "http://" + l.Addr().String(), client: &http.Client{Transport: &http.Transport{}}}
	if s.http.TLSConfig != nil {
		s.url = "https://" + l.Addr().String()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = control.Serve(s.http, l)
	}()
	t.Cleanup(func() {
		s.client.CloseIdleConnections()
		_ = s.http.Close()
		<-done
	})
	return s
}

func writeCaller(w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	p := access.PrincipalOf(r.Context())
	w.Header().Set("Content-Type", "text/plain")
	_, _ = io.WriteString(w, p.Name+" "+strings.Join(p.Roles, ","))
}

// answer is a response, read completely.
type answer struct {
	status int
	header http.Header
	body   string
}

// code returns the code of a problem.
func (a answer) code() string {
	var p struct{ Code string }
	_ = json.Unmarshal([]byte(a.body), &p)
	return p.Code
}

// send sends a request with headers as "Name: value".
func (s *server) send(t testing.TB, method, path string, body io.Reader, headers ...string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), method, s.url+path, body)
	testkit.Must(t, err)
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			r.Host = value
			continue
		}
		r.Header.Add(name, value)
	}
	response, err := s.client.Do(r)
	testkit.Must(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	testkit.Must(t, err)
	return answer{response.StatusCode, response.Header, string(text)}
}

func (s *server) get(t testing.TB, path string, headers ...string) answer {
	t.Helper()
	return s.send(t, http.MethodGet, path, nil, headers...)
}

// Protocols with another form of errors write them.
func TestControl_WriteProblem(t *testing.T) {
	s := start(t, access.Config{Keys: "ci:" + ciKey, Limits: access.Limits{Rate: 0.1, Burst: 1},
		WriteProblem: func(w http.ResponseWriter, r *http.Request, p *problem.Problem) {
			w.WriteHeader(p.Status)
			_, _ = io.WriteString(w, r.URL.Path+" "+p.Code)
		}}, nil)
	if got := s.get(t, "/v1/models"); got.status != 401 || got.body != "/v1/models unauthorized" || got.header.Get("WWW-Authenticate") == "" {
		t.Errorf("got %d %s", got.status, got.body)
	}
	s.get(t, "/", bearer(ciKey))
	if got := s.get(t, "/", bearer(ciKey)); got.body != "/ rate_limited" || got.header.Get("Retry-After") == "" {
		t.Errorf("got %d %s", got.status, got.body)
	}
}

func TestControl_Keys(t *testing.T) {
	s := start(t, access.Config{Keys: "ci:" + ciKey + ", ada:" + adaKey}, nil)
	tests := []struct {
		name    string
		headers []string
		status  int
		body    string // of accepted requests
		code    string
	}{
		{"bearer", []string{"Authorization: Bearer " + ciKey}, 200, "ci ", ""},
		{"scheme in lower case", []string{"Authorization: bearer " + ciKey}, 200, "ci ", ""},
		{"X-API-Key", []string{"X-API-Key: " + adaKey}, 200, "ada ", ""},
		{"none", nil, 401, "", "unauthorized"},
		{"wrong", []string{"Authorization: Bearer " + ciKey + "x"}, 401, "", "invalid_credential"},
		{"prefix of a key", []string{"X-API-Key: " + ciKey[:len(ciKey)-1]}, 401, "", "invalid_credential"},
		{"hash of a key", []string{"X-API-Key: " + strings.Repeat("0", 64)}, 401, "", "invalid_credential"},
		{"empty", []string{"X-API-Key: "}, 401, "", "invalid_credential"},
		{"basic", []string{"Authorization: Basic " + ciKey}, 401, "", "invalid_credential"},
		{"two keys", []string{"X-API-Key: " + ciKey, "X-API-Key: " + adaKey}, 401, "", "invalid_credential"},
		{"two headers", []string{"X-API-Key: " + ciKey, "Authorization: Bearer " + ciKey}, 401, "", "invalid_credential"},
		{"name of a key", []string{"X-API-Key: ci"}, 401, "", "invalid_credential"},
		{"invented token", []string{"Authorization: Bearer a.b.c"}, 401, "", "invalid_credential"},
	}
	for _, test := range tests {
		got := s.get(t, "/flows", test.headers...)
		if got.status != test.status || got.status == 200 && got.body != test.body || got.code() != test.code {
			t.Errorf("%s: got %d %s", test.name, got.status, got.body)
		}
		if got.status == 401 && !strings.HasPrefix(got.header.Get("WWW-Authenticate"), `Bearer realm="qtype"`) {
			t.Errorf("%s: WWW-Authenticate is %q", test.name, got.header.Get("WWW-Authenticate"))
		}
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if got := s.get(t, path); got.status != 200 {
			t.Errorf("%s without a key: %d", path, got.status)
		}
		if got := s.send(t, http.MethodPost, path, nil); got.status != 401 {
			t.Errorf("POST %s without a key: %d", path, got.status)
		}
	}
	for _, path := range []string{"/", "//healthz", "/healthz/", "/healthz/../flows", "/x/%2e%2e/healthz"} {
		if got := s.get(t, path); got.status != 401 {
			t.Errorf("%s without a key: %d", path, got.status)
		}
	}
	if text := s.log.String(); strings.Contains(text, ciKey[:10]) || strings.Contains(text, adaKey[:10]) || !strings.Contains(text, `"reason":"unknown key"`) {
		t.Errorf("log: %s", text)
	}
}

// Refused requests cannot fill the disk with lines, and no credential is printed.
func TestControl_LogIsLimited(t *testing.T) {
	s := start(t, access.Config{Keys: "ci:" + ciKey}, nil)
	for range 1000 {
		s.get(t, "/"+strings.Repeat("a", 500))
	}
	lines := strings.Count(s.log.String(), "\n")
	if lines < 200 || lines >= 1000 || strings.Contains(s.log.String(), strings.Repeat("a", 300)) {
		t.Errorf("%d lines for 1000 requests", lines)
	}
}

func TestControl_Authentication(t *testing.T) {
	p := newIssuer(t)
	both := p.config()
	both.Keys = "ci:" + ciKey
	for want, cfg := range map[string]access.Config{"none": {}, "key": {Keys: "ci:" + ciKey}, "oidc": both} {
		control, err := access.New(cfg)
		testkit.Must(t, err)
		if got := control.Authentication(); got != want || control.Authenticated() != (want != "none") {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
