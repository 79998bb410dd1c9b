package storetest

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// RunTrips checks the round trips of a turn: one read when it begins, one change
// when it ends, and none in between, independent of the length of the history.
// The first turn also reads the window. trips returns the number of round trips so far.
func RunTrips(t *testing.T, backend store.Store, trips func() int) {
	m, err := memory.New(memory.Config{ID: "trips", Policy: "message_window", Limits: memory.Limits{"max_messages": 6}, Counter: runes{}}, backend)
	testkit.Must(t, err)
	var added chat.Message
	for n := range 12 {
		before := trips()
		turn, err := m.Begin(t.Context(), "s")
		testkit.Must(t, err)
		began := trips()
		testkit.Must(t, turn.Add(chat.Text(chat.User, "question")))
		if added.ID != "" {
			testkit.Must(t, turn.Add(added)) // the message that the previous step passed on
		}
		_, err = turn.Window()
		testkit.Must(t, err)
		added = chat.Text(chat.Assistant, "answer")
		testkit.Must(t, turn.Add(added))
		ready := trips()
		testkit.Must(t, turn.Commit(t.Context()))
		ended := trips()
		if n < 2 {
			continue // the tables may have to be created, the script to be sent
		}
		if began-before != 1 || ready != began || ended-ready != 1 {
			t.Errorf("turn %d made %d round trips to begin, %d during the turn and %d to end; want 1, 0 and 1",
				n+1, began-before, ready-began, ended-ready)
		}
	}
	if got := len(entries(t, backend, store.Key{Memory: "trips", Session: "s"}, store.Query{})); got != 24 {
		t.Errorf("the history has %d messages, want 24", got)
	}
}

// RunFlat checks that an append, a turn, and the first read of a session have the
// same number of round trips and allocations with a short and a long history. The
// long one has QTYPE_HISTORY messages, by default 3,000. trips is as for RunTrips.
func RunFlat(t *testing.T, store store.Store, trips func() int) {
	long := 3000
	if text := os.Getenv("QTYPE_HISTORY"); text != "" {
		var err error
		long, err = strconv.Atoi(text)
		testkit.Must(t, err)
	}
	few, many := costs(t, store, trips, "short", 10), costs(t, store, trips, "long", long)
	for what, short := range few {
		at := many[what]
		if at.trips != short.trips || at.allocations > short.allocations*1.1+10 {
			t.Errorf("%s: %s after 10 messages, %s after %d", what, short, at, long)
		}
		t.Logf("%s: %s after 10 messages, %s after %d", what, short, at, long)
	}
}

// roundtrips is the cost of one operation.
type roundtrips struct {
	trips       int     // round trips
	allocations float64 // of the whole process
}

func (c roundtrips) String() string {
	return fmt.Sprintf("%d round trips, %.0f allocations", c.trips, c.allocations)
}

// costs returns the cost of each operation on a session with n messages.
func costs(t *testing.T, store store.Store, trips func() int, session string, n int) map[string]roundtrips {
	t.Helper()
	open := func() *memory.Memory {
		m, err := memory.New(memory.Config{ID: "flat", Policy: "message_window", Limits: memory.Limits{"max_messages": 10}, Counter: runes{}}, store)
		testkit.Must(t, err)
		return m
	}
	m := open()
	for added := 0; added < n; {
		var some []chat.Message
		for ; len(some) < 500 && added < n; added++ {
			some = append(some, chat.Text(chat.User, "a message as long as others are"))
		}
		testkit.Must(t, m.Append(t.Context(), session, some...))
	}
	out := map[string]roundtrips{}
	for what, do := range map[string]func(){
		"an append": func() { testkit.Must(t, m.Append(t.Context(), session, chat.Text(chat.User, "one more"))) },
		"a turn": func() {
			turn, err := m.Begin(t.Context(), session)
			testkit.Must(t, err)
			testkit.Must(t, turn.Add(chat.Text(chat.User, "question")))
			_, err = turn.Window()
			testkit.Must(t, err)
			testkit.Must(t, turn.Add(chat.Text(chat.Assistant, "answer")))
			testkit.Must(t, turn.Commit(t.Context()))
		},
		"a first look": func() {
			w, err := open().Window(t.Context(), session)
			testkit.Must(t, err)
			if len(w.Entries) != 10 {
				t.Fatalf("a window of %d messages", len(w.Entries))
			}
		},
	} {
		do() // prepares what is prepared once
		const runs = 50
		before := trips()
		allocations := testing.AllocsPerRun(runs, do)
		out[what] = roundtrips{trips: (trips() - before) / (runs + 1), allocations: allocations}
	}
	return out
}
