package access_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// Only a trusted proxy may name the scheme and the prefix of the server.
func TestControl_Address(t *testing.T) {
	trusting, err := access.New(access.Config{Proxies: []string{"10.0.0.0/8"}})
	testkit.Must(t, err)
	for _, tt := range []struct {
		name, from, prefix, mount, want string
		control                         *access.Control
	}{
		{"trusted", "10.1.2.3:1", "/team/bot", "", "https://qtype.example/team/bot", trusting},
		{"final slash", "10.1.2.3:1", "/bot/", "", "https://qtype.example/bot", trusting},
		{"root", "10.1.2.3:1", "/", "", "https://qtype.example", trusting},
		{"mounted below", "10.1.2.3:1", "/bot", "/assistant", "https://qtype.example/bot/assistant", trusting},
		{"another host", "10.1.2.3:1", "//evil.example", "", "https://qtype.example", trusting},
		{"parent", "10.1.2.3:1", "/bot/../x", "", "https://qtype.example", trusting},
		{"markup", "10.1.2.3:1", `/"><script>`, "", "https://qtype.example", trusting},
		{"not trusted", "192.0.2.1:1", "/bot", "/assistant", "http://qtype.example/assistant", trusting},
		{"without access control", "10.1.2.3:1", "/bot", "", "http://qtype.example", nil},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, tt.mount+"/docs", nil)
		r.RemoteAddr, r.Host, r.URL.Path = tt.from, "qtype.example", "/docs"
		r.Header.Set("X-Forwarded-Proto", "https")
		r.Header.Set("X-Forwarded-Prefix", tt.prefix)
		if got := tt.control.Address(r); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}
