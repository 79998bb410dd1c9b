package redis_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/memory/storetest"
)

// TestStore_Migration reads and extends sessions of the first version, whose heads
// have no number of the change that wrote them.
func TestStore_Migration(t *testing.T) {
	commands, err := os.ReadFile("testdata/format1.txt")
	testkit.Must(t, err)
	server := shared.Get(t)
	storetest.RunMigration(t, func(t *testing.T) string {
		prefix := fmt.Sprintf("t%d:", prefixes.Add(1))
		for line := range strings.Lines(string(commands)) {
			if !strings.HasPrefix(line, "#") {
				send(t, server, strings.ReplaceAll(strings.TrimSpace(line), "%s", prefix))
			}
		}
		return fmt.Sprintf("redis://%s/0?key_prefix=%s", server.Address(), prefix)
	}, func(t *testing.T, address string) store.Store { return open(t, address) })
}
