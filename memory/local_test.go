package memory_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// four are one conversation in four memories that must not differ: where
// sessions are changed where they stand (Live 0) and where they are not, with
// history and without.
type four struct {
	limits   memory.Limits
	asked    bool // the limits are asked for each session, and are those of the memory else
	rounds   bool // the policy is round_window
	clock    int
	stores   [4]memory.Store
	memories [4]*memory.Memory
	sessions [4]*memory.Session
	buffers  [4]memory.WindowBuffer
}

func newFour(t *rapid.T, kind spec.Policy) *four {
	f := &four{limits: drawLimitsOf(t, kind), asked: rapid.Bool().Draw(t, "limits_of"), rounds: kind == spec.PolicyRoundWindow}
	f.stores = [4]memory.Store{memory.NewInProcess(), memory.NewInProcess(), memory.NewInProcessWithoutHistory(), memory.NewInProcessWithoutHistory()}
	first := (kind == spec.PolicyMessageWindow || kind == spec.PolicyTokenWindow) && rapid.Bool().Draw(t, "keep_system_first")
	for i := range f.memories {
		cfg := memory.Config{ID: "m", Policy: kind, KeepSystemFirst: first, Counter: runes{}, Live: i % 2,
			Now: func() time.Time { return time.Unix(int64(f.clock), 0) }}
		if f.asked {
			cfg.LimitsOf = func(string) memory.Limits { return f.limits }
		} else {
			l := f.limits
			cfg.TokenLimit, cfg.ChatShare, cfg.FlushSize, cfg.MaxMessages = l.TokenLimit, l.ChatShare, l.FlushSize, l.MaxMessages
			cfg.MaxTokens, cfg.NRounds, cfg.MaxContext = l.MaxTokens, l.NRounds, l.MaxContext
		}
		m, err := memory.New(cfg, f.stores[i])
		if err != nil {
			t.Fatal(err)
		}
		f.memories[i], f.sessions[i] = m, m.Session("s")
	}
	return f
}

// setLimits changes the limits of all four.
func (f *four) setLimits(t *rapid.T, l memory.Limits) {
	f.limits = l
	if !f.asked {
		f.each(t, func(i int) error { return f.memories[i].SetLimits(l) })
	}
}

func drawLimitsOf(t *rapid.T, kind spec.Policy) memory.Limits {
	switch kind {
	case spec.PolicyMessageWindow:
		return memory.Limits{MaxMessages: rapid.IntRange(1, 8).Draw(t, "max_messages")}
	case spec.PolicyTokenWindow:
		return memory.Limits{MaxTokens: rapid.IntRange(1, 200).Draw(t, "max_tokens")}
	case spec.PolicyRoundWindow:
		return memory.Limits{NRounds: rapid.IntRange(1, 4).Draw(t, "n_rounds"), MaxContext: rapid.IntRange(1, 200).Draw(t, "max_context")}
	case spec.PolicyFlush:
		return memory.Limits{TokenLimit: rapid.IntRange(1, 300).Draw(t, "token_limit"), FlushSize: rapid.IntRange(1, 100).Draw(t, "token_flush_size")}
	}
	return memory.Limits{}
}

// drawFree is some messages without ids, of every shape.
func drawFree(t *rapid.T) []chat.Message {
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
				m.ToolCalls = []chat.ToolCall{{ID: "c", Name: "f", Arguments: "{}"}}
			}
		}
		msgs = append(msgs, m)
	}
	return msgs
}

// each does the same to all four.
func (f *four) each(t *rapid.T, do func(i int) error) {
	f.clock++
	for i := range f.memories {
		if err := do(i); err != nil {
			t.Fatalf("memory %d: %v", i, err)
		}
	}
}

// bare is messages without ids, which are random.
func bare(msgs []chat.Message) []chat.Message {
	out := make([]chat.Message, len(msgs))
	for i, m := range msgs {
		m.ID = ""
		out[i] = m
	}
	return out
}

// tell is what can be seen of one of the four.
func (f *four) tell(t *rapid.T, i int) (all struct {
	Window   memory.Window
	Sent     []chat.Message
	Sessions []memory.SessionInfo
	State    memory.State
}, history []memory.Entry, events []memory.Event) {
	ctx := context.Background()
	w, err := f.sessions[i].Window(ctx)
	if err != nil {
		t.Fatal(err)
	}
	own := w
	own.Entries = nil
	for _, e := range w.Entries {
		c := *e
		c.Message = bare([]chat.Message{e.Message})[0]
		own.Entries = append(own.Entries, &c)
	}
	if w.System != nil {
		c := *w.System
		c.Message.ID = ""
		own.System = &c
	}
	sent, err := f.sessions[i].Messages(ctx, &f.buffers[i])
	if err != nil {
		t.Fatal(err)
	}
	if d := diff(bare(w.Messages()), bare(sent)); d != "" {
		t.Fatalf("memory %d: Window and Messages differ: %s", i, d)
	}
	all.Window, all.Sent = own, bare(sent)
	if all.Sessions, err = f.memories[i].Sessions(ctx); err != nil {
		t.Fatal(err)
	}
	head, err := f.stores[i].Head(ctx, memory.Key{Memory: "m", Session: "s"})
	if err != nil {
		t.Fatal(err)
	}
	all.State = head.State
	all.State.Keep = 0 // where reading begins: before the first of the Kept messages, which are compared
	for e, err := range f.memories[i].History(ctx, "s") {
		if err != nil {
			t.Fatal(err)
		}
		e.Message.ID = ""
		history = append(history, e)
	}
	for e, err := range f.memories[i].Events(ctx, "s") {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	return all, history, events
}

func (f *four) compare(t *rapid.T) {
	want, history, events := f.tell(t, 0)
	for i := 1; i < len(f.memories); i++ {
		got, itsHistory, itsEvents := f.tell(t, i)
		if i == 2 && f.rounds {
			want = got // what left is lost for limits that are raised
			continue
		}
		if d := diff(want, got); d != "" {
			t.Fatalf("memory %d differs: %s", i, d)
		}
		if i == 1 {
			if d := diff(history, itsHistory) + diff(events, itsEvents); d != "" {
				t.Fatalf("memory %d differs: %s", i, d)
			}
		}
	}
}

// diff is cmp.Diff where something differs; it takes its time, also where nothing does.
func diff[T any](want, got T) string {
	if reflect.DeepEqual(want, got) {
		return ""
	}
	return cmp.Diff(want, got)
}

// TestWhereItStands: what is changed where it stands is what the long way makes of it.
func TestWhereItStands(t *testing.T) {
	for _, kind := range []spec.Policy{spec.PolicyFlush, spec.PolicyMessageWindow, spec.PolicyTokenWindow, spec.PolicyRoundWindow, spec.PolicyUnbounded} {
		t.Run(string(kind), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				f := newFour(t, kind)
				ctx := context.Background()
				t.Repeat(map[string]func(*rapid.T){
					"append": func(t *rapid.T) {
						msgs := drawFree(t)
						f.each(t, func(i int) error { return f.sessions[i].Append(ctx, msgs...) })
					},
					"append by name": func(t *rapid.T) {
						msgs := drawFree(t)
						f.each(t, func(i int) error { return f.memories[i].Append(ctx, "s", msgs...) })
					},
					"say": func(t *rapid.T) {
						text := rapid.StringN(0, 20, -1).Draw(t, "text")
						f.each(t, func(i int) error { return f.sessions[i].AppendText(ctx, chat.User, text) })
					},
					"chat": func(t *rapid.T) {
						for _, text := range rapid.SliceOfN(rapid.StringN(0, 20, -1), 1, 12).Draw(t, "texts") {
							role := rapid.SampledFrom([]chat.Role{chat.User, chat.Assistant}).Draw(t, "role")
							f.each(t, func(i int) error { return f.sessions[i].AppendText(ctx, role, text) })
						}
					},
					"turn": func(t *rapid.T) {
						msgs, fails, system := drawFree(t), rapid.Bool().Draw(t, "fails"), rapid.Bool().Draw(t, "system")
						f.each(t, func(i int) error {
							turn, err := f.memories[i].Begin(ctx, "s")
							if err != nil {
								return err
							}
							if system {
								turn.System("be kind")
							}
							if err := turn.Add(msgs...); err != nil {
								return err
							}
							if fails {
								return turn.Abort(ctx, errors.New("no answer"))
							}
							return turn.Commit(ctx)
						})
					},
					"set": func(t *rapid.T) {
						msgs := drawFree(t)
						f.each(t, func(i int) error { return f.memories[i].Set(ctx, "s", msgs...) })
					},
					"clear": func(t *rapid.T) {
						f.each(t, func(i int) error { return f.memories[i].Clear(ctx, "s") })
					},
					"limits": func(t *rapid.T) { f.setLimits(t, drawLimitsOf(t, kind)) },
					"":       f.compare,
				})
			})
		})
	}
}

// TestManyHandles: goroutines that write to a few sessions, each by a handle of
// its own or by name, some in turns, lose nothing and break no limit.
func TestManyHandles(t *testing.T) {
	for name, store := range map[string]memory.Store{"history": memory.NewInProcess(), "windows": memory.NewInProcessWithoutHistory()} {
		t.Run(name, func(t *testing.T) {
			m, err := memory.New(memory.Config{ID: "m", Policy: spec.PolicyMessageWindow, MaxMessages: 5, Counter: runes{}}, store)
			must(t, err)
			const writers, each, sessions = 16, 60, 4
			var wg sync.WaitGroup
			for w := range writers {
				wg.Go(func() {
					session := m.Session(fmt.Sprint("s", w%sessions))
					var b memory.WindowBuffer
					for i := range each {
						var err error
						switch (w + i) % 3 {
						case 0:
							err = session.AppendText(t.Context(), chat.User, fmt.Sprint(w, "-", i))
						case 1:
							err = m.Append(t.Context(), session.ID(), chat.Message{Role: chat.User, Blocks: []chat.Block{{Type: "text", Text: fmt.Sprint(w, "-", i)}}})
						default:
							var turn *memory.Turn
							if turn, err = m.Begin(t.Context(), session.ID()); err == nil {
								err = turn.Add(chat.Text(chat.User, fmt.Sprint(w, "-", i)))
							}
							if err == nil {
								err = turn.Commit(t.Context())
							}
						}
						if err != nil {
							t.Error(err)
							return
						}
						if msgs, err := session.Messages(t.Context(), &b); err != nil || len(msgs) == 0 || len(msgs) > 5 {
							t.Errorf("%d messages, %v", len(msgs), err)
						}
						if window, err := m.Window(t.Context(), session.ID()); err != nil || len(window.Entries) > 5 {
							t.Errorf("%d messages, %v", len(window.Entries), err)
						}
					}
				})
			}
			wg.Wait()
			infos, err := m.Sessions(t.Context())
			must(t, err)
			for _, info := range infos {
				if info.Messages != writers/sessions*each {
					t.Errorf("%s: %d messages said, want %d", info.Session, info.Messages, writers/sessions*each)
				}
			}
			if len(infos) != sessions {
				t.Errorf("%d sessions", len(infos))
			}
		})
	}
}
