package memory_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/memory"
)

func TestUserSession(t *testing.T) {
	for _, test := range []struct{ user, id, stored string }{
		{"", "s1", "s1"},
		{"ada", "s1", "ada/s1"},
		{"ada", "a/b", "ada/a/b"},
		{"user:ada", "s1", "user:ada/s1"},
		{"a/b", "c", "a%2Fb/c"},
		{"a%2Fb", "c", "a%252Fb/c"},
		{"ada", "", "ada/"},
	} {
		if got := memory.UserSession(test.user, test.id); got != test.stored {
			t.Errorf("UserSession(%q, %q) = %q, want %q", test.user, test.id, got, test.stored)
		}
		if user, id := memory.SplitSession(test.stored); user != test.user || id != test.id {
			t.Errorf("SplitSession(%q) = %q, %q, want %q, %q", test.stored, user, id, test.user, test.id)
		}
	}
	if user, id := memory.SplitSession("/s1"); user != "" || id != "/s1" {
		t.Errorf(`SplitSession("/s1") = %q, %q: a user has a name`, user, id)
	}
}

func TestUserSession_Distinct(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		users := rapid.SliceOfN(rapid.StringMatching(`[a/%25F]{1,6}`), 2, 2).Draw(t, "users")
		ids := rapid.SliceOfN(rapid.StringMatching(`[a/%25F]{0,6}`), 2, 2).Draw(t, "ids")
		if a, b := memory.UserSession(users[0], ids[0]), memory.UserSession(users[1], ids[1]); a == b && users[0] != users[1] {
			t.Fatalf("users %q and %q share the session %q", users[0], users[1], a)
		}
		user, id := memory.SplitSession(memory.UserSession(users[0], ids[0]))
		if user != users[0] || id != ids[0] {
			t.Fatalf("SplitSession returns %q, %q for user %q, id %q", user, id, users[0], ids[0])
		}
		if !strings.HasPrefix(memory.UserSession(users[0], ids[0]), memory.UserPrefix(users[0])) {
			t.Fatal("a session of a user does not begin with the prefix")
		}
	})
}
