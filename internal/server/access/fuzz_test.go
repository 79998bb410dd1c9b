package access_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/spec"
)

// Errors of key files and of the environment never contain the text, which may be a key.
func FuzzParseKeys(f *testing.F) {
	hash := strings.Repeat("ab", 32)
	for _, seed := range []string{"ci:" + ciKey, "a:" + ciKey + ",b:" + adaKey, "ci:sha256:" + hash, "# x\n\na:sha256:" + hash + "\r\n", "::", ",", "\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if n, err := access.ParseKeys(text); err == nil && n > strings.Count(text, ":") || err != nil && strings.ContainsAny(err.Error(), "\r\n") {
			t.Errorf("%d keys, %v", n, err)
		}
		if n, err := access.ParseKeyFile(text); err == nil && (n == 0 || n > strings.Count(text, "sha256")) || err != nil && strings.ContainsAny(err.Error(), "\r\n") {
			t.Errorf("%d lines, %v", n, err)
		}
	})
}

// No header other than a valid key lets a request pass, and none is repeated in the response.
func FuzzHeaders(f *testing.F) {
	control, err := access.New(access.Config{Logger: slog.New(slog.DiscardHandler), Keys: "ci:" + ciKey, Origins: []string{"https://app.example.com"}, Hosts: []string{"app.example.com"}, Proxies: []string{"192.0.2.0/24"}})
	testkit.Must(f, err)
	passed := false
	h := control.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { passed = access.PrincipalOf(r.Context()).Name == "ci" }))
	f.Add("Bearer "+ciKey, "", "app.example.com", "https://app.example.com", "1.2.3.4", "qtype-credential=YQ")
	f.Add("Bearer a.b.c", "x", "[::1]:80", "null", ", ,::1", "qtype-credential=\"")
	f.Add("basic eDp5", "\xff", ":", "*", "::ffff:1.2.3.4%a", ";")
	f.Fuzz(func(t *testing.T, authorization, key, host, origin, forwarded, cookie string) {
		r := httptest.NewRequest(http.MethodPost, "/flows/f", nil)
		r.Host = host
		for name, value := range map[string]string{"Authorization": authorization, "X-Api-Key": key, "Origin": origin, "X-Forwarded-For": forwarded, "Cookie": cookie} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		passed = false
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		valid := strings.Contains(authorization+key, ciKey) || strings.Contains(cookie, "qtype-credential=")
		if passed && !valid || !passed && w.Code < 300 && w.Code != http.StatusNoContent && w.Code != http.StatusSeeOther {
			t.Errorf("passed %v with status %d", passed, w.Code)
		}
		for name, values := range w.Header() {
			if strings.ContainsAny(strings.Join(values, ""), "\r\n") {
				t.Errorf("%s: %q", name, values)
			}
		}
	})
}

// What the checker accepts as an entry is what a principal can have.
func FuzzCheckAllow(f *testing.F) {
	for _, seed := range []string{"ci", "user:ada", "role:", "*", "", "role:a b", "user:\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, entry string) {
		flow := &spec.Flow{ID: "f", Allow: []string{entry}}
		role, isRole := strings.CutPrefix(entry, spec.RolePrefix)
		p := access.Principal{Name: entry}
		if isRole {
			p = access.Principal{Name: "x", Roles: []string{role}}
		}
		if spec.CheckAllow(entry) == nil && (!access.Allowed(flow, p) || access.Allowed(flow, access.Principal{Name: entry + "x"})) {
			t.Errorf("%q is accepted, but matches wrong principals", entry)
		}
	})
}
