package storeurl_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/storeurl"
)

const secret = "s3cret-word"

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestOpen(t *testing.T) {
	t.Chdir(t.TempDir())
	for address, place := range map[string]string{
		"memory:":                "this process",
		"sqlite:a/b.db":          "a/b.db",
		"sqlite:/abs/b.db":       "/abs/b.db",
		"sqlite:///b.db":         "b.db",
		"sqlite:////abs/b.db":    "/abs/b.db",
		"sqlite://b.db":          "b.db",
		"file:///abs/b.db":       "/abs/b.db",
		"postgres://u:p@h/db":    "postgres://h/db",
		"postgresql://u:p@h/db":  "postgres://h/db",
		"redis://u:p@h:1/2":      "redis://h:1/2",
		"rediss://u:p@h?timeout": "",
	} {
		s, err := storeurl.Open(address)
		if place == "" {
			if err == nil {
				t.Errorf("%s was opened", address)
			}
			continue
		}
		if err != nil || storeurl.Place(s) != place {
			t.Errorf("%s: %v, %v", address, storeurl.Place(s), err)
			continue
		}
		must(t, s.Close())
	}
	if left, err := filepath.Glob("*"); err != nil || len(left) > 0 {
		t.Errorf("opening made %q, %v", left, err)
	}
}

func TestBadAddresses(t *testing.T) {
	for address, message := range map[string]string{
		"":                                  "its address is none of memory:, sqlite:PATH, postgres://",
		"memory.db":                         "its address is none of",
		secret + "@host:5432/db":            "its address is none of",
		"memory:x":                          "has nothing behind the colon",
		"sqlite:":                           "its file is written sqlite:PATH",
		"sqlite:///":                        "its file is written sqlite:PATH",
		"sqlite::memory:":                   "is written memory:",
		"mysql://u:" + secret + "@h/db":     "memory store mysql: there is no such kind of store; there are memory:",
		"postgres://u:" + secret + "@h:p/d": "its URL cannot be read",
		"redis://u:" + secret + "@h:p":      "its URL cannot be read",
	} {
		_, err := storeurl.Open(address)
		var e *memory.StoreError
		if !errors.As(err, &e) || !strings.Contains(err.Error(), message) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: got %v, want %s", address, err, message)
		}
	}
}

func TestAddress(t *testing.T) {
	for _, test := range []struct{ kind, url, want, err string }{
		{kind: "memory", want: "memory:"},
		{kind: "memory", url: "x", err: "has no URL"},
		{kind: "sqlite", url: "a.db", want: "sqlite:a.db"},
		{kind: "sqlite", url: "sqlite:a.db", want: "sqlite:a.db"},
		{kind: "postgres", url: "postgresql://h/d", want: "postgresql://h/d"},
		{kind: "postgres", url: "redis://u:" + secret + "@h", err: "its URL begins with postgres://"},
		{kind: "redis", url: "rediss://h", want: "rediss://h"},
		{kind: "redis", url: secret, err: "its URL begins with redis://"},
		{kind: "mysql", err: "there are memory, sqlite, postgres and redis"},
	} {
		got, err := storeurl.Address(test.kind, test.url)
		if got != test.want || (err != nil) != (test.err != "") ||
			err != nil && (!strings.Contains(err.Error(), test.err) || strings.Contains(err.Error(), secret)) {
			t.Errorf("%s %s: %q, %v", test.kind, test.url, got, err)
		}
	}
}

// TestSet: one address, one store.
func TestSet(t *testing.T) {
	var set storeurl.Set
	a, err := set.Open("memory:")
	must(t, err)
	b, err := set.Open("memory:")
	must(t, err)
	c, err := set.Open("sqlite:" + filepath.Join(t.TempDir(), "a.db"))
	must(t, err)
	if a != b || a == c {
		t.Error("stores are not shared by address")
	}
	if _, err := set.Open("nothing"); err == nil {
		t.Error("a bad address was opened")
	}
	must(t, set.Close())
	must(t, set.Close())
}
