package memory_test

import (
	"slices"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec"
)

// layers are the files of the package. A file refers to declarations in its own
// file and in the files before it.
var layers = []string{
	"aliases", "owner", "turn_policy", "context", "audit",
	"memory", "load", "commit", "lease",
	"budget", "turn_report", "turn", "question", "turn_commit", "turn_variables", "shared", "idempotency", "room", "turn_context", "call", "calibration",
	"write", "read", "expiry", "forget_user", "rewind", "edit", "pin", "fork", "ephemeral", "import", "similar",
}

func TestFiles_ReferToEarlierFiles(t *testing.T) {
	testkit.CheckFileOrder(t, layers, 500)
}

// TestPolicies_HaveABuilder checks that every row of spec.Policies has a builder,
// every builder a row, and every limit of a row a key of spec.Memory.
func TestPolicies_HaveABuilder(t *testing.T) {
	var rows []spec.Policy
	for _, row := range spec.Policies() {
		rows = append(rows, row.Name)
	}
	built := memory.PolicyBuilders()
	slices.Sort(rows)
	slices.Sort(built)
	if !slices.Equal(rows, built) {
		t.Errorf("the policies with a row are %v, those with a builder are %v", rows, built)
	}
}
