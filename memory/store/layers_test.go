package store_test

import (
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
)

// TestFiles_ReferToEarlierFiles has the files of the package in their order: a file refers
// to declarations in its own file and in the files before it.
func TestFiles_ReferToEarlierFiles(t *testing.T) {
	order := []string{"entry", "batches", "ranges", "store", "edited", "local_store", "clock", "listing", "record", "replace", "observed_store"}
	testkit.CheckFileOrder(t, order, 100)
}
