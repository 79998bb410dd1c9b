package access_test

import (
	"testing"

	"github.com/qtype-dev/qtype/internal/server/access"
)

// Different principals never share a stored session, whichever ids they choose.
func TestPrincipal_StoredSession(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{"a", "a/b", "a%2Fb", "a%", "b"} {
		for _, id := range []string{"", "c", "b/c", "/c", "%2Fb/c"} {
			p := access.Principal{Name: name}
			stored := p.StoredSession(id)
			if other, ok := seen[stored]; ok {
				t.Errorf("%s and %s %q share the session %q", other, name, id, stored)
			}
			seen[stored] = name
			if got, ok := p.ClientSession(stored); !ok || got != id {
				t.Errorf("ClientSession(%q) of %s = %q, %v; want %q", stored, name, got, ok, id)
			}
			if _, ok := (access.Principal{Name: name + "x"}).ClientSession(stored); ok {
				t.Errorf("%sx has the session %q of %s", name, stored, name)
			}
		}
	}
	if got := (access.Principal{}).StoredSession("c/d"); got != "c/d" {
		t.Errorf("without authentication the id is %q", got)
	}
}
