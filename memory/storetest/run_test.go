package storetest_test

import (
	"testing"

	"github.com/qtype-dev/qtype/internal/memory/inprocess"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/memory/storetest"
)

// mystore is in place of the package of a custom store.
var mystore = struct{ New func() store.Store }{func() store.Store { return inprocess.New() }}

// TestStore is the test of docs/memory-stores.md.
func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return mystore.New() })
}
