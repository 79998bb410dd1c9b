package memory_test

import (
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

// TestCompaction_ToolResults checks each request of turns with long tool results, as
// TestTurn_KeepsQuestion does, with each policy that shortens them.
func TestCompaction_ToolResults(t *testing.T) {
	for _, row := range spec.Policies() {
		if !row.Supports("shorten_tool_results") {
			continue
		}
		t.Run(string(row.Name), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				a := &agentTurns{limits: drawAgentLimits(t, row.Name), resultSize: 600}
				for _, key := range []string{"max_tokens", "token_limit"} {
					if a.limits[key] > 0 {
						a.limits[key] += 600
					}
				}
				a.cfg = memory.Config{ID: "m", Policy: row.Name, Limits: a.limits, Counter: runes{},
					Compact: memory.Compaction{ToolResults: rapid.IntRange(150, 250).Draw(t, "shorten_tool_results"), KeepResults: rapid.IntRange(0, 3).Draw(t, "keep_tool_results")}}
				var err error
				a.memory, err = memory.New(a.cfg, memory.NewInProcess())
				testkit.Must(t, err)
				for range rapid.IntRange(1, 4).Draw(t, "turns") {
					a.run(t)
					checkWindowFollows(t, a)
				}
			})
		})
	}
}

// checkWindowFollows checks that a new process and a copy of the session have the same window.
func checkWindowFollows(t *rapid.T, a *agentTurns) {
	now, err := a.memory.Window(t.Context(), "s")
	testkit.Must(t, err)
	fork := fmt.Sprint("fork ", a.n)
	testkit.Must(t, a.memory.Fork(t.Context(), "s", fork, 0))
	copied, err := a.memory.Window(t.Context(), fork)
	testkit.Must(t, err)
	if d := difference(written(now.Messages()), written(copied.Messages())); d != "" || now.Used != copied.Used {
		t.Fatalf("the fork has another window, %d of %d: %s", copied.Used, now.Used, d)
	}
	if now.Unit == store.InTokens && now.Limit > 0 && a.cfg.Policy == spec.PolicyTokenWindow && now.Used > now.Limit {
		t.Fatalf("%d of %d tokens", now.Used, now.Limit)
	}
	info, err := a.memory.Info(t.Context(), "s")
	testkit.Must(t, err)
	tokens := 0
	for _, e := range now.Entries {
		tokens += e.Tokens
	}
	if a.cfg.Policy == spec.PolicyFlush && info.Tokens != tokens {
		t.Fatalf("the list shows %d tokens, the window has %d", info.Tokens, tokens)
	}
}

// TestCompaction_ShortensBeforeEviction shows a window that has short results in place of
// evictions, and what is stored.
func TestCompaction_ShortensBeforeEviction(t *testing.T) {
	m, err := memory.New(memory.Config{ID: "m", Policy: spec.PolicyTokenWindow, Limits: memory.Limits{"max_tokens": 1500}, Counter: runes{},
		Compact: memory.Compaction{ToolResults: 200, KeepResults: 1}}, memory.NewInProcess())
	testkit.Must(t, err)
	long := "start " + strings.Repeat("x", 600) + " end"
	for i := range 3 {
		turn, err := m.Begin(t.Context(), "s")
		testkit.Must(t, err)
		pair := callAndResult(fmt.Sprint("c", i))
		pair[1].Blocks = []chat.Block{{Type: "text", Text: long}}
		testkit.Must(t, turn.Add(chat.Text(chat.User, "question")))
		testkit.Must(t, turn.Add(pair...))
		_, err = turn.Window()
		testkit.Must(t, err)
		testkit.Must(t, turn.Add(chat.Text(chat.Assistant, "answer")))
		testkit.Must(t, turn.Commit(t.Context()))
	}
	w, err := m.Window(t.Context(), "s")
	testkit.Must(t, err)
	if len(w.Entries) != 12 || w.Used > w.Limit {
		t.Fatalf("%d messages, %d of %d", len(w.Entries), w.Used, w.Limit)
	}
	for _, i := range []int{2, 6, 10} {
		text := w.Entries[i].Message.Text()
		if whole := text == long; whole != (i == 10) {
			t.Errorf("message %d is %q", i+1, text)
		}
		if note := fmt.Sprintf("of 626 tokens left out; the whole result is message %d …]", i+1); i < 10 && (!strings.Contains(text, note) || !strings.HasPrefix(text, "start ") || !strings.HasSuffix(text, " end")) {
			t.Errorf("message %d is %q", i+1, text)
		}
		whole, err := m.Message(t.Context(), "s", int64(i+1))
		testkit.Must(t, err)
		if whole.Text() != long {
			t.Errorf("message %d was stored as %q", i+1, whole.Text())
		}
	}
	var last memory.Event
	for e, err := range m.Events(t.Context(), "s") {
		testkit.Must(t, err)
		if e.Kind == store.EventFlush {
			t.Errorf("evicted: %+v", e)
		}
		last = e
	}
	if last.Kind != store.EventSent || last.Call.Shortened != "3,7" {
		t.Errorf("the last call shortened %q", last.Call.Shortened)
	}
}

// TestCompaction_ContextWindow checks that results are shortened, instead of left out rounds, for
// the context window of a model.
func TestCompaction_ContextWindow(t *testing.T) {
	for _, policy := range []spec.Policy{spec.PolicyMessageWindow, spec.PolicyUnbounded} {
		cfg := memory.Config{ID: "m", Policy: policy, Counter: runes{}, Compact: memory.Compaction{ToolResults: 200}}
		if policy == spec.PolicyMessageWindow {
			cfg.Limits = memory.Limits{"max_messages": 20}
		}
		m, err := memory.New(cfg, memory.NewInProcess())
		testkit.Must(t, err)
		pair := callAndResult("c")
		pair[1].Blocks = []chat.Block{{Type: "text", Text: strings.Repeat("x", 600)}}
		testkit.Must(t, m.Append(t.Context(), "s", append([]chat.Message{chat.Text(chat.User, "question")}, append(pair, chat.Text(chat.Assistant, "answer"))...)...))
		turn, err := m.Begin(t.Context(), "s")
		testkit.Must(t, err)
		testkit.Must(t, turn.Add(chat.Text(chat.User, "more")))
		for window, want := range map[int]string{1000: "whole", 500: "short", 100: "left out"} {
			sent, err := turn.Fit(memory.Budget{Model: "small", ContextWindow: window})
			testkit.Must(t, err)
			got := "left out"
			if len(sent) == 5 {
				if got = "whole"; strings.Contains(sent[2].Text(), "the whole result is message 3 …]") {
					got = "short"
				}
			}
			if got != want {
				t.Errorf("%s, context window %d: the result is %s, want %s", policy, window, got, want)
			}
		}
		testkit.Must(t, turn.Commit(t.Context()))
	}
}

// TestCompaction_Invalid checks that settings without effect are rejected.
func TestCompaction_Invalid(t *testing.T) {
	for want, cfg := range map[string]memory.Config{
		"shorten_tool_results must be at least 50, not 10": {Compact: memory.Compaction{ToolResults: 10}},
		"keep_tool_results must not be negative, not -1":   {Compact: memory.Compaction{ToolResults: 100, KeepResults: -1}},
		"shorten_tool_results is for the policies flush, message_window, token_window and unbounded, not round_window": {Policy: spec.PolicyRoundWindow,
			Compact: memory.Compaction{ToolResults: 100}},
	} {
		cfg.ID, cfg.Counter = "m", runes{}
		if _, err := memory.New(cfg, memory.NewInProcess()); err == nil || err.Error() != "memory m: "+want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if !slices.Contains(spec.PolicyKeys(), "shorten_tool_results") {
		t.Error("the key does not depend on the policy")
	}
}
