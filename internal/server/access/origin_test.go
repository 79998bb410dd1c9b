package access_test

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// A page on the Internet cannot use a server on loopback without authentication.
func TestControl_LocalMode(t *testing.T) {
	s := start(t, access.Config{}, nil)
	host := strings.TrimPrefix(s.url, "http://")
	port := host[strings.LastIndex(host, ":"):]
	tests := []struct {
		name    string
		method  string
		headers []string
		status  int
	}{
		{"program", "POST", nil, 200},
		{"by name", "POST", []string{"Host: localhost" + port}, 200},
		{"IPv6", "GET", []string{"Host: [::1]" + port}, 200},
		{"own page", "POST", []string{"Origin: http://" + host, "Sec-Fetch-Site: same-origin"}, 200},
		{"own page, old browser", "POST", []string{"Origin: http://" + host}, 200},
		{"address bar", "GET", []string{"Sec-Fetch-Site: none", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"}, 200},
		{"link of a page", "GET", []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"}, 200},
		{"rebinding", "GET", []string{"Host: attacker.example" + port}, 421},
		{"rebinding, own origin", "POST", []string{"Host: attacker.example" + port, "Origin: http://attacker.example" + port, "Sec-Fetch-Site: same-origin"}, 421},
		{"rebinding by a similar name", "GET", []string{"Host: localhost.attacker.example" + port}, 421},
		{"rebinding by a name of digits", "GET", []string{"Host: 127.0.0.1.nip.io"}, 421},
		{"rebinding with a final dot", "GET", []string{"Host: attacker.example."}, 421},
		{"other site", "POST", []string{"Origin: https://attacker.example", "Sec-Fetch-Site: cross-site"}, 403},
		{"other site, old browser", "POST", []string{"Origin: https://attacker.example"}, 403},
		{"other site as text", "POST", []string{"Origin: https://attacker.example", "Content-Type: text/plain"}, 403},
		{"other port", "POST", []string{"Origin: http://localhost:1", "Sec-Fetch-Site: same-site"}, 403},
		{"sandbox", "POST", []string{"Origin: null"}, 403},
		{"sandbox reads", "GET", []string{"Origin: null"}, 403},
		{"form of a page", "POST", []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"}, 403},
		{"script of a page", "GET", []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: script"}, 403},
		{"frame of a page", "GET", []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe"}, 403},
		{"fetch of a page", "GET", []string{"Origin: https://attacker.example", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: cors"}, 403},
		{"preflight", "OPTIONS", []string{"Origin: https://attacker.example", "Access-Control-Request-Method: POST"}, 403},
	}
	for _, test := range tests {
		got := s.send(t, test.method, "/flows/talk", nil, test.headers...)
		if got.status != test.status {
			t.Errorf("%s: got %d %s, want %d", test.name, got.status, got.body, test.status)
		}
		for name := range got.header {
			if strings.HasPrefix(name, "Access-Control-") {
				t.Errorf("%s: header %s", test.name, name)
			}
		}
	}
}

func TestControl_AllowedHosts(t *testing.T) {
	s := start(t, access.Config{Hosts: []string{"App.Example.com:443"}}, nil)
	for host, want := range map[string]int{"app.example.com": 200, "APP.example.com.:8000": 200, "localhost": 200, "other.example.com": 421} {
		if got := s.get(t, "/", "Host: "+host); got.status != want {
			t.Errorf("%s: %d", host, got.status)
		}
	}
	named := start(t, access.Config{Host: "box.example.com"}, nil)
	for host, want := range map[string]int{"box.example.com:8000": 200, "app.example.com": 421} {
		if got := named.get(t, "/", "Host: "+host); got.status != want {
			t.Errorf("%s of a server on box.example.com: %d", host, got.status)
		}
	}
	keys := start(t, access.Config{Keys: "ci:" + ciKey}, nil)
	if got := keys.get(t, "/", "Host: any.example.com", bearer(ciKey)); got.status != 200 {
		t.Errorf("with a key any name is accepted, got %d", got.status)
	}
	for _, invalid := range []string{"", "*", "https://app.example.com", "a b"} {
		if _, err := access.New(access.Config{Hosts: []string{invalid}}); err == nil {
			t.Errorf("the host %q is accepted", invalid)
		}
	}
}

func TestControl_CORS(t *testing.T) {
	const origin = "https://app.example.com"
	s := start(t, access.Config{Keys: "ci:" + ciKey, Origins: []string{origin, "http://localhost:5173"}}, nil)
	preflight := func(from string, headers ...string) answer {
		return s.send(t, http.MethodOptions, "/flows/talk", nil,
			append(headers, "Origin: "+from, "Access-Control-Request-Method: POST")...)
	}
	got := preflight(origin, "Access-Control-Request-Headers: authorization, content-type, x-session-id")
	want := map[string]string{"Access-Control-Allow-Origin": origin, "Access-Control-Allow-Headers": "authorization, content-type, x-session-id",
		"Access-Control-Allow-Methods": "GET, HEAD, POST, PUT, PATCH, DELETE", "Access-Control-Max-Age": "600", "Access-Control-Allow-Credentials": ""}
	for name, value := range want {
		if got.header.Get(name) != value {
			t.Errorf("%s is %q, want %q", name, got.header.Get(name), value)
		}
	}
	if got.status != 204 || got.header.Values("Vary")[0] != "Origin" {
		t.Errorf("preflight: %d, Vary %v", got.status, got.header.Values("Vary"))
	}
	for _, other := range []string{"https://app.example.com.attacker.example", "https://APP.example.com", "http://app.example.com", "https://app.example.com:444", "null"} {
		got := preflight(other)
		if got.status != 403 || got.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %d %v", other, got.status, got.header)
		}
	}
	if got := preflight(origin, "Access-Control-Request-Headers: a\tb"); got.header.Get("Access-Control-Allow-Headers") != "" {
		t.Errorf("invalid name: %v", got.header)
	}
	called := s.send(t, http.MethodPost, "/", nil, "Origin: "+origin, "Sec-Fetch-Site: cross-site", bearer(ciKey))
	if called.status != 200 || called.header.Get("Access-Control-Allow-Origin") != origin || called.header.Get("Cross-Origin-Resource-Policy") != "cross-origin" {
		t.Errorf("call: %d %v", called.status, called.header)
	}
	refused := s.send(t, http.MethodPost, "/", nil, "Origin: "+origin)
	if refused.status != 401 || refused.header.Get("Access-Control-Allow-Origin") != origin {
		t.Errorf("call without a key: the page cannot read the error: %d %v", refused.status, refused.header)
	}
}

func TestControl_CORSAnyOrigin(t *testing.T) {
	s := start(t, access.Config{Keys: "ci:" + ciKey, Origins: []string{"*"}}, nil)
	got := s.get(t, "/", "Origin: https://x.example", bearer(ciKey))
	if got.header.Get("Access-Control-Allow-Origin") != "*" || got.header.Get("Access-Control-Allow-Credentials") != "" {
		t.Errorf("got %v", got.header)
	}
	if _, err := access.New(access.Config{Origins: []string{"*"}}); err == nil || !strings.Contains(err.Error(), "needs authentication") {
		t.Errorf("without authentication: %v", err)
	}
	for _, invalid := range []string{"", "app.example.com", "https://app.example.com/", "https://*.example.com", "file:///x", "null", "https://App.example.com"} {
		if _, err := access.New(access.Config{Origins: []string{invalid}}); err == nil {
			t.Errorf("the origin %q is accepted", invalid)
		}
	}
}

// In local mode a configured page may call.
func TestControl_LocalCORS(t *testing.T) {
	s := start(t, access.Config{Origins: []string{"http://localhost:5173"}}, nil)
	for origin, want := range map[string]int{"http://localhost:5173": 200, "http://localhost:5174": 403} {
		for _, method := range []string{"GET", "POST"} {
			if got := s.send(t, method, "/", nil, "Origin: "+origin, "Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: cors"); got.status != want {
				t.Errorf("%s from %s: %d", method, origin, got.status)
			}
		}
	}
}

func TestControl_SecurityHeaders(t *testing.T) {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/page":
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.Header().Set("Cache-Control", "max-age=60")
		case "/own":
			w.Header().Set("Content-Security-Policy", "default-src 'self'")
		}
		_, _ = io.WriteString(w, "<html>")
	})
	s := start(t, access.Config{}, h)
	page, data, own := s.get(t, "/page"), s.get(t, "/data"), s.get(t, "/own")
	for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
		"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Strict-Transport-Security": ""} {
		for _, got := range []answer{page, data, own, s.get(t, "/healthz"), s.get(t, "/", "Host: attacker.example")} {
			if got.header.Get(name) != want {
				t.Errorf("%s is %q, want %q", name, got.header.Get(name), want)
			}
		}
	}
	policy := page.header.Get("Content-Security-Policy")
	for _, part := range []string{"default-src 'none'", "script-src 'self';", "frame-ancestors 'none'", "connect-src 'self'", "img-src 'self' data: blob:;"} {
		if !strings.Contains(policy, part) {
			t.Errorf("the policy of pages has no %s: %s", part, policy)
		}
	}
	if got := data.header.Get("Content-Security-Policy"); got != "default-src 'none'; frame-ancestors 'none'; sandbox" {
		t.Errorf("policy of data: %s", got)
	}
	if got := own.header.Get("Content-Security-Policy"); got != "default-src 'self'" {
		t.Errorf("policy of the handler: %s", got)
	}
	if page.header.Get("Cache-Control") != "max-age=60" || data.header.Get("Cache-Control") != "no-store" {
		t.Errorf("Cache-Control: %v, %v", page.header["Cache-Control"], data.header["Cache-Control"])
	}
}

// Values from requests cannot add headers to responses or lines to the log.
func TestControl_HeaderInjection(t *testing.T) {
	s := start(t, access.Config{Keys: "ci:" + ciKey, Origins: []string{"https://app.example.com"}}, nil)
	requests := []string{
		"GET /%0d%0aSet-Cookie:a=b HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-API-Key: a\rSet-Cookie: a=b\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer a\x00Set-Cookie: a=b\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer \"realm=x, Set-Cookie: a=b\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-API-Key : " + ciKey + "\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: localhost\r\nHost: attacker.example\r\nConnection: close\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\n Set-Cookie: a=b\r\nConnection: close\r\n\r\n",
		"OPTIONS / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nOrigin: https://app.example.com\r\nAccess-Control-Request-Method: GET\r\nAccess-Control-Request-Headers: a\x0bSet-Cookie\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET http://attacker.example/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
	}
	for _, request := range requests {
		conn := s.dial(t)
		_, err := io.WriteString(conn, request)
		testkit.Must(t, err)
		r := bufio.NewReader(conn)
		answers := 0
		for {
			got, err := http.ReadResponse(r, nil)
			if err != nil {
				break
			}
			answers++
			_, _ = io.Copy(io.Discard, got.Body)
			_ = got.Body.Close()
			if got.StatusCode == http.StatusOK || len(got.Cookies()) > 0 || got.Header.Get("Access-Control-Allow-Headers") != "" {
				t.Errorf("%q: %s %v", request, got.Status, got.Header)
			}
		}
		if answers != 1 {
			t.Errorf("%q: %d responses", request, answers)
		}
	}
	for line := range strings.Lines(s.log.String()) {
		if !strings.HasPrefix(line, "{") {
			t.Errorf("log: %s", line)
		}
	}
}
