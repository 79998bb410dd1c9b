package promptcontext_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/internal/memory/prefix"
	"github.com/qtype-dev/qtype/internal/memory/promptcontext"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// growing is a conversation whose requests are compared with the ones before.
type growing struct {
	*rapid.T
	store    memory.Store
	config   memory.Config
	memory   *memory.Memory
	before   []string       // the messages of the newest request
	ids      []string       // their ids
	failed   bool           // its turn failed
	edited   bool           // a message has been edited since
	expected map[int64][]at // differences by turn
}

// at is a call of a turn, and whether its request begins with the whole one before.
type at struct {
	call     int
	appended bool
	evicted  bool // a message left
	failed   bool // the turn of the request before failed
	edited   bool // a message has been edited since
	cut      bool // what differs first is shorter than before
}

// TestRequests_OnlyGrow: within a turn, and with KeepContext from one turn to the next, each
// request begins with the bytes of the one before, until messages leave; and the events name
// every request that does not.
func TestRequests_OnlyGrow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := &growing{T: t, store: memory.NewInProcess(), expected: map[int64][]at{}}
		g.config = memory.Config{ID: "m", Counter: runes{}, KeepContext: rapid.Bool().Draw(t, "keep"),
			Limits: memory.Limits{"token_limit": float64(rapid.IntRange(600, 6000).Draw(t, "token_limit")), "chat_history_token_ratio": 0.6, "token_flush_size": 200}}
		if rapid.Bool().Draw(t, "shorten") {
			g.config.Compact = memory.Compaction{ToolResults: 60, KeepResults: 1}
		}
		blocks := []promptcontext.Block{{Kind: promptcontext.Pinned, Text: "Be kind."}, {Kind: promptcontext.Variables, Priority: 1},
			{Kind: promptcontext.Summary, Priority: 2, Summarizer: &listSummarizer{}, MaxTokens: 100}, {Kind: promptcontext.Retrieval, Priority: 3, TopK: 2, Embedder: &letterEmbedder{}}}
		g.config.Context = promptcontext.New(nil, blocks...)
		g.restart()
		for range rapid.IntRange(1, 12).Draw(t, "operations") {
			switch rapid.SampledFrom([]string{"turn", "turn", "turn", "turn", "fail", "variable", "edit", "restart"}).Draw(t, "operation") {
			case "turn":
				g.turn(nil)
			case "fail":
				g.turn(errors.New("it failed"))
			case "variable":
				g.check(g.memory.SetVariables(context.Background(), "s", memory.Variable{Name: "a", Value: fmt.Appendf(nil, "%q", g.text())}))
			case "edit":
				g.edit()
			case "restart":
				g.restart()
			}
		}
		g.compare()
	})
}

func (g *growing) check(err error) { testkit.Must(g, err) }

func (g *growing) restart() {
	var err error
	g.memory, err = memory.New(g.config, g.store)
	g.check(err)
}

func (g *growing) text() string {
	return strings.Repeat(string(rune('a'+rapid.IntRange(0, 25).Draw(g.T, "letter"))), rapid.IntRange(1, 120).Draw(g.T, "length"))
}

// turn makes a turn with up to three calls of a tool that sets a variable, sometimes with a
// further message of the user.
func (g *growing) turn(failure error) {
	ctx := context.Background()
	turn, err := g.memory.Begin(ctx, "s")
	g.check(err)
	committed := false
	defer func() {
		g.check(turn.Abort(ctx, failure))
		g.failed = !committed
	}()
	info, err := g.memory.Info(ctx, "s")
	g.check(err)
	turn.System("You help.")
	g.check(turn.Add(chat.Text(chat.User, g.text())))
	if !g.send(turn, info.Turns+1, 1) {
		return
	}
	for n := range rapid.IntRange(0, 3).Draw(g.T, "calls") {
		id := fmt.Sprint("call", n)
		result := chat.Text(chat.Tool, g.text())
		result.ToolCallID = id
		g.check(turn.Set("b", fmt.Appendf(nil, "%q", g.text())))
		g.check(turn.Add(chat.Message{ID: chat.NewID(), Role: chat.Assistant}.With(chat.ToolCall{ID: id, Name: "f", Arguments: "{}"}), result))
		if rapid.IntRange(0, 3).Draw(g.T, "more") == 0 {
			g.check(turn.Add(chat.Text(chat.User, g.text())))
		}
		if !g.send(turn, info.Turns+1, n+2) {
			return
		}
	}
	if failure == nil {
		g.check(turn.Add(chat.Text(chat.Assistant, g.text())))
		g.check(turn.Commit(ctx))
		committed = true
	}
}

// send compares a request with the one before. It reports false if there is no room for it.
func (g *growing) send(turn *memory.Turn, number int64, call int) bool {
	out, err := turn.Fit(memory.Budget{})
	var context *memory.ContextError
	var size *memory.TurnSizeError
	var empty *memory.EmptyWindowError
	if errors.As(err, &context) || errors.As(err, &size) || errors.As(err, &empty) {
		return false
	}
	g.check(err)
	var now []string
	var ids []string
	for i := range out {
		ids = append(ids, out[i].ID)
		plain := out[i]
		plain.ID = ""
		raw, err := plain.MarshalJSON()
		g.check(err)
		now = append(now, string(raw))
	}
	if g.before != nil {
		appended := len(g.before) <= len(now) && slices.Equal(g.before, now[:len(g.before)])
		left := slices.ContainsFunc(g.ids, func(id string) bool { return !slices.Contains(ids, id) })
		g.expected[number] = append(g.expected[number], at{call, appended, left, g.failed && call == 1, g.edited, isCut(g.before, now)})
	}
	g.before, g.ids, g.edited = now, ids, false
	return true
}

// isCut reports whether the first message that differs is shorter than before.
func isCut(before, now []string) bool {
	for i := range min(len(before), len(now)) {
		if before[i] != now[i] {
			return len(now[i]) < len(before[i])
		}
	}
	return false
}

// edit gives a message of a user another text.
func (g *growing) edit() {
	ctx := context.Background()
	w, err := g.memory.Window(ctx, "s")
	g.check(err)
	for _, e := range w.Entries {
		if e.Message.Role == chat.User && rapid.Bool().Draw(g.T, "this") {
			g.edited = true
			g.check(g.memory.Edit(ctx, "s", e.Seq, chat.Text(chat.User, g.text())))
			return
		}
	}
}

// compare compares the record of the requests in the events with what was sent.
func (g *growing) compare() {
	for e, err := range g.memory.Events(context.Background(), "s") {
		g.check(err)
		if e.Kind != store.EventSent {
			continue
		}
		recorded := map[int]store.Prefix{}
		for _, p := range e.Call.Prefix {
			recorded[p.Call] = p
		}
		for _, call := range g.expected[e.Turn] {
			p, found := recorded[call.call]
			if call.appended != (p.Reason == prefix.Appended) || call.call == 1 && !found {
				g.Fatalf("turn %d, call %d: the request begins with the one before: %t, the event has %+v", e.Turn, call.call, call.appended, p)
			}
			moved := p.Reason == prefix.ContextLeft || p.Reason == prefix.Inserted
			if moved && (call.call > 1 || g.config.KeepContext && !call.evicted && !call.failed) {
				g.Fatalf("turn %d, call %d: %+v", e.Turn, call.call, p)
			}
			g.allowed(e, call, p)
		}
	}
}

// allowed checks that what precedes did not change without an eviction.
func (g *growing) allowed(e memory.Event, call at, p store.Prefix) {
	switch {
	case call.appended || call.evicted || call.failed || call.cut && (call.call > 1 || p.Reason == prefix.SystemChanged) || e.Call.Shortened != "":
	case call.call == 1 && (p.Reason == prefix.Rewritten || !g.config.KeepContext):
	case call.call == 1 && p.Part == "summary" && call.edited: // it may have had the former text
	default:
		g.Fatalf("turn %d, call %d changed without an eviction: %+v", e.Turn, call.call, p)
	}
}

// TestKeepContext_NewerSummaryFollows: a summary that is written late goes with the question, and
// the system message stays until messages leave.
func TestKeepContext_NewerSummaryFollows(t *testing.T) {
	summarizer := &listSummarizer{fails: errors.New("down")}
	m, err := memory.New(memory.Config{ID: "m", Counter: runes{}, KeepContext: true, Limits: memory.Limits{"token_limit": 900, "chat_history_token_ratio": 0.5, "token_flush_size": 100},
		Context: promptcontext.New(nil, promptcontext.Block{Kind: promptcontext.Pinned, Text: "Be kind."}, promptcontext.Block{Kind: promptcontext.Summary, Priority: 1, Summarizer: summarizer})}, memory.NewInProcess())
	testkit.Must(t, err)
	runTurn(t, m, strings.Repeat("a", 200), strings.Repeat("b", 200))
	runTurn(t, m, strings.Repeat("c", 50), strings.Repeat("d", 50))
	before := textsOf(runTurn(t, m, "e", "f"))
	summarizer.fails = nil
	after := textsOf(runTurn(t, m, "g", "h"))
	again := textsOf(runTurn(t, m, "i", "j"))
	if before[0] != after[0] || after[0] != again[0] {
		t.Errorf("the system message was\n%q, then\n%q and\n%q", before[0], after[0], again[0])
	}
	if last := after[len(after)-1]; !strings.Contains(last, "The summary has changed") || !strings.HasSuffix(last, "g") {
		t.Errorf("the question is %q", last)
	}
	if !slices.Equal(after, again[:len(after)]) || strings.Contains(again[len(again)-1], "summary") {
		t.Errorf("the next request is\n%q, after\n%q", again, after)
	}
}

// TestTurn_RepeatsContext: a turn that is repeated after an interruption sends the context of its
// first attempt, although a variable has another value by then.
func TestTurn_RepeatsContext(t *testing.T) {
	m := contextual(t, memory.NewInProcess(), 4000, promptcontext.Block{Kind: promptcontext.Variables, Priority: 1})
	set := func(value string) {
		testkit.Must(t, m.SetVariables(t.Context(), "s", memory.Variable{Name: "plan", Value: []byte(value)}))
	}
	var recorded []byte
	attempt := func(reason error) []string {
		turn, err := m.Begin(t.Context(), "s")
		testkit.Must(t, err)
		turn.Repeat(func(read func() ([]byte, error)) ([]byte, error) {
			if recorded == nil {
				recorded, err = read()
			}
			return recorded, err
		})
		testkit.Must(t, turn.Add(chat.Text(chat.User, "Which plan?")))
		sent, err := turn.Fit(memory.Budget{})
		testkit.Must(t, err)
		testkit.Must(t, turn.Abort(t.Context(), reason))
		return textsOf(sent)
	}
	set(`"Gold"`)
	first := attempt(memory.ErrSuspended)
	set(`"Silver"`)
	if again := attempt(memory.ErrSuspended); !slices.Equal(first, again) || !strings.Contains(first[0], "Gold") {
		t.Errorf("the first attempt sends %q, the next one %q", first, again)
	}
}
