package servers_test

import (
	"testing"

	"github.com/qtype-dev/qtype/internal/stepcache"
	"github.com/qtype-dev/qtype/internal/stepcache/stepcachetest"
	"github.com/qtype-dev/qtype/memory/store"
)

// The results of steps in stores on servers.
func TestCache_Entries(t *testing.T) { eachCache(t, stepcachetest.Entries) }

func TestCache_Limit(t *testing.T) { eachCache(t, stepcachetest.Limit) }

// eachCache calls run with a cache in each kind of store.
func eachCache(t *testing.T, run func(t *testing.T, open func() stepcache.Entries)) {
	for name, address := range newStores(t) {
		t.Run(name, func(t *testing.T) {
			opened := openStore(t, address())
			run(t, func() stepcache.Entries { return stepcache.NewShared(store.NewApplication(opened, "app/1")) })
		})
	}
}
