package memory_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/internal/memory/sqlite"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// lastTokensByRole is a policy that keeps, for each role, the newest messages
// within a number of tokens: what leaves is rarely a prefix of the window.
func lastTokensByRole(most int) func([]*memory.Entry) []int {
	return func(entries []*memory.Entry) []int {
		used := map[chat.Role]int{}
		var leave []int
		for i, e := range slices.Backward(entries) {
			if used[e.Message.Role] += e.Tokens; used[e.Message.Role] > most {
				leave = append(leave, i)
			}
		}
		slices.Reverse(leave)
		return leave
	}
}

// sparseModel applies lastTokensByRole to a plain list of messages.
type sparseModel struct {
	evict  func([]*memory.Entry) []int
	window []*memory.Entry
}

// add adds messages that follow each other in one append or turn.
func (s *sparseModel) add(msgs []chat.Message) {
	own := len(s.window)
	for _, msg := range msgs {
		if msg.Role != chat.System {
			s.window = append(s.window, &memory.Entry{Message: msg, Tokens: memory.Tokens(runes{}, msg)})
		}
	}
	if len(s.window) == own {
		return
	}
	calls := map[string]*memory.Entry{}
	for _, e := range s.window {
		for _, c := range e.Message.Calls() {
			calls[c.ID] = e
		}
	}
	gone := map[*memory.Entry]bool{}
	for _, i := range s.evict(s.window) {
		e := s.window[i]
		if call := calls[e.Message.ToolCallID]; call != nil {
			e = call
		}
		gone[e] = true
	}
	s.window = slices.DeleteFunc(s.window, func(e *memory.Entry) bool {
		if e.Message.Role != chat.Tool {
			return gone[e]
		}
		call := calls[e.Message.ToolCallID]
		return call == nil || gone[call]
	})
}

func (s *sparseModel) ids() []string {
	var out []string
	for _, e := range s.window {
		out = append(out, e.Message.ID)
	}
	return out
}

// sparse compares a memory with sparseModel.
type sparse struct {
	machine
	expected sparseModel
}

func newSparse(t *rapid.T, store memory.Store, session string) *sparse {
	s := &sparse{expected: sparseModel{evict: lastTokensByRole(rapid.IntRange(10, 150).Draw(t, "tokens"))}}
	s.session, s.store = session, store
	s.cfg = memory.Config{ID: "sparse", Counter: runes{}, Live: rapid.IntRange(0, 1).Draw(t, "live")}
	s.open(t)
	return s
}

// open makes a new memory, which reads the session from the store.
func (s *sparse) open(t *rapid.T) {
	var err error
	s.memory, err = memory.NewWithEviction(s.cfg, s.store, s.expected.evict)
	testkit.Must(t, err)
}

func (s *sparse) append(t *rapid.T) {
	msgs := s.drawSome(t)
	testkit.Must(t, s.memory.Append(context.Background(), s.session, msgs...))
	for i := range msgs {
		s.expected.add(msgs[i : i+1])
	}
}

func (s *sparse) turn(t *rapid.T) {
	msgs := s.drawSome(t)
	testkit.Must(t, s.memory.Turn(context.Background(), s.session, func(turn *memory.Turn) error {
		if err := turn.Add(msgs...); err != nil {
			return err
		}
		_, err := turn.Window()
		if errors.As(err, new(*memory.EmptyWindowError)) || errors.As(err, new(*memory.TurnSizeError)) {
			return nil // the policy evicts what each call needs
		}
		return err
	}))
	s.expected.add(msgs)
}

func (s *sparse) fail(t *rapid.T) {
	calls := s.machine.open
	msgs := s.drawSome(t)
	s.machine.open = calls
	broken := errors.New("no answer")
	err := s.memory.Turn(context.Background(), s.session, func(turn *memory.Turn) error { return errors.Join(turn.Add(msgs...), broken) })
	if !errors.Is(err, broken) {
		t.Fatal(err)
	}
}

// check compares window and history with the model.
func (s *sparse) check(t *rapid.T) {
	w, err := s.memory.Window(context.Background(), s.session)
	testkit.Must(t, err)
	var got, inWindow []string
	for _, e := range w.Entries {
		got = append(got, e.Message.ID)
	}
	if want := s.expected.ids(); !slices.Equal(got, want) {
		t.Fatalf("the window is %v, want %v", got, want)
	}
	evicted := map[int64]int{}
	for e, err := range s.memory.Events(context.Background(), s.session) {
		testkit.Must(t, err)
		if e.Kind == store.EventFlush {
			for seq := e.From; seq <= e.To; seq++ {
				evicted[seq]++
			}
		}
	}
	for e, err := range s.memory.History(context.Background(), s.session) {
		testkit.Must(t, err)
		switch {
		case e.Message.Role == chat.System:
		case e.Status == store.InWindow:
			inWindow = append(inWindow, e.Message.ID)
		case e.Status == store.Flushed && evicted[e.Seq] != 1:
			t.Fatalf("message %d left the window in %d events", e.Seq, evicted[e.Seq])
		}
	}
	if !slices.Equal(got, inWindow) {
		t.Fatalf("the history marks %v as in the window, which is %v", inWindow, got)
	}
}

// checkPolicies checks a property with each policy and one that evicts between messages.
func checkPolicies(t *testing.T, run func(t *rapid.T, policy int, store memory.Store, session string)) {
	for policy, name := range []string{"flush", "message_window", "token_window", "round_window", "unbounded", "sparse"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) { run(t, policy, memory.NewInProcess(), "s") })
		})
	}
}

// checkPoliciesInSQLite checks a property with a few cases of all policies in a file.
func checkPoliciesInSQLite(t *testing.T, run func(t *rapid.T, policy int, store memory.Store, session string)) {
	store, err := sqlite.Open(filepath.Join(testkit.FolderInRAM(t), "memory.db"))
	testkit.Must(t, err)
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		if n++; n <= 2*maxStoredCases {
			run(t, rapid.IntRange(0, 5).Draw(t, "policy"), store, fmt.Sprint("s", n))
		}
	})
	testkit.Must(t, store.Close())
}

// maxStoredCases bounds the cases in stores that write to disk or over the
// network: the policy itself is tested in process.
const maxStoredCases = 20

// TestEviction_NotAPrefix checks, with every kind of store, a policy that evicts
// messages between others: also after the session is read from the store again.
func TestEviction_NotAPrefix(t *testing.T) {
	stores := map[string]func(t *testing.T) memory.Store{
		"in process": func(*testing.T) memory.Store { return memory.NewInProcess() },
		"sqlite": func(t *testing.T) memory.Store {
			return must2[memory.Store](sqlite.Open(filepath.Join(testkit.FolderInRAM(t), "memory.db")))(t)
		},
	}
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // servers and files make it wait
			store, n := open(t), 0
			t.Cleanup(func() { testkit.Must(t, store.Close()) })
			rapid.Check(t, func(t *rapid.T) {
				if n++; n > maxStoredCases && name != "in process" {
					return
				}
				s := newSparse(t, store, fmt.Sprint("s", n))
				t.Repeat(map[string]func(*rapid.T){"append": s.append, "turn": s.turn, "fail": s.fail, "reopen": s.open, "": s.check})
			})
		})
	}
}
