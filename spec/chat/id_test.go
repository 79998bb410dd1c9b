package chat_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/spec/chat"
)

// TestNewID checks that ids differ and begin with the time, so that later ones sort after.
func TestNewID(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		before := time.Now().UnixMilli()
		id := chat.NewID()
		at, err := strconv.ParseInt(id[:12], 16, 64)
		testkit.Must(t, err)
		if at < before || at > time.Now().UnixMilli() || len(id) != 32 || seen[id] {
			t.Errorf("id %s", id)
		}
		seen[id] = true
	}
}
