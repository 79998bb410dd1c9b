package storetest_test

import (
	"testing"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/storetest"
)

// mystore is in place of the package of a custom store.
var mystore = struct{ New func() memory.Store }{func() memory.Store { return memory.NewInProcess() }}

// TestStore is the test of docs/memory-stores.md.
func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) memory.Store { return mystore.New() })
}
