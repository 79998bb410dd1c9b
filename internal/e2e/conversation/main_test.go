// Package conversation_test tests that conversations with agents keep what providers want back, whatever happens between
// their requests: kills, restarts, fallbacks, approvals by another process, edits and rewinds.
package conversation_test

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/testkit"
)

// TestMain sets the number of conversations, and the seed, so that a change is not blamed for a conversation that no run
// has had before: -rapid.checks and -rapid.seed are others.
func TestMain(m *testing.M) {
	checks := "150"
	if testkit.Race() {
		checks = "30"
	}
	_ = flag.Set("rapid.checks", checks) // cannot fail: the flag is a number
	_ = flag.Set("rapid.seed", "20261128")
	_ = flag.Set("rapid.nofailfile", "true")
	if err := os.Chdir("../../.."); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}
