package window_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/qtype-dev/qtype/internal/memory/window"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/spec"
)

// TestFiles_ReferToEarlierFiles has the files of the package in their order: a file refers
// to declarations in its own file and in the files before it.
func TestFiles_ReferToEarlierFiles(t *testing.T) {
	order := []string{"window", "tokens", "message", "balance", "pairing", "eviction", "compaction", "view", "contents",
		"policy", "kept", "policy_", "policies"}
	testkit.CheckFileOrder(t, order, 200)
}

// TestPolicies_HaveABuilder checks that every row of spec.Policies has a builder,
// every builder a row, and every limit of a row a key of spec.Memory.
func TestPolicies_HaveABuilder(t *testing.T) {
	var rows []spec.Policy
	for _, row := range spec.Policies() {
		rows = append(rows, row.Name)
	}
	built := slices.Sorted(maps.Keys(window.Builders()))
	slices.Sort(rows)
	if !slices.Equal(rows, built) {
		t.Errorf("the policies with a row are %v, those with a builder are %v", rows, built)
	}
}
