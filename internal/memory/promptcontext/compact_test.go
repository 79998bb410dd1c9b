package promptcontext_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/memory/promptcontext"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// compacting makes a memory with compact_at and a summary.
func compacting(t *testing.T, at float64) (*memory.Memory, *listSummarizer) {
	t.Helper()
	summarizer := &listSummarizer{}
	m, err := memory.New(memory.Config{ID: "m", Limits: memory.Limits{"token_limit": 1000}, Compact: memory.Compaction{At: at}, Counter: runes{},
		Context: promptcontext.New(nil, promptcontext.Block{Kind: promptcontext.Summary, Summarizer: summarizer, MaxTokens: 400})}, memory.NewInProcess())
	testkit.Must(t, err)
	return m, summarizer
}

// compactTurn runs a turn with messages of 100 tokens each, and returns its request.
func compactTurn(t *testing.T, m *memory.Memory, n int, b memory.Budget) []chat.Message {
	t.Helper()
	text := strings.Repeat("x", 93-len("useranswer")/2)
	message := func(role chat.Role, part int) chat.Message {
		one := chat.Text(role, text)
		one.ID = fmt.Sprint(n, ".", part)
		return one
	}
	turn, err := m.Begin(t.Context(), "s")
	testkit.Must(t, err)
	testkit.Must(t, turn.Add(message(chat.User, 1)))
	sent, err := turn.Fit(b)
	testkit.Must(t, err)
	testkit.Must(t, turn.Add(message(chat.Assistant, 2)))
	testkit.Must(t, turn.Commit(t.Context()))
	return sent
}

// TestCompactAt checks when the older half of a window leaves, that the summary of the same
// request has it, and that the request of the same conversation is the same again.
func TestCompactAt(t *testing.T) {
	for _, c := range []struct {
		name   string
		at     float64
		budget memory.Budget
		turns  []int  // the number of messages that each turn sent, with the summary
		reason string // of the first eviction
	}{
		{"token limit", 0.8, memory.Budget{}, []int{1, 3, 5, 7, 4},
			"exceeded compact_at 0.8 of token_limit 1,000; at least 400 had to leave"},
		{"context window", 0.8, memory.Budget{Model: "small", ContextWindow: 700}, []int{1, 3, 5, 4},
			"240 of them for the rest of the call, exceeded compact_at 0.8"},
		{"tools and answer", 0.8, memory.Budget{Model: "small", ContextWindow: 2000, Tools: 150, Answer: 100}, []int{1, 3, 5, 4},
			"250 of them for the rest of the call, exceeded compact_at 0.8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, summarizer := compacting(t, c.at)
			again, _ := compacting(t, c.at)
			for n, want := range c.turns {
				sent := compactTurn(t, m, n, c.budget)
				if len(sent) != want {
					t.Fatalf("turn %d sent %d messages, want %d", n+1, len(sent), want)
				}
				if same := compactTurn(t, again, n, c.budget); !slices.EqualFunc(sent, same, func(a, b chat.Message) bool { return a.Text() == b.Text() && a.ID == b.ID }) {
					t.Fatalf("turn %d of the same conversation is another one", n+1)
				}
			}
			if summarizer.calls != 1 {
				t.Errorf("%d summaries", summarizer.calls)
			}
			for e, err := range m.Events(t.Context(), "s") {
				testkit.Must(t, err)
				if e.Kind == store.EventFlush && !strings.Contains(e.Reason, c.reason) {
					t.Errorf("the reason is %q", e.Reason)
				}
			}
		})
	}
}

// TestCompactAt_Invalid checks settings that cannot be used.
func TestCompactAt_Invalid(t *testing.T) {
	summary := promptcontext.New(nil, promptcontext.Block{Kind: promptcontext.Summary, Summarizer: &listSummarizer{}})
	for want, cfg := range map[string]memory.Config{
		"compact_at must be above 0 and at most 1, not 1.5":                                                   {Compact: memory.Compaction{At: 1.5}, Context: summary},
		"compact_at must be above 0 and at most 1, not -1":                                                    {Compact: memory.Compaction{At: -1}, Context: summary},
		"compact_at needs a context that summarizes what leaves":                                              {Compact: memory.Compaction{At: 0.5}},
		"compact_at is for policy flush, not unbounded":                                                       {Compact: memory.Compaction{At: 0.5}, Policy: spec.PolicyUnbounded},
		"drop_images must be positive, not -1":                                                                {Compact: memory.Compaction{ImageRounds: -1}},
		"drop_images is for the policies flush, message_window, token_window and unbounded, not round_window": {Compact: memory.Compaction{ImageRounds: 1}, Policy: spec.PolicyRoundWindow},
	} {
		cfg.ID, cfg.Counter = "m", runes{}
		if _, err := memory.New(cfg, memory.NewInProcess()); err == nil || err.Error() != "memory m: "+want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestRetrieval_Words checks that a block without a model retrieves by words, and that a passage without
// room is skipped for a smaller one.
func TestRetrieval_Words(t *testing.T) {
	m := contextual(t, memory.NewInProcess(), 2000, promptcontext.Block{Kind: promptcontext.Retrieval, Priority: 1})
	runTurn(t, m, "My zebra eats hay. "+strings.Repeat("So the zebra has a zebra stable for one zebra. ", 16), "Ah.")
	runTurn(t, m, "The zebra is called Otto.", strings.Repeat("z", 600))
	runTurn(t, m, strings.Repeat("y", 600), "Yes.")
	sent := strings.Join(textsOf(runTurn(t, m, "What is the zebra called? "+strings.Repeat("x", 500), "Otto.")), "\n")
	if !strings.Contains(sent, ": The zebra is called Otto.") {
		t.Errorf("the model receives\n%s", sent)
	}
}

// TestRetrieval_MinScore checks that a block retrieves nothing if no message reaches the least score.
func TestRetrieval_MinScore(t *testing.T) {
	for least, want := range map[float64]bool{0: true, 0.2: true, 9: false} {
		m := contextual(t, memory.NewInProcess(), 2000, promptcontext.Block{Kind: promptcontext.Retrieval, Priority: 1, MinScore: least})
		runTurn(t, m, "The zebra is called Otto.", "Ah.")
		runTurn(t, m, strings.Repeat("y", 3000), strings.Repeat("z", 600))
		sent := strings.Join(textsOf(runTurn(t, m, "What is the zebra called? "+strings.Repeat("x", 500), "Otto.")), "\n")
		if got := strings.Contains(sent, ": The zebra is called Otto."); got != want {
			t.Errorf("min_score %v: the model receives\n%s", least, sent)
		}
	}
}
