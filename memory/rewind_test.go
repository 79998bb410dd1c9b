package memory_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/memory/transcript"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// snapshot is what a model and its user see of a session.
type snapshot struct {
	Messages  []chat.Message
	Used      int
	Limit     int
	Cut       bool
	Variables map[string]string
}

func snapshotOf(t rapid.TB, m *memory.Memory, session string) snapshot {
	w, err := m.Window(context.Background(), session)
	testkit.Must(t, err)
	s := snapshot{Messages: w.Messages(), Used: w.Used, Limit: w.Limit, Cut: w.Cut, Variables: map[string]string{}}
	all, err := m.Variables(context.Background(), session)
	testkit.Must(t, err)
	for _, v := range all {
		s.Variables[v.Name] = string(v.Value)
	}
	return s
}

// change is a change of a session that can be made again.
type change struct {
	turn int64 // the turn that it began, or the newest one when it was made
	open []chat.ToolCall
	make func(*memory.Memory, string) error
}

// branching makes changes and rewinds of a session, and the changes that remain on
// a fresh one.
type branching struct {
	machine
	fresh     func(*rapid.T, memory.Store) *memory.Memory
	made      []change // that were not rewound
	snapshots map[int64]snapshot
	rewound   map[int64]bool
	turns     int64 // the newest turn
	forks     int
}

// policyConfigs has a configuration of each policy.
func policyConfigs(t *rapid.T) []memory.Config {
	n := func(name string, from, to int) float64 { return float64(rapid.IntRange(from, to).Draw(t, name)) }
	return []memory.Config{
		{Limits: memory.Limits{"token_limit": n("token_limit", 1, 200), "token_flush_size": n("flush", 1, 100)}},
		{Policy: spec.PolicyMessageWindow, Limits: memory.Limits{"max_messages": n("max_messages", 1, 8)}, KeepSystemFirst: rapid.Bool().Draw(t, "first")},
		{Policy: spec.PolicyTokenWindow, Limits: memory.Limits{"max_tokens": n("max_tokens", 1, 200)}},
		{Policy: spec.PolicyRoundWindow, Limits: memory.Limits{"n_rounds": n("n_rounds", 1, 4), "max_context": n("max_context", 1, 200)}},
		{Policy: spec.PolicyUnbounded},
	}
}

func newBranching(t *rapid.T, policy int, store memory.Store, session string) *branching {
	b := &branching{snapshots: map[int64]snapshot{}, rewound: map[int64]bool{}}
	b.session, b.store = session, store
	configs := policyConfigs(t)
	tokens := rapid.IntRange(10, 100).Draw(t, "tokens")
	fresh := func(t *rapid.T, store memory.Store) *memory.Memory {
		if policy == len(configs) {
			m, err := memory.NewWithEviction(b.cfg, store, lastTokensByRole(tokens))
			testkit.Must(t, err)
			return m
		}
		m, err := memory.New(b.cfg, store)
		testkit.Must(t, err)
		return m
	}
	if policy < len(configs) {
		b.cfg = configs[policy]
	}
	b.cfg.ID, b.cfg.Counter, b.cfg.Live = fmt.Sprint("m", policy), runes{}, rapid.IntRange(0, 1).Draw(t, "live")
	b.fresh = fresh
	b.start(t)
	return b
}

// do makes a change and remembers it.
func (b *branching) do(t *rapid.T, c change) {
	testkit.Must(t, c.make(b.memory, b.session))
	b.note(t)
	c.turn, c.open = b.turns, b.open
	b.made = append(b.made, c)
}

// note remembers the session as it is after its newest turn.
func (b *branching) note(t *rapid.T) {
	head, err := b.memory.Head(context.Background(), b.session)
	testkit.Must(t, err)
	b.turns = head.State.Turns
	b.snapshots[b.turns] = snapshotOf(t, b.memory, b.session)
}

func (b *branching) append(t *rapid.T) {
	msgs := b.drawSome(t)
	b.do(t, change{make: func(m *memory.Memory, s string) error { return m.AppendUnchecked(context.Background(), s, msgs...) }})
}

func (b *branching) replace(t *rapid.T) {
	b.open = nil
	var msgs []chat.Message
	if rapid.IntRange(0, 3).Draw(t, "some") > 0 {
		msgs = b.drawSome(t)
	}
	b.do(t, change{make: func(m *memory.Memory, s string) error { return m.Set(context.Background(), s, msgs...) }})
}

func (b *branching) turn(t *rapid.T) {
	msgs := b.drawSome(t)
	var failure error
	if rapid.IntRange(0, 3).Draw(t, "fails") == 0 {
		failure, b.open = errors.New("no answer"), nil
	}
	set := map[string]json.RawMessage{}
	for range rapid.IntRange(0, 2).Draw(t, "variables") {
		value := rapid.SampledFrom([]string{"1", "2", "null"}).Draw(t, "value")
		set[rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name")] = json.RawMessage(value)
	}
	b.do(t, change{make: func(m *memory.Memory, s string) error {
		err := m.Turn(context.Background(), s, func(turn *memory.Turn) error {
			for name, value := range set {
				if err := turn.Set(name, value); err != nil {
					return err
				}
			}
			if err := turn.Add(msgs...); err != nil {
				return err
			}
			return failure
		})
		if errors.Is(err, failure) {
			return nil
		}
		return err
	}})
}

// rewind rewinds to any turn, those included that were rewound before.
func (b *branching) rewind(t *rapid.T) {
	if b.turns == 0 {
		t.Skip("there are no turns")
	}
	turn := rapid.Int64Range(1, b.turns).Draw(t, "turn")
	testkit.Must(t, b.memory.Rewind(context.Background(), b.session, turn))
	last := b.turns
	b.note(t)
	for n := turn; n <= last && b.turns > last; n++ {
		b.rewound[n] = true
	}
	for len(b.made) > 0 && b.made[len(b.made)-1].turn >= turn {
		b.made = b.made[:len(b.made)-1]
	}
	b.open = nil
	if n := len(b.made); n > 0 {
		b.open = b.made[n-1].open
	}
}

// fork makes a session of any turn, also of one that was rewound.
func (b *branching) fork(t *rapid.T) {
	turn := rapid.Int64Range(0, b.turns).Draw(t, "turn")
	want, known := b.snapshots[max(turn, b.turns*(1-min(turn, 1)))]
	if !known {
		t.Skip("there are no turns")
	}
	b.forks++
	to := fmt.Sprint(b.session, " fork ", b.forks)
	testkit.Must(t, b.memory.Fork(context.Background(), b.session, to, turn))
	got := snapshotOf(t, b.memory, to)
	if b.rewound[turn] { // the values of its variables are gone
		want.Variables = got.Variables
	}
	if d := difference(want, got, cmpopts.EquateEmpty()); d != "" {
		t.Fatalf("the fork after turn %d of %d: %s", turn, b.turns, d)
	}
	b.start(t)
	if d := difference(got, snapshotOf(t, b.memory, to), cmpopts.EquateEmpty()); d != "" {
		t.Fatalf("the fork, read again: %s", d)
	}
}

// export moves the session to another memory, where it is the same.
func (b *branching) export(t *rapid.T) {
	var first, second bytes.Buffer
	testkit.Must(t, transcript.Export(context.Background(), b.memory, b.session, &first))
	other := b.fresh(t, memory.NewInProcess())
	err := transcript.Import(context.Background(), other, "moved", bytes.NewReader(first.Bytes()))
	var invalid *transcript.LineError
	if errors.As(err, &invalid) && (strings.Contains(err.Error(), "tool") || b.turns == 0 || !strings.Contains(first.String(), `"role"`)) {
		t.Skip("a transcript must have messages, and calls their results")
	}
	testkit.Must(t, err)
	testkit.Must(t, transcript.Export(context.Background(), other, "moved", &second))
	if d := difference(first.String(), second.String()); d != "" {
		t.Fatalf("exported again: %s", d)
	}
	if d := difference(snapshotOf(t, b.memory, b.session), snapshotOf(t, other, "moved"), cmpopts.EquateEmpty()); d != "" {
		t.Fatalf("imported: %s", d)
	}
}

func (b *branching) reload(t *rapid.T) {
	b.start(t)
}

// start makes a new memory of the same configuration.
func (b *branching) start(t *rapid.T) { b.memory = b.fresh(t, b.store) }

// check compares the session with one in which the turns that were rewound never were.
func (b *branching) check(t *rapid.T) {
	fresh := b.fresh(t, memory.NewInProcess())
	for _, c := range b.made {
		testkit.Must(t, c.make(fresh, "s"))
	}
	got := snapshotOf(t, b.memory, b.session)
	if d := difference(snapshotOf(t, fresh, "s"), got, cmpopts.EquateEmpty()); d != "" {
		t.Fatalf("the window is not that of the turns that remain: %s", d)
	}
	if b.cfg.Policy != spec.PolicyMessageWindow && b.cfg.Policy != spec.PolicyTokenWindow {
		b.checkStatuses(t, got)
	}
}

// checkStatuses checks that the history marks the messages of the window, and no others.
func (b *branching) checkStatuses(t *rapid.T, got snapshot) {
	var marked []string
	for e, err := range b.memory.Messages(context.Background(), b.session) {
		testkit.Must(t, err)
		if e.Status == store.InWindow && e.Message.Role != chat.System {
			marked = append(marked, e.Message.ID)
		}
	}
	var ids []string
	for _, m := range got.Messages {
		if m.Role != chat.System {
			ids = append(ids, m.ID)
		}
	}
	if d := difference(ids, marked, cmpopts.EquateEmpty()); d != "" {
		t.Fatalf("the messages that are marked as in the window: %s", d)
	}
}

func (b *branching) run(t *rapid.T) {
	t.Repeat(map[string]func(*rapid.T){"append": b.append, "turn": b.turn, "set": b.replace, "rewind": b.rewind, "fork": b.fork, "export": b.export,
		"other": b.other, "reload": b.reload, "": b.check})
}

// TestRewind_AsIfNeverMade checks, with each policy and one that evicts between
// messages, that a session after Rewind is the same as without the turns.
func TestRewind_AsIfNeverMade(t *testing.T) {
	checkPolicies(t, func(t *rapid.T, policy int, store memory.Store, session string) {
		newBranching(t, policy, store, session).run(t)
	})
}

func TestRewind_AsIfNeverMadeInSQLite(t *testing.T) {
	testkit.SkipWithRace(t)
	t.Parallel()
	checkPoliciesInSQLite(t, func(t *rapid.T, policy int, store memory.Store, session string) {
		newBranching(t, policy, store, session).run(t)
	})
}

// TestRewind_History checks what remains of the turns: messages with a status, and an event.
func TestRewind_History(t *testing.T) {
	m := newMemory(t, memory.NewInProcess())
	question := chat.Text(chat.User, "q2")
	testkit.Must(t, m.Append(t.Context(), "s", chat.Text(chat.User, "q1"), chat.Text(chat.Assistant, "a1")))
	testkit.Must(t, m.Append(t.Context(), "s", question, chat.Text(chat.Assistant, "a2")))
	testkit.Must(t, m.Rewind(t.Context(), "s", 2))
	testkit.Must(t, m.Rewind(t.Context(), "s", 2)) // nothing is left to do
	for _, attempt := range []string{"again", "and again"} {
		testkit.Must(t, m.Append(t.Context(), "s", question, chat.Text(chat.Assistant, attempt))) // with the same id
		if got, want := windowTexts(t, m, "s"), "user:q1 assistant:a1 user:q2 assistant:"+attempt; got != want {
			t.Errorf("the window is %s, want %s", got, want)
		}
		testkit.Must(t, m.Append(t.Context(), "s", question)) // is known now
		if attempt == "again" {
			testkit.Must(t, m.Rewind(t.Context(), "s", 4))
		}
	}
	var statuses []string
	for e, err := range m.History(t.Context(), "s") {
		testkit.Must(t, err)
		statuses = append(statuses, fmt.Sprint(e.Turn, " ", e.Message.Text(), " ", e.Status))
	}
	want := []string{"1 q1 in window", "1 a1 in window", "2 q2 rewound", "2 a2 rewound", "4 q2 rewound", "4 again rewound", "6 q2 in window", "6 and again in window"}
	if d := difference(want, statuses); d != "" {
		t.Error(d)
	}
	var events []memory.Event
	for e, err := range m.Events(t.Context(), "s") {
		testkit.Must(t, err)
		events = append(events, e)
	}
	wantEvents := []memory.Event{
		{Kind: store.EventRewind, Turn: 3, From: 3, To: 4, Messages: 2, Tokens: 23, Rewound: 2, Reason: "turn 2 and later ones were rewound"},
		{Kind: store.EventRewind, Turn: 5, From: 5, To: 6, Messages: 2, Tokens: 26, Rewound: 4, Reason: "turn 4 and later ones were rewound"},
	}
	if d := difference(wantEvents, events, cmpopts.IgnoreFields(memory.Event{}, "Time")); d != "" {
		t.Error(d)
	}
	for turn, want := range map[int64]string{
		0: `memory chat_memory: session "s" has no turn 0: its turns are 1 to 6`,
		7: `memory chat_memory: session "s" has no turn 7: its turns are 1 to 6`,
	} {
		var unknown *memory.TurnError
		if err := m.Rewind(t.Context(), "s", turn); !errors.As(err, &unknown) || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if err := m.Rewind(t.Context(), "new", 1); err == nil || err.Error() != `memory chat_memory: session "new" has no turns yet` {
		t.Errorf("got %v", err)
	}
}

// TestRewind_Waits checks that the active turn ends first, and leaves with the others.
func TestRewind_Waits(t *testing.T) {
	m := newMemory(t, memory.NewInProcess())
	testkit.Must(t, m.Append(t.Context(), "s", chat.Text(chat.User, "q1")))
	turn := begin(t, m)
	testkit.Must(t, turn.Add(chat.Text(chat.User, "q2")))
	done := make(chan error)
	go func() { done <- m.Rewind(t.Context(), "s", 1) }()
	select {
	case err := <-done:
		t.Fatalf("Rewind did not wait: %v", err)
	default:
	}
	testkit.Must(t, turn.Commit(t.Context()))
	testkit.Must(t, <-done)
	if got := windowTexts(t, m, "s"); got != "" {
		t.Errorf("the window is %s", got)
	}
}

// TestRewind_Variables checks that they get their former values, as far as these are known.
func TestRewind_Variables(t *testing.T) {
	m := newMemory(t, memory.NewInProcess())
	set := func(name, value string) {
		testkit.Must(t, m.Turn(t.Context(), "s", func(turn *memory.Turn) error {
			return errors.Join(turn.Add(chat.Text(chat.User, "q")), turn.Set(name, json.RawMessage(value)))
		}))
	}
	set("plan", `"silver"`)
	set("plan", `"gold"`)
	set("plan", "null")
	set("other", "1")
	for _, step := range []struct {
		turn int64
		want map[string]string
	}{{4, map[string]string{}}, {3, map[string]string{"plan": `"gold"`}}, {2, map[string]string{"plan": `"silver"`}}, {1, map[string]string{}}} {
		testkit.Must(t, m.Rewind(t.Context(), "s", step.turn))
		if d := difference(step.want, snapshotOf(t, m, "s").Variables); d != "" {
			t.Errorf("before turn %d: %s", step.turn, d)
		}
	}
	large := fmt.Sprintf("%q", fmt.Sprintf("%*s", 60<<10, ""))
	for _, name := range []string{"a", "b"} {
		set(name, large)
		set(name, "1")
	}
	head, err := m.Head(t.Context(), "s")
	testkit.Must(t, err)
	testkit.Must(t, m.Rewind(t.Context(), "s", head.State.Turns-2)) // before a had a small value
	if d := difference(map[string]string{}, snapshotOf(t, m, "s").Variables); d != "" {
		t.Errorf("a replaced value that is too large to keep: %s", d)
	}
}
