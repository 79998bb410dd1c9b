package memory_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// twins are two memories that receive the same calls: one keeps the views of all
// its sessions, the other keeps one and reads the rest from its store.
type twins struct {
	limits   memory.Limits
	limitsOf bool // the limits come from Config.LimitsOf, otherwise from SetLimits
	clock    int
	stores   [2]memory.Store
	memories [2]*memory.Memory
}

func newTwins(t *rapid.T, kind spec.Policy) *twins {
	w := &twins{limits: drawLimitsOf(t, kind), limitsOf: rapid.Bool().Draw(t, "limits_of")}
	row, _ := spec.FindPolicy(kind)
	first := row.Supports("keep_system_first") && rapid.Bool().Draw(t, "keep_system_first")
	for i := range w.memories {
		cfg := memory.Config{ID: "m", Policy: kind, KeepSystemFirst: first, Counter: runes{}, Live: i,
			Now: func() time.Time { return time.Unix(int64(w.clock), 0) }}
		w.stores[i] = memory.NewInProcess()
		if w.limitsOf {
			cfg.LimitsOf = func(string) memory.Limits { return w.limits }
		}
		if !w.limitsOf {
			cfg.Limits = w.limits
		}
		m, err := memory.New(cfg, w.stores[i])
		testkit.Must(t, err)
		w.memories[i] = m
	}
	return w
}

func (w *twins) setLimits(t *rapid.T, l memory.Limits) {
	w.limits = l
	if !w.limitsOf {
		w.each(t, func(i int) error { return w.memories[i].SetLimits(l) })
	}
}

// drawLimitsOf draws limits of a policy, small ones so that messages leave soon.
func drawLimitsOf(t *rapid.T, kind spec.Policy) memory.Limits {
	row, _ := spec.FindPolicy(kind)
	limits := memory.Limits{}
	for _, l := range row.Limits {
		switch l.Unit {
		case spec.UnitShare:
			limits[l.Key] = float64(rapid.IntRange(30, 100).Draw(t, l.Key)) / 100
		case spec.UnitMessages, spec.UnitRounds:
			limits[l.Key] = float64(rapid.IntRange(1, 8).Draw(t, l.Key))
		default:
			limits[l.Key] = float64(rapid.IntRange(1, 200).Draw(t, l.Key))
		}
	}
	return limits
}

// drawMessages draws a few messages without ids, of every shape.
func drawMessages(t *rapid.T) []chat.Message {
	var msgs []chat.Message
	for range rapid.IntRange(1, 3).Draw(t, "messages") {
		m := chat.Message{Role: rapid.SampledFrom([]chat.Role{chat.User, chat.User, chat.Assistant, chat.Assistant, chat.Tool, chat.Model, chat.System}).Draw(t, "role")}
		text := rapid.SampledFrom([]string{"a", "ü🙂", "\xff bad", ""}).Draw(t, "text") + strings.Repeat("x", rapid.IntRange(0, 40).Draw(t, "length"))
		m.Blocks = []chat.Block{{Type: "text", Text: text}}
		switch rapid.IntRange(0, 9).Draw(t, "shape") {
		case 0:
			m.Name = "bo"
		case 1:
			m.Blocks = append(m.Blocks, chat.Block{Type: "image", Data: []byte{1}, MimeType: "image/png"})
		case 2:
			m.Blocks = nil
		case 3:
			if m.Role == chat.Assistant {
				m = m.With(chat.ToolCall{ID: "c", Name: "f", Arguments: "{}"})
			}
		}
		msgs = append(msgs, m)
	}
	return msgs
}

// each makes the same call on both memories.
func (w *twins) each(t *rapid.T, do func(i int) error) {
	w.clock++
	for i := range w.memories {
		err := do(i)
		if _, rejected := errors.AsType[*memory.BalanceError](err); err != nil && !rejected {
			t.Fatalf("memory %d: %v", i, err)
		}
	}
}

// observed is all that a user can see of a session; message ids are random and left out.
type observed struct {
	Window   memory.Window
	Sessions []memory.SessionInfo
	State    store.State
	History  []memory.Entry
	Events   []memory.Event
}

func (w *twins) observe(t *rapid.T, i int) observed {
	ctx, m := context.Background(), w.memories[i]
	window, err := m.Window(ctx, "s")
	testkit.Must(t, err)
	all := observed{Window: window}
	all.Window.Entries = nil
	for _, e := range window.Entries {
		c := *e
		c.Message.ID = ""
		all.Window.Entries = append(all.Window.Entries, &c)
	}
	if window.System != nil {
		c := *window.System
		c.Message.ID = ""
		all.Window.System = &c
	}
	all.Sessions, err = m.Sessions(ctx)
	testkit.Must(t, err)
	head, err := w.stores[i].Head(ctx, memory.Key{Memory: "m", Session: "s"})
	testkit.Must(t, err)
	all.State = head.State
	// What round_window keeps for reads under wider limits depends on the limits under which the view was
	// read; reads find the rest in the store.
	all.State.Keep, all.State.Kept = 0, 0
	for e, err := range m.History(ctx, "s") {
		testkit.Must(t, err)
		e.Message.ID = ""
		all.History = append(all.History, e)
	}
	for e, err := range m.Events(ctx, "s") {
		testkit.Must(t, err)
		all.Events = append(all.Events, e)
	}
	return all
}

func (w *twins) compare(t *rapid.T) {
	want, got := w.observe(t, 0), w.observe(t, 1)
	if d := difference(want, got); d != "" {
		t.Fatalf("the memories differ: %s", d)
	}
}

// runTurn adds messages in a turn and commits it, or aborts it if fails is set.
func runTurn(m *memory.Memory, msgs []chat.Message, system string, fails bool) error {
	turn, err := m.Begin(context.Background(), "s")
	if err != nil {
		return err
	}
	turn.System(system)
	if err := turn.Add(msgs...); err != nil {
		return err
	}
	if fails {
		return turn.Abort(context.Background(), errors.New("no answer"))
	}
	return turn.Commit(context.Background())
}

// TestMemory_CachedViewMatchesStore compares a memory that reads every view from
// its cache with one that reads most views from the store.
func TestMemory_CachedViewMatchesStore(t *testing.T) {
	for _, row := range spec.Policies() {
		kind := row.Name
		t.Run(string(kind), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				w := newTwins(t, kind)
				ctx := context.Background()
				t.Repeat(map[string]func(*rapid.T){
					"append": func(t *rapid.T) {
						msgs := drawMessages(t)
						w.each(t, func(i int) error { return w.memories[i].AppendUnchecked(ctx, "s", msgs...) })
					},
					"other session": func(t *rapid.T) {
						w.each(t, func(i int) error { return w.memories[i].Append(ctx, "other", chat.Text(chat.User, "x")) })
					},
					"turn": func(t *rapid.T) {
						msgs, fails := drawMessages(t), rapid.Bool().Draw(t, "fails")
						system := rapid.SampledFrom([]string{"", "be kind"}).Draw(t, "system")
						w.each(t, func(i int) error { return runTurn(w.memories[i], msgs, system, fails) })
					},
					"set": func(t *rapid.T) {
						msgs := drawMessages(t)
						w.each(t, func(i int) error { return w.memories[i].Set(ctx, "s", msgs...) })
					},
					"clear": func(t *rapid.T) {
						w.each(t, func(i int) error { return w.memories[i].Clear(ctx, "s") })
					},
					"limits": func(t *rapid.T) { w.setLimits(t, drawLimitsOf(t, kind)) },
					"":       w.compare,
				})
			})
		})
	}
}

// TestMemory_ConcurrentWriters checks that goroutines that append to a few
// sessions, some of them in turns, lose nothing and exceed no limit.
func TestMemory_ConcurrentWriters(t *testing.T) {
	m, err := memory.New(memory.Config{ID: "m", Policy: spec.PolicyMessageWindow, Limits: memory.Limits{"max_messages": 5}, Counter: runes{}}, memory.NewInProcess())
	testkit.Must(t, err)
	const writers, each, sessions = 16, 60, 4
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			session := fmt.Sprint("s", w%sessions)
			for i := range each {
				msg := chat.Message{Role: chat.User, Blocks: []chat.Block{{Type: "text", Text: fmt.Sprint(w, "-", i)}}}
				var err error
				if (w+i)%2 == 0 {
					err = m.Append(t.Context(), session, msg)
				} else {
					var turn *memory.Turn
					if turn, err = m.Begin(t.Context(), session); err == nil {
						err = errors.Join(turn.Add(msg), turn.Commit(t.Context()))
					}
				}
				if err != nil {
					t.Error(err)
					return
				}
				if window, err := m.Window(t.Context(), session); err != nil || len(window.Entries) == 0 || len(window.Entries) > 5 {
					t.Errorf("%d messages, %v", len(window.Entries), err)
				}
			}
		})
	}
	wg.Wait()
	infos, err := m.Sessions(t.Context())
	testkit.Must(t, err)
	for _, info := range infos {
		if info.Messages != writers/sessions*each {
			t.Errorf("%s: the history has %d messages, want %d", info.Session, info.Messages, writers/sessions*each)
		}
	}
	if len(infos) != sessions {
		t.Errorf("%d sessions", len(infos))
	}
}
