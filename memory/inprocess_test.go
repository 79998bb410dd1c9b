package memory_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec/chat"
)

func TestMain(m *testing.M) {
	testkit.LimitChecks()
	goleak.VerifyTestMain(m)
}

// TestInProcess_DeletedByOther checks a memory that knows a session which another
// memory deletes, and creates again.
func TestInProcess_DeletedByOther(t *testing.T) {
	store := memory.NewInProcess()
	m, other := newMemory(t, store), newMemory(t, store)
	add := func(m *memory.Memory, text string) {
		t.Helper()
		testkit.Must(t, m.Append(t.Context(), "s", chat.Text(chat.User, text)))
	}
	add(m, "one")
	testkit.Must(t, other.Clear(t.Context(), "s"))
	if got := windowTexts(t, m, "s"); got != "" {
		t.Errorf("the window after the deletion is %s", got)
	}
	add(m, "two")
	testkit.Must(t, other.Clear(t.Context(), "s"))
	add(m, "three") // without a read before
	testkit.Must(t, other.Clear(t.Context(), "s"))
	add(other, "four")
	add(m, "five")
	for _, m := range []*memory.Memory{m, other} {
		if got := windowTexts(t, m, "s"); got != "user:four user:five" {
			t.Errorf("the window is %s", got)
		}
	}
}
