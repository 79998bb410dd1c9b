package servers_test

import (
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/distribution/memory/servers"
	"github.com/qtype-dev/qtype/internal/memory/encrypted"
	"github.com/qtype-dev/qtype/internal/memory/encrypted/encryptedtest"
	"github.com/qtype-dev/qtype/internal/memory/storeurl"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/memory/storetest"
)

func TestEncrypted_Contract(t *testing.T) {
	key, err := encrypted.ParseKey(strings.Repeat("a1", 32))
	testkit.Must(t, err)
	for name, address := range newStores(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, func(t *testing.T) store.Store {
				s, err := storeurl.Open(address(), storeurl.Among(servers.Openers()), storeurl.Encrypt(encrypted.Keys{Key: key}))
				testkit.Must(t, err)
				return s
			})
		})
	}
}

func TestEncrypted_ReencryptKilled(t *testing.T) {
	for name, address := range newStores(t) {
		t.Run(name, func(t *testing.T) { encryptedtest.ReencryptKilled(t, servers.Openers(), address()) })
	}
}

func TestEncrypted_ReencryptWithWriters(t *testing.T) {
	for name, address := range newStores(t) {
		t.Run(name, func(t *testing.T) {
			encryptedtest.ReencryptWithWriters(t, encryptedtest.Opener(t, servers.Openers(), address()))
		})
	}
}
