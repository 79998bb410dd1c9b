// Package storagetest holds what the tests of the stores of memories share.
package storagetest

import (
	"errors"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/memory/storetest"
)

// WantError checks that err is a *store.StoreError of a kind, with a message of
// one line, and that no error it wraps holds secret. An empty secret is not checked.
func WantError(t *testing.T, err error, kind store.ErrorKind, message, secret string) {
	t.Helper()
	var e *store.StoreError
	if !errors.As(err, &e) || e.Problem != kind || !strings.Contains(err.Error(), message) {
		t.Errorf("got %v, want %s: %s", err, kind, message)
	}
	if e != nil && strings.Contains(e.Error(), "\n") {
		t.Errorf("more than one line: %q", e.Error())
	}
	for ; err != nil && secret != ""; err = errors.Unwrap(err) {
		if text := err.Error(); strings.Contains(text, secret) {
			t.Errorf("the secret is in %q", text)
		}
	}
}

// RunDurable runs the contract of durable stores on a server. newAddress returns the
// address of an empty store.
func RunDurable(t *testing.T, newAddress func() string, open func(t *testing.T, address string) store.Store) {
	t.Helper()
	addresses := map[string]string{} // by directory, which storetest uses as the name of a store
	storetest.RunDurable(t, func(t *testing.T, dir string) store.Store {
		if addresses[dir] == "" {
			addresses[dir] = newAddress()
		}
		return open(t, addresses[dir])
	})
}
