package memory_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec/chat"
)

// TestAudit checks which accesses are recorded, and that one that cannot be is refused.
func TestAudit(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var log []string
	var broken error
	m, err := memory.New(memory.Config{ID: "m", Policy: "unbounded", Counter: words{}, TTL: time.Hour, Now: func() time.Time { return now },
		Audit: func(r memory.AuditRecord) error {
			log = append(log, fmt.Sprintf("%s %s of %s by %s %s%s%d", r.Operation, r.Session, r.User, r.Actor, r.Reason, r.ToSession, r.FromTurn))
			return broken
		}}, memory.NewInProcess())
	testkit.Must(t, err)
	ctx := memory.WithActor(t.Context(), "eve")
	for _, session := range []string{"ada/1", "ada/2", "ada/3", "x"} {
		testkit.Must(t, m.Turn(t.Context(), session, func(turn *memory.Turn) error { return turn.Add(chat.Text(chat.User, "hi")) }))
	}
	if len(log) != 0 {
		t.Errorf("turns are recorded: %q", log)
	}
	_, err = m.Window(ctx, "ada/1")
	testkit.Must(t, err)
	for _, err := range m.History(ctx, "x") {
		testkit.Must(t, err)
	}
	testkit.Must(t, m.Fork(ctx, "ada/1", "ada/4", 0))
	testkit.Must(t, m.Rewind(ctx, "ada/4", 1))
	testkit.Must(t, m.Clear(ctx, "ada/1"))
	_, err = m.ForgetUser(ctx, "ada")
	testkit.Must(t, err)
	now = now.Add(2 * time.Hour)
	_, err = m.Prune(context.Background())
	testkit.Must(t, err)
	testkit.Must(t, m.Append(t.Context(), "z", chat.Text(chat.User, "hi")))
	_, err = m.PruneUnused(context.Background(), now.Add(time.Minute))
	testkit.Must(t, err)
	want := []string{"read ada/1 of ada by eve 0", "read x of  by eve 0", "copy ada/1 of ada by eve ada/40", "rewind ada/4 of ada by eve 1",
		"delete ada/1 of ada by eve 0", "delete ada/4 of ada by eve 0", "delete ada/3 of ada by eve 0", "delete ada/2 of ada by eve 0", "delete x of  by  expired0", "delete z of  by  unused0"}
	if !slices.Equal(log, want) {
		t.Errorf("the log is\n%q\nwant\n%q", log, want)
	}

	testkit.Must(t, m.Append(ctx, "y", chat.Text(chat.User, "hi")))
	broken = errors.New("disk full")
	if _, err := m.Window(ctx, "y"); !errors.Is(err, broken) {
		t.Errorf("a read that cannot be recorded returns %v", err)
	}
	if err := m.Clear(ctx, "y"); !errors.Is(err, broken) {
		t.Errorf("a deletion that cannot be recorded returns %v", err)
	}
	broken = nil
	if w, err := m.Window(ctx, "y"); err != nil || len(w.Entries) != 1 {
		t.Errorf("after the refused deletion the window has %d messages, %v", len(w.Entries), err)
	}
}
