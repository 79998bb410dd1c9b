package memory_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// revising is a branching whose messages are edited and deleted too. It knows the
// messages that survive, without regard to windows.
type revising struct {
	*branching
	sets      int              // how often the window was replaced
	positions map[int64]string // the ids of all messages that there ever were
}

func newRevising(t *rapid.T, policy int, store memory.Store, session string) *revising {
	return &revising{branching: newBranching(t, policy, store, session), positions: map[int64]string{}}
}

// conversation returns the messages that can be revised.
func (r *revising) conversation(t rapid.TB) []memory.Entry {
	var all []memory.Entry
	for e, err := range r.memory.Messages(context.Background(), r.session) {
		testkit.Must(t, err)
		if e.Status != store.Failed {
			all = append(all, e)
		}
	}
	return all
}

// revise makes a change of one message, which a fresh session finds by its id.
func (r *revising) revise(t *rapid.T, make func(context.Context, *memory.Memory, string, memory.Entry) error, model func([]chat.Message, int) []chat.Message) {
	all := r.conversation(t)
	if len(all) == 0 {
		t.Skip("there are no messages")
	}
	at := rapid.IntRange(0, len(all)-1).Draw(t, "message")
	id := all[at].Message.ID
	messages := messagesOf(all)
	r.do(t, change{make: func(m *memory.Memory, s string) error {
		e, err := m.Find(context.Background(), s, id)
		if err != nil {
			return err
		}
		return make(context.Background(), m, s, e)
	}})
	if d := difference(model(messages, at), messagesOf(r.conversation(t)), cmpopts.EquateEmpty()); d != "" {
		t.Fatalf("the conversation: %s", d)
	}
}

func messagesOf(all []memory.Entry) []chat.Message {
	var out []chat.Message
	for _, e := range all {
		out = append(out, e.Message)
	}
	return out
}

func (r *revising) edit(t *rapid.T) {
	r.n++
	text := fmt.Sprintf("edit %d%*s", r.n, rapid.IntRange(0, 60).Draw(t, "size"), "")
	edited := func(msg chat.Message) chat.Message {
		return msg.WithText(text)
	}
	r.revise(t, func(ctx context.Context, m *memory.Memory, s string, e memory.Entry) error {
		return m.Edit(ctx, s, e.Seq, edited(e.Message))
	}, func(all []chat.Message, at int) []chat.Message {
		all[at] = edited(all[at])
		return all
	})
}

func (r *revising) delete(t *rapid.T) {
	r.open = nil
	r.revise(t, func(ctx context.Context, m *memory.Memory, s string, e memory.Entry) error {
		return m.Delete(ctx, s, e.Seq)
	}, withoutUnit)
}

// withoutUnit returns messages without one; a tool call and its results leave together.
func withoutUnit(all []chat.Message, at int) []chat.Message {
	gone := map[string]bool{all[at].ID: true}
	call := at
	for call > 0 && (all[call].Role == chat.Tool || all[call].Role == chat.System || all[call].Role == chat.Developer) && all[at].Role == chat.Tool {
		call--
	}
	if len(all[call].Calls()) > 0 {
		gone[all[call].ID] = true
		for i := call + 1; i < len(all) && all[i].Role != chat.User && all[i].Role != chat.Assistant; i++ {
			if all[i].Role == chat.Tool {
				gone[all[i].ID] = true
			}
		}
	}
	return slices.DeleteFunc(all, func(m chat.Message) bool { return gone[m.ID] })
}

// check compares with a session in which only the changes that remain were made, and
// with the messages that survive.
func (r *revising) check(t *rapid.T) {
	r.branching.check(t)
	got := snapshotOf(t, r.memory, r.session)
	open := map[string]bool{}
	for _, m := range got.Messages {
		for _, c := range m.Calls() {
			open[c.ID] = true
		}
		if m.Role == chat.Tool && !open[m.ToolCallID] {
			t.Fatalf("the result of %q has no call", m.ToolCallID)
		}
	}
	all := r.conversation(t)
	rest := messagesOf(all)
	for _, m := range got.Messages {
		i := slices.IndexFunc(rest, func(one chat.Message) bool { return one.ID == m.ID })
		if m.Role == chat.System || m.Role == chat.Developer || got.Cut { // most policies move the system message to the front
			continue
		}
		if i < 0 || difference(rest[i], m) != "" {
			t.Fatalf("the window has %q out of order, or twice, or with another text", m.ID)
		}
		rest = rest[i+1:]
	}
	for e, err := range r.memory.History(context.Background(), r.session) {
		testkit.Must(t, err)
		if id, known := r.positions[e.Seq]; known && id != e.Message.ID {
			t.Fatalf("position %d was used again", e.Seq)
		}
		r.positions[e.Seq] = e.Message.ID
	}
	if r.cfg.Policy == spec.PolicyUnbounded && r.sets == 0 {
		all = slices.DeleteFunc(all, func(e memory.Entry) bool { return e.Message.Role == chat.System || e.Message.Role == chat.Developer })
		window := slices.DeleteFunc(got.Messages, func(m chat.Message) bool { return m.Role == chat.System || m.Role == chat.Developer })
		if d := difference(messagesOf(all), window, cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("the window is not the messages that survive: %s", d)
		}
	}
}

func (r *revising) replace(t *rapid.T) {
	r.sets++
	r.branching.replace(t)
}

func (r *revising) run(t *rapid.T) {
	t.Repeat(map[string]func(*rapid.T){"append": r.append, "turn": r.turn, "set": r.replace, "rewind": r.rewind, "fork": r.fork, "export": r.export,
		"edit": r.edit, "delete": r.delete, "other": r.other, "reload": r.reload, "": r.check})
}

// TestEdit_AsIfNeverMade checks, with each policy and one that evicts between messages,
// any sequence of appends, turns, edits, deletions, rewinds and forks.
func TestEdit_AsIfNeverMade(t *testing.T) {
	checkPolicies(t, func(t *rapid.T, policy int, store memory.Store, session string) {
		newRevising(t, policy, store, session).run(t)
	})
}

func TestEdit_AsIfNeverMadeInSQLite(t *testing.T) {
	testkit.SkipWithRace(t)
	t.Parallel()
	checkPoliciesInSQLite(t, func(t *rapid.T, policy int, store memory.Store, session string) {
		newRevising(t, policy, store, session).run(t)
	})
}

// callSession has a question, a call with two results, and an answer.
func callSession(t *testing.T) (*memory.Memory, *memory.Memory) {
	store := memory.NewInProcess()
	m := newMemory(t, store)
	call := chat.Message{Role: chat.Assistant}.With(chat.ToolCall{ID: "c1", Name: "f", Arguments: "{}"}, chat.ToolCall{ID: "c2", Name: "f", Arguments: "{}"})
	result := func(id string) chat.Message {
		msg := chat.Text(chat.Tool, "result "+id)
		msg.ToolCallID = id
		return msg
	}
	testkit.Must(t, m.Append(t.Context(), "s", chat.Text(chat.System, "be brief"), chat.Text(chat.User, "q"), call, result("c1"), result("c2"), chat.Text(chat.Assistant, "a")))
	return m, newMemory(t, store)
}

func statusesOf(t *testing.T, m *memory.Memory, session string) string {
	var all []string
	for e, err := range m.History(t.Context(), session) {
		testkit.Must(t, err)
		all = append(all, fmt.Sprint(e.Seq, " ", e.Message.Text(), " ", e.Status))
	}
	return strings.Join(all, ", ")
}

// TestEdit_History checks what remains of an edited message: a status and an event.
func TestEdit_History(t *testing.T) {
	m, other := callSession(t)
	question, err := m.Find(t.Context(), "s", "2")
	testkit.Must(t, err)
	testkit.Must(t, m.Edit(t.Context(), "s", 2, chat.Text(chat.User, "q2")))
	testkit.Must(t, m.Edit(t.Context(), "s", 2, chat.Text(chat.User, "q2"))) // is the same
	testkit.Must(t, m.Edit(t.Context(), "s", 7, chat.Text(chat.User, "q3"))) // by the position of its text
	testkit.Must(t, m.Edit(t.Context(), "s", 1, chat.Text(chat.System, "be long")))
	for _, m := range []*memory.Memory{m, other} {
		if got, want := windowTexts(t, m, "s"), "system:be long user:q3 assistant: tool:result c1 tool:result c2 assistant:a"; got != want {
			t.Errorf("the window is %s, want %s", got, want)
		}
		if got, want := statusesOf(t, m, "s"), "1 be brief edited, 2 q edited, 3  in window, 4 result c1 in window, 5 result c2 in window, 6 a in window, "+
			"7 q2 edited, 8 q3 in window, 9 be long in window"; got != want {
			t.Errorf("the history is %s, want %s", got, want)
		}
		now, err := m.Find(t.Context(), "s", question.Message.ID)
		testkit.Must(t, err)
		if now.Seq != 2 || now.Message.Text() != "q3" || now.Message.ID != question.Message.ID {
			t.Errorf("found %+v", now)
		}
	}
	var reasons []string
	for e, err := range m.Events(t.Context(), "s") {
		testkit.Must(t, err)
		reasons = append(reasons, fmt.Sprint(e.Kind, " ", e.From, " ", e.By, " ", e.Reason))
	}
	want := []string{"edit 2 7 message 2 was edited", "edit 2 8 message 2 was edited", "edit 1 9 message 1 was edited"}
	if d := difference(want, reasons); d != "" {
		t.Error(d)
	}
	testkit.Must(t, m.RewindTo(t.Context(), "s", 2))
	if got, want := windowTexts(t, m, "s"), "system:be brief user:q2 assistant: tool:result c1 tool:result c2 assistant:a"; got != want {
		t.Errorf("after rewinding the window is %s, want %s", got, want)
	}
	testkit.Must(t, m.RewindTo(t.Context(), "s", 0))
	if got := windowTexts(t, m, "s"); got != "" {
		t.Errorf("after rewinding to the beginning the window is %s", got)
	}
}

// TestDelete_CallWithResults checks that they leave together, whichever is named.
func TestDelete_CallWithResults(t *testing.T) {
	for _, position := range []int64{3, 4, 5} {
		m, other := callSession(t)
		testkit.Must(t, m.Edit(t.Context(), "s", 4, func() chat.Message {
			msg := chat.Text(chat.Tool, "another result")
			msg.ToolCallID = "c1"
			return msg
		}()))
		testkit.Must(t, m.Delete(t.Context(), "s", position))
		for _, m := range []*memory.Memory{m, other} {
			if got, want := windowTexts(t, m, "s"), "system:be brief user:q assistant:a"; got != want {
				t.Errorf("the window is %s, want %s", got, want)
			}
			if got, want := statusesOf(t, m, "s"), "1 be brief in window, 2 q in window, 3  deleted, 4 result c1 edited, 5 result c2 deleted, 6 a in window, 7 another result deleted"; got != want {
				t.Errorf("the history is %s, want %s", got, want)
			}
		}
		testkit.Must(t, m.Delete(t.Context(), "s", 1))
		testkit.Must(t, m.RewindTo(t.Context(), "s", 1))
		if got, want := windowTexts(t, m, "s"), "system:be brief user:q assistant: tool:result c1 tool:result c2 assistant:a"; got != want {
			t.Errorf("after rewinding the window is %s, want %s", got, want)
		}
	}
}

// TestDelete_SystemMessage checks that the one that it had replaced returns.
func TestDelete_SystemMessage(t *testing.T) {
	m := newMemory(t, memory.NewInProcess())
	testkit.Must(t, m.Append(t.Context(), "s", chat.Text(chat.System, "one"), chat.Text(chat.System, "two"), chat.Text(chat.User, "q")))
	for _, want := range []string{"system:one user:q", "user:q"} {
		w, err := m.Window(t.Context(), "s")
		testkit.Must(t, err)
		testkit.Must(t, m.Delete(t.Context(), "s", w.System.Seq))
		if got := windowTexts(t, m, "s"); got != want {
			t.Errorf("the window is %s, want %s", got, want)
		}
	}
}

func TestEdit_Errors(t *testing.T) {
	m, _ := callSession(t)
	testkit.Must(t, m.Delete(t.Context(), "s", 6))
	failed := errors.New("no answer")
	if err := m.Turn(t.Context(), "s", func(turn *memory.Turn) error {
		return errors.Join(turn.Add(chat.Text(chat.User, "lost")), failed)
	}); !errors.Is(err, failed) {
		t.Fatal(err)
	}
	result := chat.Text(chat.Tool, "r")
	for _, c := range []struct {
		position int64
		msg      chat.Message
		want     string
	}{
		{0, chat.Text(chat.User, "x"), "message 0: the session has no such message; its positions are 1 to 7"},
		{8, chat.Text(chat.User, "x"), "message 8: the session has no such message; its positions are 1 to 7"},
		{6, chat.Text(chat.Assistant, "x"), "message 6: it is not part of the conversation: it was deleted"},
		{7, chat.Text(chat.User, "x"), "message 7: it is not part of the conversation: its turn failed"},
		{2, chat.Text(chat.Assistant, "x"), "message 2: its role is user, an edit cannot make it assistant"},
		{3, chat.Text(chat.Assistant, "x"), "message 3: an edit must keep the ids and the names of its tool calls, which have results"},
		{4, result, `message 4: it is the result of the tool call "c1", an edit cannot make it that of ""`},
	} {
		err := m.Edit(t.Context(), "s", c.position, c.msg)
		if want := `memory chat_memory, session "s", ` + c.want; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if err := m.Delete(t.Context(), "new", 1); err == nil || err.Error() != `memory chat_memory, session "new", message 1: the session has no messages` {
		t.Errorf("got %v", err)
	}
	if _, err := m.Find(t.Context(), "s", "unknown"); err == nil || err.Error() != `memory chat_memory, session "s", message "unknown": the session has no such message; its positions are 1 to 7` {
		t.Errorf("got %v", err)
	}
}
