package server_test

import (
	"encoding/base64"
	"path/filepath"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/memory/encrypted"
	"github.com/qtype-dev/qtype/internal/memory/storeurl"
	"github.com/qtype-dev/qtype/internal/server/isolationtest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
)

// databases returns functions that open a new connection to one database of each kind.
func databases(t *testing.T) map[string]func() (store.Store, error) {
	key, err := encrypted.ParseKey(base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32))))
	testkit.Must(t, err)
	shared := clockedStore{memory.NewInProcess()}
	at := func(address string, opts ...storeurl.Option) func() (store.Store, error) {
		return func() (store.Store, error) { return storeurl.Open(address, opts...) }
	}
	return map[string]func() (store.Store, error){
		"in process": func() (store.Store, error) { return shared, nil },
		"sqlite":     at("sqlite:" + filepath.Join(t.TempDir(), "memory.db")),
		"encrypted":  at("sqlite:"+filepath.Join(t.TempDir(), "memory.db"), storeurl.Encrypt(encrypted.Keys{Key: key})),
	}
}

// TestApplications_OneDatabase checks that two applications with one database see and change nothing of each other.
func TestApplications_OneDatabase(t *testing.T) {
	for name, open := range databases(t) {
		t.Run(name, func(t *testing.T) { isolationtest.OneDatabase(t, open) })
	}
}
