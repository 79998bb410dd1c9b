package memory_test

import (
	"fmt"
	"math"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// TestEventsComeBack: the store in this process keeps most events in few bytes
// and gives every one back as it was told, in order.
func TestEventsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store, key := memory.NewInProcess(), memory.Key{Memory: "m", Session: "s"}
		want := rapid.SliceOfN(rapid.Custom(drawEvent), 1, 600).Draw(t, "events")
		for i := range want {
			change := memory.Change{Version: int64(i), Next: int64(i) + 1, Events: want[i : i+1]}
			if err := store.Apply(t.Context(), key, change); err != nil {
				t.Fatal(err)
			}
		}
		var got []memory.Event
		for e, err := range store.Events(t.Context(), key) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, e)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatal(d)
		}
	})
}

// drawEvent is mostly the eviction of a window, at times with a number that is large.
func drawEvent(t *rapid.T) memory.Event {
	number := rapid.OneOf(rapid.IntRange(0, 9), rapid.SampledFrom([]int{math.MaxInt32, math.MaxInt32 + 1, math.MinInt64, -1, math.MaxInt64}))
	from := int64(rapid.IntRange(0, 1<<40).Draw(t, "from"))
	return memory.Event{
		Kind: rapid.SampledFrom([]memory.EventKind{memory.EventFlush, memory.EventFlush, memory.EventFlush, memory.EventSet}).Draw(t, "kind"),
		Turn: int64(number.Draw(t, "turn")), From: from, To: from + int64(number.Draw(t, "span"))/2,
		Messages: number.Draw(t, "messages"), Tokens: number.Draw(t, "tokens"), Before: number.Draw(t, "before"), Limit: number.Draw(t, "limit"),
		Rule:   rapid.SampledFrom([]spec.Policy{spec.PolicyMessageWindow, spec.PolicyTokenWindow, spec.PolicyFlush}).Draw(t, "rule"),
		Unit:   rapid.SampledFrom([]memory.Unit{memory.InMessages, memory.InTokens, memory.InCharacters}).Draw(t, "unit"),
		Reason: rapid.SampledFrom([]string{"", "", "", "because"}).Draw(t, "reason"),
		Time: rapid.SampledFrom([]time.Time{{}, time.UnixMicro(1_700_000_000_000_001).UTC(), time.Unix(1, 1).UTC(),
			time.UnixMicro(5).In(time.FixedZone("east", 3600))}).Draw(t, "time"),
	}
}

// wide counts every message as more tokens than a line of a window holds, at times.
type wide struct{}

func (wide) Count(text string) int { return len(text) << 23 }

// TestWideMessages: a window without history tells the size of each message,
// however large.
func TestWideMessages(t *testing.T) {
	m, err := memory.New(memory.Config{ID: "m", Policy: spec.PolicyMessageWindow, MaxMessages: 3, Counter: wide{}}, memory.NewInProcessWithoutHistory())
	must(t, err)
	s := m.Session("s")
	for _, text := range []string{"", "a", "ab", "", "abc", "a"} {
		must(t, s.AppendText(t.Context(), chat.User, text))
	}
	w, err := s.Window(t.Context())
	must(t, err)
	frame := memory.Tokens(wide{}, chat.Message{Role: chat.User})
	for i, text := range []string{"", "abc", "a"} {
		if e := w.Entries[i]; e.Message.Text() != text || e.Tokens != frame+len(text)<<23 {
			t.Errorf("message %d is %q with %d tokens, want %q with %d", i, e.Message.Text(), e.Tokens, text, frame+len(text)<<23)
		}
	}
}

// TestWhatLeftIsFree: the text of a message that left a window without history is
// garbage at once, though the window's array stays as it is.
func TestWhatLeftIsFree(t *testing.T) {
	m, err := memory.New(memory.Config{ID: "m", Policy: spec.PolicyMessageWindow, MaxMessages: 2, Counter: runes{}}, memory.NewInProcessWithoutHistory())
	must(t, err)
	s := m.Session("s")
	const size = 8 << 20 // bytes; as many tokens are a line's
	inUse := func() int64 {
		var now runtime.MemStats
		runtime.GC()
		runtime.GC() // also what a pool gave back
		runtime.ReadMemStats(&now)
		return int64(now.HeapAlloc)
	}
	must(t, s.AppendText(t.Context(), chat.User, "a"))
	must(t, s.AppendText(t.Context(), chat.User, "b"))
	before := inUse()
	must(t, s.AppendText(t.Context(), chat.User, strings.Repeat("x", size)))
	if held := inUse() - before; held < size/2 {
		t.Fatalf("a message of %d bytes takes %d", size, held)
	}
	must(t, s.AppendText(t.Context(), chat.Assistant, "c"))
	must(t, s.AppendText(t.Context(), chat.User, "d"))
	if held := inUse() - before; held > size/2 {
		t.Errorf("%d bytes are held for a message that left", held)
	}
	runtime.KeepAlive(m)
}

// TestIDsOfManyMessages: every message that comes without an id gets one of its
// own, which it keeps.
func TestIDsOfManyMessages(t *testing.T) {
	m, err := memory.New(memory.Config{ID: "m", Policy: spec.PolicyMessageWindow, MaxMessages: 3, Counter: runes{}}, memory.NewInProcess())
	must(t, err)
	form, seen := regexp.MustCompile(`^[0-9a-f]{32}$`), map[string]bool{}
	for i := range 300 {
		s := m.Session(fmt.Sprint("s", i%2))
		must(t, s.AppendText(t.Context(), chat.System, "be kind")) // says nothing new, but for the first
		must(t, s.AppendText(t.Context(), chat.User, fmt.Sprint(i)))
		w, err := s.Window(t.Context())
		must(t, err)
		id := w.Entries[len(w.Entries)-1].Message.ID
		if !form.MatchString(id) || seen[id] {
			t.Fatalf("message %d has the id %q", i, id)
		}
		seen[id] = true
	}
	for _, session := range []string{"s0", "s1"} {
		n := 0
		for e, err := range m.History(t.Context(), session) {
			must(t, err)
			if n++; e.Seq != int64(n) || e.Message.Role == chat.User && !seen[e.Message.ID] {
				t.Fatalf("entry %d of %s has the id %q, which it did not have before", e.Seq, session, e.Message.ID)
			}
		}
		if n != 151 {
			t.Errorf("%s has %d entries", session, n)
		}
	}
}
