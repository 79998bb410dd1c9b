package memory_test

import (
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
)

// layers are the files of the package. A file refers to declarations in its own
// file and in the files before it.
var layers = []string{
	"aliases", "owner", "turn_policy", "context", "audit",
	"memory", "words", "load", "commit", "lease",
	"turn_report", "turn", "question", "turn_commit", "turn_stop", "turn_variables", "shared", "idempotency", "turn_context", "call_prefix", "call", "calibration",
	"write", "read", "snapshot", "expiry", "forget_user", "rewind", "edit", "pin", "fork", "ephemeral", "import", "similar",
}

func TestFiles_ReferToEarlierFiles(t *testing.T) {
	testkit.CheckFileOrder(t, layers, 500)
}
