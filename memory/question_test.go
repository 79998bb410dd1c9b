package memory_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// agentTurns runs turns with rounds of tool calls on a memory with random limits.
type agentTurns struct {
	cfg        memory.Config
	memory     *memory.Memory
	limits     memory.Limits
	resultSize int // the most characters of a tool result
	n          int
	questions  []chat.Message
	added      []chat.Message  // of the turn
	turn       *memory.Turn    // the turn
	pinned     map[string]bool // ids of the pinned messages
	wasPinned  bool            // a message was pinned: others may have left between those that are in the window
	store      memory.Store
	copies     int
	system     string // of all turns, with pinned messages
}

// drawAgentLimits draws a policy with limits that are often too small.
func drawAgentLimits(t *rapid.T, policy spec.Policy) memory.Limits {
	number := func(key string, most int) float64 { return float64(rapid.IntRange(1, most).Draw(t, key)) }
	switch policy {
	case spec.PolicyMessageWindow:
		return memory.Limits{"max_messages": number("max_messages", 12)}
	case spec.PolicyTokenWindow:
		return memory.Limits{"max_tokens": number("max_tokens", 400)}
	case spec.PolicyRoundWindow:
		return memory.Limits{"n_rounds": number("n_rounds", 3), "max_context": number("max_context", 300)}
	case spec.PolicyFlush:
		return memory.Limits{"token_limit": number("token_limit", 600), "chat_history_token_ratio": 0.7, "token_flush_size": number("token_flush_size", 100)}
	}
	return nil
}

func (a *agentTurns) text(t *rapid.T, role chat.Role, most int) chat.Message {
	a.n++
	return chat.Text(role, fmt.Sprintf("%d %s", a.n, strings.Repeat("x", rapid.IntRange(0, most).Draw(t, "size"))))
}

// run runs one turn, and checks each of its requests.
func (a *agentTurns) run(t *rapid.T) {
	turn, err := a.memory.Begin(context.Background(), "s")
	testkit.Must(t, err)
	a.turn = turn
	system := a.system
	if a.pinned == nil {
		system = rapid.SampledFrom([]string{"", "brief"}).Draw(t, "system")
	}
	turn.System(system)
	a.questions, a.added = nil, nil
	for range rapid.IntRange(1, 2).Draw(t, "questions") {
		question := a.text(t, chat.User, 60)
		if a.cfg.Compact.ImageRounds > 0 && rapid.Bool().Draw(t, "image") {
			question.Blocks = append(question.Blocks, image(9))
		}
		a.questions = append(a.questions, question)
	}
	a.add(t, turn, a.questions...)
	budget := memory.Budget{}
	if rapid.Bool().Draw(t, "small model") {
		budget = memory.Budget{Model: "small", ContextWindow: rapid.IntRange(100, 200+5*a.resultSize).Draw(t, "context_window"), Answer: 20}
	}
	for calls := rapid.IntRange(0, 5).Draw(t, "rounds of calls"); ; calls-- {
		sent, err := turn.Fit(budget)
		if err != nil {
			a.checkError(t, err)
			testkit.Must(t, turn.Abort(context.Background(), err))
			return
		}
		a.checkRequest(t, sent, system, budget)
		if calls == 0 {
			break
		}
		call := a.text(t, chat.Assistant, 10)
		for i := range rapid.IntRange(1, 2).Draw(t, "calls") {
			call = call.With(chat.ToolCall{ID: fmt.Sprint(a.n, "-", i), Name: "f", Arguments: "{}"})
		}
		a.add(t, turn, call)
		for _, c := range call.Calls() {
			result := a.text(t, chat.Tool, a.resultSize)
			result.ToolCallID = c.ID
			a.add(t, turn, result)
		}
	}
	a.add(t, turn, a.text(t, chat.Assistant, 40))
	testkit.Must(t, turn.Commit(context.Background()))
	a.checkExplained(t)
}

func (a *agentTurns) add(t *rapid.T, turn *memory.Turn, msgs ...chat.Message) {
	a.added = append(a.added, msgs...)
	testkit.Must(t, turn.Add(msgs...))
}

func (a *agentTurns) checkError(t *rapid.T, err error) {
	var empty *memory.EmptyWindowError
	var size *memory.TurnSizeError
	var budget *memory.BudgetError
	switch {
	case errors.As(err, &empty):
		if empty.Used <= empty.Limit {
			t.Fatalf("refused without need: %v", err)
		}
	case errors.As(err, &size):
		if size.Used <= size.Limit && a.cfg.Policy != spec.PolicyRoundWindow {
			t.Fatalf("refused without need: %v", err)
		}
	case errors.As(err, &budget):
	default:
		t.Fatal(err)
	}
}

// checkRequest checks that a request has the system message, the question, the newest
// messages and complete pairs, within the limits.
func (a *agentTurns) checkRequest(t *rapid.T, sent []chat.Message, system string, b memory.Budget) {
	if got := slices.ContainsFunc(sent, isSystem); got != (system != "") {
		t.Fatalf("system message: %v", got)
	}
	for _, q := range a.questions {
		if !slices.ContainsFunc(sent, func(m chat.Message) bool { return m.Role == chat.User && strings.HasSuffix(m.Text(), q.Text()) }) {
			alone := len(a.added) == len(a.questions) && a.cfg.Policy == spec.PolicyRoundWindow
			if !alone { // a question that is longer than max_context is cut at its start
				t.Fatalf("the question %q was not sent: %v", q.Text(), written(sent))
			}
		}
	}
	if newest := a.added[len(a.added)-1]; sent[len(sent)-1].ToolCallID != newest.ToolCallID {
		t.Fatalf("the newest message was not sent: %v", written(sent))
	}
	if balanced, changes := chat.Balance(sent); changes > 0 {
		t.Fatalf("not balanced: %v, balanced %v", written(sent), written(balanced))
	}
	a.checkLimits(t, sent, b)
	a.checkShortened(t, sent)
	a.checkImages(t, sent)
	for id := range a.pinned {
		if !slices.ContainsFunc(sent, func(m chat.Message) bool { return m.ID == id }) {
			t.Fatalf("the pinned message %s was not sent: %v", id, written(sent))
		}
	}
}

// checkShortened checks that results that are not whole name the message with the whole one.
func (a *agentTurns) checkShortened(t *rapid.T, sent []chat.Message) {
	for i, m := range sent {
		_, note, short := strings.Cut(m.Text(), "the whole result is message ")
		if !short {
			continue
		}
		var place int64
		_, err := fmt.Sscanf(note, "%d", &place)
		testkit.Must(t, err)
		whole, err := a.turn.Message(place)
		testkit.Must(t, err)
		start, _, _ := strings.Cut(m.Text(), "\n")
		if whole.ID != m.ID || !strings.HasPrefix(whole.Text(), start) || memory.Tokens(runes{}, whole) <= a.cfg.Compact.ToolResults {
			t.Fatalf("message %d is %q, which was sent as %q", place, whole.Text(), m.Text())
		}
		if memory.Tokens(runes{}, m) > a.cfg.Compact.ToolResults {
			t.Fatalf("%q has more than %d tokens", m.Text(), a.cfg.Compact.ToolResults)
		}
		newer := 0
		for _, later := range sent[i+1:] {
			if later.Role == chat.Tool {
				newer++
			}
		}
		if newer < a.cfg.Compact.KeepResults {
			t.Fatalf("one of the newest %d results was shortened", a.cfg.Compact.KeepResults)
		}
	}
}

func (a *agentTurns) checkLimits(t *rapid.T, sent []chat.Message, b memory.Budget) {
	tokens, others := 0, slices.DeleteFunc(slices.Clone(sent), isSystem)
	for _, m := range sent {
		tokens += memory.Tokens(runes{}, m)
	}
	limit := func(used int, key string) {
		if most, ok := a.limits[key]; ok && used > int(most) {
			t.Fatalf("%d exceed %s %v: %v", used, key, most, written(sent))
		}
	}
	limit(len(sent), "max_messages")
	limit(tokens, "max_tokens")
	limit(letters(others), "max_context")
	if b.ContextWindow > 0 && tokens > b.ContextWindow-b.Answer {
		t.Fatalf("%d tokens exceed the context window %d", tokens, b.ContextWindow)
	}
}

// checkExplained checks that the event of the last call has what was sent.
func (a *agentTurns) checkExplained(t *rapid.T) {
	var sent memory.Event
	for e, err := range a.memory.Events(context.Background(), "s") {
		testkit.Must(t, err)
		if e.Kind == store.EventSent {
			sent = e
		}
	}
	omitted, n := omittedPositions(t, sent.Call.Omitted), 0
	for e, err := range a.memory.History(context.Background(), "s") {
		testkit.Must(t, err)
		if e.Seq >= sent.From && e.Seq <= sent.To && e.Status != store.Failed && e.Status != store.Rewound && e.Message.Role != chat.System && !omitted[e.Seq] {
			n++
		}
	}
	if n != sent.Messages && !a.wasPinned { // package explain accounts for what left between others
		t.Fatalf("the event has %d messages from %d to %d without %q, not %d", n, sent.From, sent.To, sent.Call.Omitted, sent.Messages)
	}
}

// omittedPositions parses ranges such as 5-7,9.
func omittedPositions(t *rapid.T, text string) map[int64]bool {
	out := map[int64]bool{}
	for part := range strings.SplitSeq(text, ",") {
		var from, to int64
		switch n, _ := fmt.Sscanf(part, "%d-%d", &from, &to); n {
		case 1:
			to = from
		case 0:
			if text != "" {
				t.Fatalf("invalid positions %q", text)
			}
			continue
		}
		for ; from <= to; from++ {
			out[from] = true
		}
	}
	return out
}

// TestTurn_KeepsQuestion checks each request of turns with tool calls, with each policy.
func TestTurn_KeepsQuestion(t *testing.T) {
	for _, row := range spec.Policies() {
		t.Run(string(row.Name), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				a := &agentTurns{limits: drawAgentLimits(t, row.Name), resultSize: 120}
				a.cfg = memory.Config{ID: "m", Policy: row.Name, Limits: a.limits, Counter: runes{},
					KeepSystemFirst: row.Supports("keep_system_first") && rapid.Bool().Draw(t, "keep_system_first")}
				var err error
				a.memory, err = memory.New(a.cfg, memory.NewInProcess())
				testkit.Must(t, err)
				for range rapid.IntRange(1, 4).Draw(t, "turns") {
					a.run(t)
				}
			})
		})
	}
}

// TestTurn_KeepsQuestionInSmallWindow shows which messages leave.
func TestTurn_KeepsQuestionInSmallWindow(t *testing.T) {
	m, err := memory.New(memory.Config{ID: "m", Policy: "message_window", Limits: memory.Limits{"max_messages": 4}, Counter: runes{}}, memory.NewInProcess())
	testkit.Must(t, err)
	turn, err := m.Begin(t.Context(), "s")
	testkit.Must(t, err)
	turn.System("brief")
	testkit.Must(t, turn.Add(chat.Text(chat.User, "question")))
	for i := range 3 {
		testkit.Must(t, turn.Add(callAndResult(fmt.Sprint("c", i))...))
	}
	sent, err := turn.Window()
	testkit.Must(t, err)
	want := []string{`system "brief" 0 calls, answers `, `user "question" 0 calls, answers `, `assistant "" 1 calls, answers `, `tool "result c2" 0 calls, answers c2`}
	if !slices.Equal(written(sent), want) {
		t.Errorf("got %q", written(sent))
	}
	testkit.Must(t, m.SetLimits(memory.Limits{"max_messages": 3}))
	testkit.Must(t, turn.Abort(t.Context(), errors.New("done")))
	turn, err = m.Begin(t.Context(), "s")
	testkit.Must(t, err)
	turn.System("brief")
	testkit.Must(t, turn.Add(chat.Text(chat.User, "again")))
	testkit.Must(t, turn.Add(callAndResult("d")...))
	var small *memory.TurnSizeError
	if _, err = turn.Window(); !errors.As(err, &small) || small.Used != 4 || small.Limit != 3 {
		t.Errorf("got %v", err)
	}
	testkit.Must(t, turn.Abort(t.Context(), err))
}

func callAndResult(id string) []chat.Message {
	call := chat.Message{Role: chat.Assistant}.With(chat.ToolCall{ID: id, Name: "f", Arguments: "{}"})
	result := chat.Text(chat.Tool, "result "+id)
	result.ToolCallID = id
	return []chat.Message{call, result}
}
