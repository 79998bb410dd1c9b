package memory_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

func with(t testing.TB, store memory.Store, change func(*memory.Config)) *memory.Memory {
	t.Helper()
	cfg := memory.Config{ID: "m", Policy: spec.PolicyUnbounded, Counter: runes{}}
	change(&cfg)
	m, err := memory.New(cfg, store)
	testkit.Must(t, err)
	return m
}

// TestTurns_Reject checks that a second turn fails at once, and that an append waits.
func TestTurns_Reject(t *testing.T) {
	m := with(t, memory.NewInProcess(), func(c *memory.Config) { c.Turns = memory.Reject })
	first := begin(t, m)
	_, err := m.Begin(t.Context(), "s")
	var busy *memory.BusyError
	if !errors.As(err, &busy) || err.Error() != `memory m: session "s" is busy with another turn (concurrent_turns: reject)` {
		t.Fatalf("got %v", err)
	}
	waiting, done := make(chan struct{}), make(chan error)
	go func() { done <- m.Append(notify{t.Context(), waiting}, "s", chat.Text(chat.User, "appended")) }()
	<-waiting
	testkit.Must(t, first.Add(chat.Text(chat.User, "first")))
	testkit.Must(t, first.Commit(t.Context()))
	testkit.Must(t, <-done)
	testkit.Must(t, begin(t, m).Commit(t.Context()))
	if got := windowTexts(t, m, "s"); got != "user:first user:appended" {
		t.Errorf("the window is %s", got)
	}
}

// TestTurns_Interrupt checks that a newer turn ends the context of the older one and
// waits for its end, and that a third one replaces a second that still waits.
func TestTurns_Interrupt(t *testing.T) {
	m := with(t, memory.NewInProcess(), func(c *memory.Config) { c.Turns = memory.Interrupt })
	first := begin(t, m)
	testkit.Must(t, first.Add(chat.Text(chat.User, "first")))
	begun := func(ctx context.Context) (chan *memory.Turn, chan error) {
		turns, errs := make(chan *memory.Turn, 1), make(chan error, 1)
		go func() {
			turn, err := m.Begin(ctx, "s")
			turns <- turn
			errs <- err
		}()
		return turns, errs
	}
	_, second := begun(t.Context())
	<-first.Context().Done()
	third, thirdErr := begun(t.Context())
	var taken *memory.InterruptedError
	if err := <-second; !errors.As(err, &taken) {
		t.Errorf("the second turn got %v", err)
	}
	if err := context.Cause(first.Context()); !errors.As(err, &taken) {
		t.Errorf("the first turn ended because of %v", err)
	}
	if err := first.Commit(t.Context()); !errors.As(err, &taken) {
		t.Errorf("the first turn committed: %v", err)
	}
	testkit.Must(t, first.Abort(t.Context(), context.Cause(first.Context())))
	testkit.Must(t, <-thirdErr)
	turn := <-third
	testkit.Must(t, turn.Add(chat.Text(chat.User, "third")))
	testkit.Must(t, turn.Commit(t.Context()))
	if got := windowTexts(t, m, "s"); got != "user:third" {
		t.Errorf("the window is %s", got)
	}
	testkit.Must(t, begin(t, m).Abort(t.Context(), nil))
}

// TestIdempotencyKey_AddsOnce checks that a retry adds nothing, in another process
// too and with other message ids, and that a session forgets old keys.
func TestIdempotencyKey_AddsOnce(t *testing.T) {
	store := memory.NewInProcess()
	here, there := newMemory(t, store), newMemory(t, store)
	for range 3 {
		testkit.Must(t, here.AppendOnce(t.Context(), "s", "op 1", chat.Text(chat.User, "once")))
		testkit.Must(t, there.AppendOnce(t.Context(), "s", "op 1", chat.Text(chat.User, "once")))
	}
	turn := begin(t, here)
	if turn.SetIdempotencyKey("op 2") {
		t.Error("op 2 is reported as done")
	}
	testkit.Must(t, turn.Add(chat.Text(chat.User, "twice?")))
	testkit.Must(t, there.AppendOnce(t.Context(), "s", "op 2", chat.Text(chat.User, "no")))
	testkit.Must(t, turn.Commit(t.Context()))
	if got := windowTexts(t, here, "s"); got != "user:once user:no" {
		t.Errorf("the window is %s", got)
	}
	for i := range 70 {
		testkit.Must(t, here.AppendOnce(t.Context(), "long", fmt.Sprint(i), chat.Text(chat.User, "x")))
	}
	head, err := store.Head(t.Context(), memory.Key{Memory: "chat_memory", Session: "long"})
	testkit.Must(t, err)
	if n := len(head.Values["operations"]); n > 64*40 { // a hash and a range of positions each
		t.Errorf("operations take %d bytes", n)
	}
}

// TestTurn_PriorMessages checks that a retry gets the messages of the first turn,
// also after they left the window, and no others.
func TestTurn_PriorMessages(t *testing.T) {
	store := memory.NewInProcess()
	m := newMemory(t, store)
	testkit.Must(t, m.Append(t.Context(), "s", chat.Text(chat.User, "before")))
	turn := begin(t, m)
	turn.SetIdempotencyKey("op")
	testkit.Must(t, turn.Add(chat.Text(chat.User, "how much?"), chat.Text(chat.Assistant, "12")))
	testkit.Must(t, turn.Commit(t.Context()))
	testkit.Must(t, m.Set(t.Context(), "s", chat.Text(chat.User, "since"))) // the messages leave the window
	again := begin(t, newMemory(t, store))
	if prior, err := again.PriorMessages(t.Context()); err != nil || prior != nil {
		t.Errorf("a turn without a key has the prior messages %v, %v", prior, err)
	}
	if !again.SetIdempotencyKey("op") {
		t.Fatal("the operation is not known")
	}
	prior, err := again.PriorMessages(t.Context())
	testkit.Must(t, err)
	if len(prior) != 2 || prior[0].Text() != "how much?" || prior[1].Text() != "12" {
		t.Errorf("the prior messages are %v", prior)
	}
	testkit.Must(t, again.Abort(t.Context(), nil))
}

// TestTTL_ClockSetBack: a message that is written while the clock is wrong does not make
// the session older.
func TestTTL_ClockSetBack(t *testing.T) {
	now := time.Unix(1e9, 0)
	m := with(t, memory.NewInProcess(), func(c *memory.Config) { c.TTL, c.Now = time.Hour, func() time.Time { return now } })
	testkit.Must(t, m.Append(t.Context(), "s", chat.Text(chat.User, "one")))
	now = now.Add(-24 * time.Hour)
	testkit.Must(t, m.Append(t.Context(), "s", chat.Text(chat.User, "two")))
	testkit.Must(t, m.SetVariables(t.Context(), "s", memory.Variable{Name: "a", Value: json.RawMessage("1")}))
	now = now.Add(24*time.Hour + 30*time.Minute)
	if n, err := m.Prune(t.Context()); n != 0 || err != nil {
		t.Errorf("pruned %d, %v", n, err)
	}
	if got := windowTexts(t, m, "s"); got != "user:one user:two" {
		t.Errorf("the window is %s", got)
	}
	now = now.Add(31 * time.Minute)
	if n, err := m.Prune(t.Context()); n != 1 || err != nil {
		t.Errorf("pruned %d, %v", n, err)
	}
}

// TestTTL checks that an expired session is invisible to reads, deleted by the next
// turn or by Prune, and kept if another process has just written to it.
func TestTTL(t *testing.T) {
	now := time.Unix(1e9, 0)
	store := memory.NewInProcess()
	ttl := func(c *memory.Config) { c.TTL, c.Now = time.Hour, func() time.Time { return now } }
	m := with(t, store, ttl)
	for _, s := range []string{"s", "other", "third"} {
		testkit.Must(t, m.Append(t.Context(), s, chat.Text(chat.User, "old")))
	}
	now = now.Add(59 * time.Minute)
	testkit.Must(t, m.Append(t.Context(), "s", chat.Text(chat.User, "again")))
	now = now.Add(30 * time.Minute)
	if got := windowTexts(t, m, "s"); got != "user:old user:again" {
		t.Errorf("the window is %s", got)
	}
	if got := windowTexts(t, m, "other"); got != "" {
		t.Errorf("an old session still shows %s", got)
	}
	for e := range m.History(t.Context(), "other") {
		t.Errorf("its history has %v", e)
	}
	if all, err := m.Sessions(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("listed %v, %v", all, err)
	}
	turn, err := m.Begin(t.Context(), "other")
	testkit.Must(t, err)
	testkit.Must(t, turn.Add(chat.Text(chat.User, "again")))
	testkit.Must(t, turn.Commit(t.Context()))
	if got := windowTexts(t, m, "other"); got != "user:again" {
		t.Errorf("the window is %s", got)
	}
	if n, err := m.Prune(t.Context()); n != 1 || err != nil {
		t.Errorf("pruned %d, %v", n, err)
	}
	if head, err := store.Head(t.Context(), memory.Key{Memory: "m", Session: "third"}); head.Version != 0 || err != nil {
		t.Errorf("still there: %+v, %v", head, err)
	}
}

// TestTurn_FitLeavesOutOldRounds checks that the oldest rounds are left out of one
// call, whole, and that a round which does not fit is an error with the sizes.
func TestTurn_FitLeavesOutOldRounds(t *testing.T) {
	m := with(t, memory.NewInProcess(), func(*memory.Config) {})
	call := chat.Message{Role: chat.Assistant}.With(chat.ToolCall{ID: "1", Name: "f", Arguments: "{}"})
	found := chat.Text(chat.Tool, "found")
	found.ToolCallID = "1"
	testkit.Must(t, m.Append(t.Context(), "s", chat.Text(chat.User, "1"), call, found, chat.Text(chat.Assistant, "a"), chat.Text(chat.User, "2")))
	turn := begin(t, m)
	turn.System("be brief") // 3+6+8
	testkit.Must(t, turn.Add(chat.Text(chat.User, "3")))
	for room, want := range map[int]string{
		1000: "system:be brief user:1 assistant: tool:found assistant:a user:2 user:3",
		50:   "system:be brief user:2 user:3",
		43:   "system:be brief user:2 user:3",
		42:   "system:be brief user:3",
		0:    "system:be brief user:1 assistant: tool:found assistant:a user:2 user:3",
	} {
		msgs, err := turn.Fit(memory.Budget{ContextWindow: room, Answer: 7, Tools: 3})
		testkit.Must(t, err)
		if got := texts(msgs); got != want {
			t.Errorf("%d tokens: sent %s, want %s", room, got, want)
		}
	}
	_, err := turn.Fit(memory.Budget{Model: "small", ContextWindow: 34, Answer: 7, Tools: 3})
	var over *memory.BudgetError
	if !errors.As(err, &over) || over.Round != 8 || err.Error() != "memory m: model small reads and writes 34 tokens in one call, but the newest round (1 message, 8 tokens), the system message (17), the tools (3) and the answer (7) need 35" {
		t.Errorf("got %v", err)
	}
	testkit.Must(t, turn.Commit(t.Context()))
	if w := windowTexts(t, m, "s"); strings.Count(w, "user") != 3 {
		t.Errorf("what had no room left the window: %s", w)
	}
}

// TestTurn_FitEmptyWindow checks that a window that the policy leaves empty is not sent.
func TestTurn_FitEmptyWindow(t *testing.T) {
	m := with(t, memory.NewInProcess(), func(c *memory.Config) { c.Policy, c.Limits = spec.PolicyTokenWindow, memory.Limits{"max_tokens": 20} })
	turn := begin(t, m)
	testkit.Must(t, turn.Add(chat.Text(chat.User, strings.Repeat("x", 20))))
	_, err := turn.Fit(memory.Budget{})
	var nothing *memory.EmptyWindowError
	if !errors.As(err, &nothing) || nothing.Used != 27 || nothing.Limit != 20 {
		t.Errorf("got %v", err)
	}
	testkit.Must(t, turn.Abort(t.Context(), err))
}

// TestFlush_KeepsPrefix checks that between two flushes the messages that are sent
// only grow at their end, so that a provider's prompt cache stays valid.
func TestFlush_KeepsPrefix(t *testing.T) {
	m := with(t, memory.NewInProcess(), func(c *memory.Config) {
		c.Policy, c.Limits = spec.PolicyFlush, memory.Limits{"token_limit": 1000, "token_flush_size": 300}
	})
	var before []string
	flushed, kept := 0, 0
	for i := range 200 {
		turn := begin(t, m)
		turn.System("be brief")
		testkit.Must(t, turn.Add(chat.Text(chat.User, fmt.Sprint("q", i))))
		msgs, err := turn.Window()
		testkit.Must(t, err)
		var now []string
		for _, msg := range msgs {
			now = append(now, string(chat.OpenAI(msg)))
		}
		if strings.HasPrefix(strings.Join(now, ","), strings.Join(before, ",")) {
			kept++
		} else {
			flushed++
		}
		before = now
		testkit.Must(t, turn.Add(chat.Text(chat.Assistant, fmt.Sprint("a", i))))
		testkit.Must(t, turn.Commit(t.Context()))
	}
	list, err := m.Sessions(t.Context())
	testkit.Must(t, err)
	if flushed > list[0].Flushes || kept < 5*flushed || flushed == 0 {
		t.Errorf("the prefix changed %d times in %d flushes, it stayed %d times", flushed, list[0].Flushes, kept)
	}
}

func TestMemory_ReadText(t *testing.T) {
	m := with(t, memory.NewInProcess(), func(c *memory.Config) { c.Policy, c.Limits = spec.PolicyRoundWindow, memory.Limits{"n_rounds": 1} })
	read := func(how memory.ReadOptions) string { return must2(m.ReadText(t.Context(), "s", how))(t) }
	if got := read(memory.ReadOptions{Empty: "nothing yet"}); got != "nothing yet" {
		t.Errorf("empty: %q", got)
	}
	testkit.Must(t, m.Append(t.Context(), "s", chat.Text(chat.System, "sys"), chat.Text(chat.User, "1"), chat.Text(chat.Assistant, "a"), chat.Text(chat.User, "2")))
	if got, want := read(memory.ReadOptions{NRounds: 2}), "system: sys\n\nuser: 1\nassistant: a\n\nuser: 2"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	raw := must2(m.ReadJSON(t.Context(), "s", memory.ReadOptions{}))(t)
	if want := `[{"role":"system","content":"sys"},{"role":"user","content":"2"}]`; string(raw) != want {
		t.Errorf("got %s, want %s", raw, want)
	}
	if _, err := m.Read(t.Context(), "s", memory.ReadOptions{NRounds: -1}); err == nil || err.Error() != "memory m: n_rounds must be positive, not -1" {
		t.Errorf("got %v", err)
	}
}

func TestNew_InvalidPolicy(t *testing.T) {
	for want, cfg := range map[string]memory.Config{
		"memory m: max_messages is a limit of policy message_window, not of flush":                             {Limits: memory.Limits{"max_messages": 3}},
		"memory m: token_limit is a limit of policy flush, not of round_window":                                {Policy: spec.PolicyRoundWindow, Limits: memory.Limits{"token_limit": 3}},
		"memory m: policy message_window needs max_messages, above 0":                                          {Policy: spec.PolicyMessageWindow},
		"memory m: max_tokens must be positive, not -2":                                                        {Policy: spec.PolicyTokenWindow, Limits: memory.Limits{"max_tokens": -2}},
		"memory m: keep_system_first is for the policies message_window and token_window, not flush":           {KeepSystemFirst: true},
		`memory m: unknown policy "lru": it is flush, message_window, token_window, round_window or unbounded`: {Policy: "lru"},
		`memory m: turns must be queue, reject or interrupt, not "later"`:                                      {Turns: "later"},
		"memory m: ttl must be positive, not -1s":                                                              {TTL: -time.Second},
	} {
		cfg.ID, cfg.Counter = "m", runes{}
		if _, err := memory.New(cfg, memory.NewInProcess()); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
