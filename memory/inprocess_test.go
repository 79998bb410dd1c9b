package memory_test

import (
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/storetest"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

func TestMain(m *testing.M) {
	testkit.LimitChecks()
	goleak.VerifyTestMain(m)
}

func TestInProcess(t *testing.T) {
	storetest.Run(t, func(*testing.T) memory.Store { return memory.NewInProcess() })
}

// TestInProcess_Events checks that all events come back as they were added: those of
// evictions are stored in another form.
func TestInProcess_Events(t *testing.T) {
	day := time.Date(2026, 11, 23, 4, 5, 6, 7000, time.UTC)
	flush := memory.Event{Kind: memory.EventFlush, Turn: 3, From: 1 << 40, To: 1<<40 + 2, Messages: 3, Tokens: 300,
		Rule: spec.PolicyMessageWindow, Before: 13, Limit: 10, Unit: memory.InMessages, Time: day}
	var want []memory.Event
	for _, change := range []func(*memory.Event){
		func(*memory.Event) {},
		func(e *memory.Event) { e.Rule, e.Unit, e.Tokens = spec.PolicyTokenWindow, memory.InTokens, -1 },
		func(e *memory.Event) { e.Rule, e.Reason = spec.PolicyFlush, "why" },
		func(e *memory.Event) { *e = memory.Event{Kind: memory.EventSet, Reason: "set", Time: day} },
		func(e *memory.Event) { e.Rule = "" },
		func(e *memory.Event) { e.Rule = "of another program" },
		func(e *memory.Event) { e.Unit = "" },
		func(e *memory.Event) { e.Time = day.Add(1) },
		func(e *memory.Event) { e.Time = time.Time{} },
		func(e *memory.Event) { e.Time = day.In(time.FixedZone("there", 3600)) },
		func(e *memory.Event) { e.Rewound = 1 },
		func(e *memory.Event) { e.Call = &memory.Call{Model: "m"} },
		func(*memory.Event) {},
	} {
		e := flush
		change(&e)
		want = append(want, e)
	}
	store, key := memory.NewInProcess(), memory.Key{Memory: "m", Session: "s"}
	testkit.Must(t, store.Apply(t.Context(), key, memory.Change{Next: 1, Events: want[:5]}))
	testkit.Must(t, store.Apply(t.Context(), key, memory.Change{Version: 1, Next: 2, Events: want[5:]}))
	for range 2 {
		var got []memory.Event
		for e, err := range store.Events(t.Context(), key) {
			testkit.Must(t, err)
			got = append(got, e)
		}
		if !slices.Equal(got, want) {
			t.Errorf("the events are\n%+v, want\n%+v", got, want)
		}
	}
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
