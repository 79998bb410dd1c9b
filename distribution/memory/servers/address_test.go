package servers_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/distribution/memory/servers"
	"github.com/qtype-dev/qtype/internal/memory/encrypted"
	"github.com/qtype-dev/qtype/internal/memory/storeurl"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory/store"
)

const secret = "s3cret-word"

func TestOpen_Location(t *testing.T) {
	for address, location := range map[string]string{
		"postgres://u:p@h/db":   "postgres://h/db",
		"postgresql://u:p@h/db": "postgres://h/db",
		"redis://u:p@h:1/2":     "redis://h:1/2",
	} {
		s, err := storeurl.Open(address, storeurl.Among(servers.Openers()))
		if err != nil || storeurl.Location(s) != location {
			t.Errorf("%s: %v, %v", address, storeurl.Location(s), err)
			continue
		}
		testkit.Must(t, s.Close())
	}
}

func TestOpen_EncryptedLocation(t *testing.T) {
	key, err := encrypted.ParseKey(strings.Repeat("5a", 32))
	testkit.Must(t, err)
	s, err := storeurl.Open("redis://u:p@h:1/2", storeurl.Among(servers.Openers()), storeurl.Encrypt(encrypted.Keys{Key: key}))
	testkit.Must(t, err)
	if got := storeurl.Location(s); got != "redis://h:1/2" {
		t.Errorf("got %s", got)
	}
	testkit.Must(t, s.Close())
}

func TestOpen_InvalidAddress(t *testing.T) {
	for address, message := range map[string]string{
		"postgres://u:" + secret + "@h:p/d":   "invalid URL",
		"redis://u:" + secret + "@h:p":        "invalid URL",
		"rediss://u:" + secret + "@h?timeout": "",
		"mysql://u:" + secret + "@h/db":       "memory store mysql: unknown kind of store; use one of memory:",
	} {
		_, err := storeurl.Open(address, storeurl.Among(servers.Openers()))
		var e *store.Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), message) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: got %v, want %s", address, err, message)
		}
	}
}
