package memory_test

import (
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec/chat"
)

// TestEphemeral checks that sessions begin with the messages, that nothing reaches
// the store of the memory, and that later turns follow them.
func TestEphemeral(t *testing.T) {
	store := memory.NewInProcess()
	m := newMemory(t, store)
	same := chat.Text(chat.User, "q1")
	e, err := m.Ephemeral([]chat.Message{chat.Text(chat.System, "be brief"), same, chat.Text(chat.Assistant, "a1"), same})
	testkit.Must(t, err)
	for _, session := range []string{"s", "t"} {
		testkit.Must(t, e.Turn(t.Context(), session, func(turn *memory.Turn) error {
			testkit.Must(t, turn.Add(chat.Text(chat.User, session)))
			if got, want := sent(t, turn), "system:be brief user:q1 assistant:a1 user:q1 user:"+session; got != want {
				t.Errorf("sent %s, want %s", got, want)
			}
			return turn.Add(chat.Text(chat.Assistant, "answer"))
		}))
		if got, want := windowTexts(t, e, session), "system:be brief user:q1 assistant:a1 user:q1 user:"+session+" assistant:answer"; got != want {
			t.Errorf("the window is %s, want %s", got, want)
		}
	}
	n := 0
	for _, err := range e.History(t.Context(), "new") {
		testkit.Must(t, err)
		n++
	}
	if n != 4 {
		t.Errorf("the history of a session that was not used has %d messages", n)
	}
	for one := range store.Sessions(t.Context(), "chat_memory") {
		t.Errorf("stored: %v", one)
	}
	if _, err := m.Ephemeral([]chat.Message{{Role: "unknown"}}); err == nil {
		t.Error("no error for a message that cannot be stored")
	}
}

// TestEphemeral_Policy checks that the window is the same as if the messages had
// been appended.
func TestEphemeral_Policy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := newBranching(t, rapid.IntRange(0, 5).Draw(t, "policy"), memory.NewInProcess(), "s")
		msgs := b.drawSome(t)
		testkit.Must(t, b.memory.Append(t.Context(), "s", msgs...))
		e, err := b.memory.Ephemeral(msgs)
		testkit.Must(t, err)
		for _, session := range []string{"s", "other"} {
			if d := difference(snapshotOf(t, b.memory, "s"), snapshotOf(t, e, session), cmpopts.EquateEmpty()); d != "" {
				t.Fatalf("the window: %s", d)
			}
		}
	})
}
