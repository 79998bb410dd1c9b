package window_test

import (
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
)

// TestFiles_ReferToEarlierFiles has the files of the package in their order: a file refers
// to declarations in its own file and in the files before it.
func TestFiles_ReferToEarlierFiles(t *testing.T) {
	order := []string{"window", "tokens", "message", "balance", "pairing", "eviction", "compaction", "view",
		"policy", "kept", "policy_", "policies"}
	testkit.CheckFileOrder(t, order, 200)
}
