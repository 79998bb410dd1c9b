package storetest

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec/chat"
)

// RunTrips checks what turns ask of a store: one look where the session stands,
// when the turn begins, and one change, when it ends; nothing while it goes on,
// however much was said before, and nothing else in the first turn than to find
// the session's window. Asked tells how often the server was asked so far.
func RunTrips(t *testing.T, store memory.Store, asked func() int) {
	m, err := memory.New(memory.Config{ID: "trips", Policy: "message_window", Limits: memory.Limits{"max_messages": 6}, Counter: runes{}}, store)
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

// RunFlat checks that an append, a turn, and a memory that finds a session for
// the first time cost the same however much was said before: as many uses of the
// server, as many allocations. The long history has QTYPE_HISTORY messages, else
// 3,000. Asked is as for RunTrips.
func RunFlat(t *testing.T, store memory.Store, asked func() int) {
	long := 3000
	if text := os.Getenv("QTYPE_HISTORY"); text != "" {
		var err error
		long, err = strconv.Atoi(text)
		must(t, err)
	}
	few, many := costs(t, store, asked, "short", 10), costs(t, store, asked, "long", long)
	for what, short := range few {
		at := many[what]
		if at.asked != short.asked || at.allocations > short.allocations*1.1+10 {
			t.Errorf("%s: %s after 10 messages, %s after %d", what, short, at, long)
		}
		t.Logf("%s: %s after 10 messages, %s after %d", what, short, at, long)
	}
}

// roundtrips is that of one operation.
type roundtrips struct {
	asked       int     // uses of the server
	allocations float64 // of the whole process
}

func (c roundtrips) String() string {
	return fmt.Sprintf("asks %d times, %.0f allocations", c.asked, c.allocations)
}

// costs are those of what is done to a session in which n messages were said.
func costs(t *testing.T, store memory.Store, asked func() int, session string, n int) map[string]roundtrips {
	t.Helper()
	open := func() *memory.Memory {
		m, err := memory.New(memory.Config{ID: "flat", Policy: "message_window", Limits: memory.Limits{"max_messages": 10}, Counter: runes{}}, store)
		must(t, err)
		return m
	}
	m := open()
	for said := 0; said < n; {
		var some []chat.Message
		for ; len(some) < 500 && said < n; said++ {
			some = append(some, chat.Text(chat.User, "a message as long as others are"))
		}
		must(t, m.Append(t.Context(), session, some...))
	}
	out := map[string]roundtrips{}
	for what, do := range map[string]func(){
		"an append": func() { must(t, m.Append(t.Context(), session, chat.Text(chat.User, "one more"))) },
		"a turn": func() {
			turn, err := m.Begin(t.Context(), session)
			must(t, err)
			must(t, turn.Add(chat.Text(chat.User, "question")))
			_, err = turn.Window()
			must(t, err)
			must(t, turn.Add(chat.Text(chat.Assistant, "answer")))
			must(t, turn.Commit(t.Context()))
		},
		"a first look": func() {
			w, err := open().Window(t.Context(), session)
			must(t, err)
			if len(w.Entries) != 10 {
				t.Fatalf("a window of %d messages", len(w.Entries))
			}
		},
	} {
		do() // what is prepared once
		const runs = 50
		before := asked()
		allocations := testing.AllocsPerRun(runs, do)
		out[what] = roundtrips{asked: (asked() - before) / (runs + 1), allocations: allocations}
	}
	return out
}
