package storeurl_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/memory/encrypted"
	"github.com/qtype-dev/qtype/internal/memory/storeurl"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory/store"
)

const secret = "s3cret-word"

func TestOpen_Location(t *testing.T) {
	t.Chdir(t.TempDir())
	for address, location := range map[string]string{
		"memory:":             "this process",
		"sqlite:a/b.db":       "a/b.db",
		"sqlite:/abs/b.db":    "/abs/b.db",
		"sqlite:///b.db":      "b.db",
		"sqlite:////abs/b.db": "/abs/b.db",
		"sqlite://b.db":       "b.db",
		"file:///abs/b.db":    "/abs/b.db",
	} {
		s, err := storeurl.Open(address)
		if err != nil || storeurl.Location(s) != location {
			t.Errorf("%s: %v, %v", address, storeurl.Location(s), err)
			continue
		}
		testkit.Must(t, s.Close())
	}
	if left, err := filepath.Glob("*"); err != nil || len(left) > 0 {
		t.Errorf("Open created %q, %v", left, err)
	}
}

func TestOpen_EncryptedLocation(t *testing.T) {
	key, err := encrypted.ParseKey(strings.Repeat("5a", 32))
	testkit.Must(t, err)
	s, err := storeurl.Open("sqlite:a/b.db", storeurl.Encrypt(encrypted.Keys{Key: key}))
	testkit.Must(t, err)
	if got := storeurl.Location(s); got != "a/b.db" {
		t.Errorf("got %s", got)
	}
	testkit.Must(t, s.Close())
}

func TestOpen_InvalidAddress(t *testing.T) {
	for address, message := range map[string]string{
		"":                              "invalid address; use one of memory:, sqlite:PATH, postgres://",
		"memory.db":                     "invalid address; use one of",
		secret + "@host:5432/db":        "invalid address; use one of",
		"memory:x":                      "must end after the colon",
		"sqlite:":                       "missing path; use sqlite:PATH",
		"sqlite:///":                    "missing path; use sqlite:PATH",
		"sqlite::memory:":               "use memory:",
		"mysql://u:" + secret + "@h/db": "memory store mysql: unknown kind of store; use one of memory:",
		"redis://u:" + secret + "@h:1":  "has no memory store redis; the distribution has it",
	} {
		_, err := storeurl.Open(address)
		var e *store.Error
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
		{kind: "postgres", url: "redis://u:" + secret + "@h", err: "its URL must begin with postgres://"},
		{kind: "redis", url: "rediss://h", want: "rediss://h"},
		{kind: "redis", url: secret, err: "its URL must begin with redis://"},
		{kind: "own", url: "own:a", want: "own:a"},
		{kind: "own", url: secret, err: "its URL must begin with own:"},
		{kind: "mysql", err: "use memory, sqlite, postgres or redis"},
	} {
		got, err := storeurl.Address(storeurl.Openers{"own": storeurl.Core()["memory"]}, test.kind, test.url)
		if got != test.want || (err != nil) != (test.err != "") ||
			err != nil && (!strings.Contains(err.Error(), test.err) || strings.Contains(err.Error(), secret)) {
			t.Errorf("%s %s: %q, %v", test.kind, test.url, got, err)
		}
	}
}

func TestSet_Open(t *testing.T) {
	var set storeurl.Set
	a, err := set.Open("memory:")
	testkit.Must(t, err)
	b, err := set.Open("memory:")
	testkit.Must(t, err)
	c, err := set.Open("sqlite:" + filepath.Join(t.TempDir(), "a.db"))
	testkit.Must(t, err)
	if a != b || a == c {
		t.Error("stores are not shared by address")
	}
	if _, err := set.Open("nothing"); err == nil {
		t.Error("a bad address was opened")
	}
	testkit.Must(t, set.Close())
	testkit.Must(t, set.Close())
}
