package access_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec"
)

func TestAllowed(t *testing.T) {
	key, user := access.Principal{Name: "ci"}, access.Principal{Name: "user:ci", Roles: []string{"admin", "user:ada"}}
	tests := []struct {
		allow               []string
		none, key, withRole bool
	}{
		{nil, true, true, true},
		{[]string{}, false, false, false},
		{[]string{"ci"}, false, true, false},
		{[]string{"user:ci"}, false, false, true},
		{[]string{"role:admin"}, false, false, true},
		{[]string{"admin"}, false, false, false},
		{[]string{"role:ci", "user:ada", "CI", "ci "}, false, false, false},
		{[]string{""}, false, false, false},
		{[]string{"role:"}, false, false, false},
	}
	for _, test := range tests {
		f := &spec.Flow{ID: "f", Allow: test.allow}
		if got := access.Allowed(f, access.Principal{}); got != test.none {
			t.Errorf("%q without authentication: %v", test.allow, got)
		}
		if got := access.Allowed(f, key); got != test.key {
			t.Errorf("%q, key: %v", test.allow, got)
		}
		if got := access.Allowed(f, user); got != test.withRole {
			t.Errorf("%q, user: %v", test.allow, got)
		}
	}
}

// A refused call is a problem and a line of the log.
func TestControl_Authorize(t *testing.T) {
	flow := &spec.Flow{ID: "refund", Allow: []string{"ada"}}
	var s *server
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := s.control.Authorize(r, flow); err != nil {
			problem.Write(w, problem.Of(err))
		}
	})
	s = start(t, access.Config{Keys: "ci:" + ciKey + ",ada:" + adaKey}, h)
	if got := s.get(t, "/", bearer(adaKey)); got.status != 200 {
		t.Errorf("ada: %d", got.status)
	}
	if got := s.get(t, "/", bearer(ciKey)); got.status != 403 || got.code() != "flow_not_allowed" || !strings.Contains(s.log.String(), `"principal":"ci"`) {
		t.Errorf("ci: %d %s; log: %s", got.status, got.body, s.log)
	}
	s = start(t, access.Config{}, h)
	if got := s.get(t, "/"); got.status != 403 || !strings.Contains(got.body, "has no authentication") {
		t.Errorf("without authentication: %d %s", got.status, got.body)
	}
}

// A list whose entries were all removed or commented out does not open the flow.
func TestAllowed_EmptyInDocument(t *testing.T) {
	for text, want := range map[string]bool{"": true, "allow: []": false, "allow:": false, "allow: # - ci": false, "allow: [ci]": true} {
		document := "id: app\nflows:\n  - id: f\n    " + text + "\n    steps: []\n"
		got, list := loader.LoadBytes(t.Context(), "app.yaml", []byte(document), loader.Options{NoDotEnv: true})
		if list.Errors() > 0 {
			t.Fatal(list)
		}
		if access.Allowed(got.Document.Application.Flows[0], access.Principal{Name: "ci"}) != want {
			t.Errorf("%q: want %v", text, want)
		}
	}
}
