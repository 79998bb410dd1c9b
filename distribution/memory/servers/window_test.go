package servers_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/qtype-dev/qtype/distribution/memory/servers"
	"github.com/qtype-dev/qtype/internal/memory/storeurl"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// windowOf returns the texts of a window.
func windowOf(t *testing.T, m *memory.Memory) (all []string) {
	t.Helper()
	w, err := m.Window(t.Context(), "s")
	testkit.Must(t, err)
	for _, e := range w.Entries {
		all = append(all, e.Message.Text())
	}
	return all
}

// TestWindow_NotAPrefix: what leaves a window with pins is not a prefix of it. The window is that of a memory in
// process, also after the session is read from the store again.
func TestWindow_NotAPrefix(t *testing.T) {
	for name, newAddress := range newStores(t) {
		t.Run(name, func(t *testing.T) {
			address, random := newAddress(), rand.New(rand.NewPCG(1, 2))
			in := func(s memory.Store) *memory.Memory {
				m, err := memory.New(memory.Config{ID: "m", Policy: spec.PolicyMessageWindow, Limits: memory.Limits{"max_messages": 8}, Counter: chars4{}}, s)
				testkit.Must(t, err)
				return m
			}
			expected, sparse := in(memory.NewInProcess()), 0
			for round := range 10 {
				s, err := storeurl.Open(address, storeurl.Among(servers.Openers()))
				testkit.Must(t, err)
				m := in(s)
				for n := range 3 + random.IntN(5) {
					msg := chat.Text([]chat.Role{chat.User, chat.Assistant}[n%2], fmt.Sprint("message ", round, ".", n))
					testkit.Must(t, m.Append(t.Context(), "s", msg))
					testkit.Must(t, expected.Append(t.Context(), "s", msg))
				}
				w, err := expected.Window(t.Context(), "s")
				testkit.Must(t, err)
				if last := len(w.Entries) - 1; w.Entries[last].Seq-w.Entries[0].Seq > int64(last) {
					sparse++
				}
				pinned := w.Entries[random.IntN(len(w.Entries))].Seq
				change := []func(*memory.Memory) error{
					func(m *memory.Memory) error { return m.Pin(t.Context(), "s", pinned) },
					func(m *memory.Memory) error { return m.Unpin(t.Context(), "s", pinned) },
				}[random.IntN(4)/3]
				if first, second := change(m), change(expected); fmt.Sprint(first) != fmt.Sprint(second) {
					t.Errorf("round %d: %v, in process %v", round, first, second)
				}
				if got, want := windowOf(t, m), windowOf(t, expected); !slices.Equal(got, want) {
					t.Errorf("round %d: %q, in process %q", round, got, want)
				}
				testkit.Must(t, s.Close())
			}
			if sparse < 3 {
				t.Errorf("%d windows were no suffix of the conversation", sparse)
			}
		})
	}
}
