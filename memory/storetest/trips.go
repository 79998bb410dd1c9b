package storetest

import (
	"testing"

	"github.com/qtype-dev/qtype/chat"
	"github.com/qtype-dev/qtype/memory"
)

// RunTrips checks what turns ask of a store: one look where the session stands,
// when the turn begins, and one change, when it ends; nothing while it goes on,
// however much was said before, and nothing else in the first turn than to find
// the session's window. Asked tells how often the server was asked so far.
func RunTrips(t *testing.T, store memory.Store, asked func() int) {
	m, err := memory.New(memory.Config{ID: "trips", Policy: "message_window", MaxMessages: 6, Counter: runes{}}, store)
	must(t, err)
	var said chat.Message
	for n := range 12 {
		before := asked()
		turn, err := m.Begin(t.Context(), "s")
		must(t, err)
		began := asked()
		must(t, turn.Add(chat.Text(chat.User, "question")))
		if said.ID != "" {
			must(t, turn.Add(said)) // what a step hands to the next one is known
		}
		_, err = turn.Window()
		must(t, err)
		said = chat.Text(chat.Assistant, "answer")
		must(t, turn.Add(said))
		ready := asked()
		must(t, turn.Commit(t.Context()))
		ended := asked()
		if n < 2 {
			continue // the tables may have to be made, the script to be sent
		}
		if began-before != 1 || ready != began || ended-ready != 1 {
			t.Errorf("turn %d asked %d times to begin, %d times while it went on and %d times to end; want 1, 0 and 1",
				n+1, began-before, ready-began, ended-ready)
		}
	}
	if got := len(entries(t, store, memory.Key{Memory: "trips", Session: "s"}, memory.Query{})); got != 24 {
		t.Errorf("%d messages were said, want 24", got)
	}
}
