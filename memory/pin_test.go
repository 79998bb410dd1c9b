package memory_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/memory/transcript"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// TestPin_Requests checks each request of random turns, as TestTurn_KeepsQuestion does, while
// messages are pinned and unpinned: pinned ones are sent, and what is stored follows from the
// events.
func TestPin_Requests(t *testing.T) {
	testkit.SkipWithRace(t)
	for _, row := range spec.Policies() {
		if row.Name == spec.PolicyRoundWindow {
			continue
		}
		t.Run(string(row.Name), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				a := &agentTurns{limits: drawAgentLimits(t, row.Name), resultSize: 60, pinned: map[string]bool{}}
				a.system = rapid.SampledFrom([]string{"", "brief"}).Draw(t, "system")
				a.cfg = memory.Config{ID: "m", Policy: row.Name, Limits: a.limits, Counter: runes{}}
				var err error
				a.store = memory.NewInProcess()
				a.memory, err = memory.New(a.cfg, a.store)
				testkit.Must(t, err)
				past := []string{a.described(t)} // the window after each turn
				undone := map[int]int{}          // the turns that stayed, by turns that were rewound
				for range rapid.IntRange(1, 8).Draw(t, "operations") {
					switch rapid.SampledFrom([]string{"turn", "turn", "pin", "pin", "unpin", "rewind"}).Draw(t, "operation") {
					case "turn":
						a.run(t)
					case "pin":
						a.pin(t, true)
					case "unpin":
						a.pin(t, false)
					case "rewind":
						a.rewind(t, past, undone)
					}
					a.checkPins(t)
					info, err := a.memory.Info(context.Background(), "s")
					testkit.Must(t, err)
					if int(info.Turns) >= len(past) {
						past = append(past, a.described(t))
					}
				}
				a.checkCopies(t)
			})
		})
	}
}

// pin pins or unpins a random message of the window.
func (a *agentTurns) pin(t *rapid.T, pin bool) {
	ctx := context.Background()
	w, err := a.memory.Window(ctx, "s")
	testkit.Must(t, err)
	if len(w.Entries) == 0 {
		return
	}
	e := rapid.SampledFrom(w.Entries).Draw(t, "message")
	change := a.memory.Unpin
	if pin {
		change = a.memory.Pin
	}
	err = change(ctx, "s", e.Seq)
	var size *memory.PinSizeError
	if errors.As(err, &size) && size.Used > size.Limit {
		return
	}
	testkit.Must(t, err)
	for _, one := range unitOf(w.Entries, e) {
		delete(a.pinned, one)
		if pin {
			a.pinned[one], a.wasPinned = true, true
		}
	}
}

// unitOf returns the ids of the messages that belong together with one.
func unitOf(entries []*memory.Entry, e *memory.Entry) (ids []string) {
	for i, first := range entries {
		unit := []string{first.Message.ID}
		for _, next := range entries[i+1:] {
			if len(first.Message.Calls()) == 0 || next.Message.Role != chat.Tool {
				break
			}
			unit = append(unit, next.Message.ID)
		}
		if slices.Contains(unit, e.Message.ID) {
			return unit
		}
	}
	return nil
}

// rewind undoes some turns, and compares the window with what it was; turns that were rewound
// before do not return.
func (a *agentTurns) rewind(t *rapid.T, past []string, undone map[int]int) {
	turn := rapid.IntRange(0, len(past)-1).Draw(t, "turn")
	if turn == 0 {
		return
	}
	a.copies++
	fork := fmt.Sprint("fork ", a.copies)
	testkit.Must(t, a.memory.Fork(context.Background(), "s", fork, int64(turn)))
	if got := describedWindow(t, a.memory, fork); got != past[turn] {
		t.Fatalf("after turn %d the window was\n%s\nthat of the fork is\n%s", turn, past[turn], got)
	}
	testkit.Must(t, a.memory.RewindTo(context.Background(), "s", int64(turn)))
	head, err := a.memory.Head(context.Background(), "s")
	testkit.Must(t, err)
	stayed := turn
	for before, found := undone[stayed]; found; before, found = undone[stayed] {
		stayed = before
	}
	if got := a.described(t); got != past[stayed] {
		t.Fatalf("after turn %d the window was\n%s\nit is\n%s", stayed, past[stayed], got)
	}
	for later := turn + 1; later < len(past); later++ {
		undone[later] = stayed
	}
	a.pinned = map[string]bool{}
	w, err := a.memory.Window(context.Background(), "s")
	testkit.Must(t, err)
	for _, e := range w.Entries {
		if head.State.IsPinned(e.Seq) {
			a.pinned[e.Message.ID] = true
		}
	}
}

// described describes the window with its pins.
func (a *agentTurns) described(t *rapid.T) string {
	return describedWindow(t, a.memory, "s")
}

func describedWindow(t *rapid.T, m *memory.Memory, session string) string {
	head, err := m.Head(context.Background(), session)
	testkit.Must(t, err)
	w, err := m.Window(context.Background(), session)
	testkit.Must(t, err)
	var b strings.Builder
	for _, e := range w.Entries {
		fmt.Fprintf(&b, "%d %s %v\n", e.Seq, e.Message.ID, head.State.IsPinned(e.Seq))
	}
	return b.String()
}

// checkPins checks that the window has the pinned messages and that no others are marked so.
func (a *agentTurns) checkPins(t *rapid.T) {
	ctx := context.Background()
	head, err := a.memory.Head(ctx, "s")
	testkit.Must(t, err)
	w, err := a.memory.Window(ctx, "s")
	testkit.Must(t, err)
	found := map[string]bool{}
	for _, e := range w.Entries {
		if head.State.IsPinned(e.Seq) {
			found[e.Message.ID] = true
		}
	}
	if !maps.Equal(found, a.pinned) {
		t.Fatalf("the window has the pinned messages %v, not %v", found, a.pinned)
	}
}

// checkCopies checks that a new process and an import have the same window and pins.
func (a *agentTurns) checkCopies(t *rapid.T) {
	ctx := context.Background()
	head, err := a.memory.Head(ctx, "s")
	testkit.Must(t, err)
	if head.Version == 0 {
		return
	}
	var file bytes.Buffer
	testkit.Must(t, transcript.Export(ctx, a.memory, "s", &file))
	testkit.Must(t, transcript.Import(ctx, a.memory, "copy", &file))
	if got, want := describedWindow(t, a.memory, "copy"), a.described(t); got != want && a.system == "" {
		t.Fatalf("the window of the import is\n%s\nnot\n%s", got, want)
	}
	restarted, err := memory.New(a.cfg, a.store)
	testkit.Must(t, err)
	if got, want := describedWindow(t, restarted, "s"), a.described(t); got != want {
		t.Fatalf("after a restart the window is\n%s\nnot\n%s", got, want)
	}
}

// TestPin_Window shows what leaves in place of a pinned message, and the
// reasons of the events.
func TestPin_Window(t *testing.T) {
	m, err := memory.New(memory.Config{ID: "m", Policy: spec.PolicyMessageWindow, Limits: memory.Limits{"max_messages": 4}, Counter: runes{}}, memory.NewInProcess())
	testkit.Must(t, err)
	ctx := t.Context()
	add := func(texts ...string) {
		for _, text := range texts {
			testkit.Must(t, m.Append(ctx, "s", chat.Text(chat.User, text)))
		}
	}
	texts := func() (out []string) {
		w, err := m.Window(ctx, "s")
		testkit.Must(t, err)
		for _, e := range w.Entries {
			out = append(out, e.Message.Text())
		}
		return out
	}
	add("a", "b", "c", "d")
	testkit.Must(t, m.Pin(ctx, "s", 2))
	testkit.Must(t, m.Pin(ctx, "s", 2)) // nothing changes
	add("e", "f", "g")
	if got := texts(); !slices.Equal(got, []string{"b", "e", "f", "g"}) {
		t.Errorf("got %v", got)
	}
	testkit.Must(t, m.Unpin(ctx, "s", 2))
	add("h")
	if got := texts(); !slices.Equal(got, []string{"e", "f", "g", "h"}) {
		t.Errorf("got %v", got)
	}
	var reasons []string
	for e, err := range m.Events(ctx, "s") {
		testkit.Must(t, err)
		if e.Kind == store.EventPin || e.Kind == store.EventUnpin {
			reasons = append(reasons, fmt.Sprint(e.Turn, " ", e.Reason))
		}
	}
	if want := []string{"5 message 2 was pinned", "9 message 2 is no longer pinned"}; !slices.Equal(reasons, want) {
		t.Errorf("got %q", reasons)
	}
	testkit.Must(t, m.Pin(ctx, "s", 6))
	testkit.Must(t, m.Delete(ctx, "s", 6))
	add("i")
	if got := texts(); !slices.Equal(got, []string{"e", "g", "h", "i"}) {
		t.Errorf("got %v", got)
	}
	testkit.Must(t, m.RewindTo(ctx, "s", 8))
	if got := texts(); !slices.Equal(got, []string{"b", "e", "f", "g"}) {
		t.Errorf("after the rewind: %v", got)
	}
}

// TestPin_Budget checks that pinned messages are sent although the context window of a model
// has no room for the round that they belong to.
func TestPin_Budget(t *testing.T) {
	m, err := memory.New(memory.Config{ID: "m", Policy: spec.PolicyUnbounded, Counter: runes{}}, memory.NewInProcess())
	testkit.Must(t, err)
	for i := range 5 {
		testkit.Must(t, m.Append(t.Context(), "s", chat.Text(chat.User, fmt.Sprint("question ", i)), chat.Text(chat.Assistant, fmt.Sprint("answer ", i))))
	}
	testkit.Must(t, m.Pin(t.Context(), "s", 4))
	turn, err := m.Begin(t.Context(), "s")
	testkit.Must(t, err)
	testkit.Must(t, turn.Add(chat.Text(chat.User, "again")))
	sent, err := turn.Fit(memory.Budget{Model: "small", ContextWindow: 80})
	testkit.Must(t, err)
	if want := []string{`assistant "answer 1" 0 calls, answers `, `user "question 4" 0 calls, answers `, `assistant "answer 4" 0 calls, answers `, `user "again" 0 calls, answers `}; !slices.Equal(written(sent), want) {
		t.Errorf("got %q", written(sent))
	}
	_, err = turn.Fit(memory.Budget{Model: "small", ContextWindow: 30})
	if err == nil || !strings.Contains(err.Error(), "the newest round (1 message, 12 tokens) and the pinned messages (20) need 32") {
		t.Errorf("got %v", err)
	}
	testkit.Must(t, turn.Commit(t.Context()))
}

func TestPin_Errors(t *testing.T) {
	m, err := memory.New(memory.Config{ID: "m", Policy: spec.PolicyTokenWindow, Limits: memory.Limits{"max_tokens": 41}, Counter: runes{}}, memory.NewInProcess())
	testkit.Must(t, err)
	testkit.Must(t, m.Append(t.Context(), "s", chat.Text(chat.User, "gone"), chat.Text(chat.System, "brief"), chat.Text(chat.User, strings.Repeat("x", 12))))
	testkit.Must(t, m.Append(t.Context(), "s", chat.Text(chat.User, "y")))
	for position, want := range map[int64]string{
		1: `memory m, session "s", message 1: it left the window, so it cannot be pinned`,
		2: `memory m, session "s", message 2: it is a system message, which never leaves the window`,
		9: `memory m, session "s", message 9: the session has no such message; its positions are 1 to 4`,
	} {
		if err := m.Pin(t.Context(), "s", position); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	testkit.Must(t, m.Unpin(t.Context(), "s", 3))
	testkit.Must(t, m.Pin(t.Context(), "s", 4))
	testkit.Must(t, m.SetLimits(memory.Limits{"max_tokens": 40}))
	err = m.Pin(t.Context(), "s", 3)
	if want := `memory m, session "s", message 3: with it the pinned messages would have 41 of the window's 40 tokens: unpin others or increase the limit`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	turn, err := m.Begin(t.Context(), "s")
	testkit.Must(t, err)
	testkit.Must(t, turn.Add(chat.Text(chat.User, strings.Repeat("z", 20))))
	var size *memory.TurnSizeError
	if _, err := turn.Window(); !errors.As(err, &size) || size.Pinned != 1 || !strings.Contains(err.Error(), "the system message, 1 pinned message, the question") {
		t.Errorf("got %v", err)
	}
	testkit.Must(t, turn.Abort(t.Context(), err))
	rounds, err := memory.New(memory.Config{ID: "m", Policy: spec.PolicyRoundWindow, Counter: runes{}}, memory.NewInProcess())
	testkit.Must(t, err)
	testkit.Must(t, rounds.Append(t.Context(), "s", chat.Text(chat.User, "a")))
	if err := rounds.Pin(t.Context(), "s", 1); err == nil || !strings.Contains(err.Error(), "policy round_window has no pins") {
		t.Errorf("got %v", err)
	}
}
