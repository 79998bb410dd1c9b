package promptcontext_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/internal/memory/promptcontext"
	"github.com/qtype-dev/qtype/internal/memory/sqlite"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// TestContext_Invariants checks random conversations against the rules of docs/memory.md.
func TestContext_Invariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkConversation(t, memory.NewInProcess(), nil, 25) })
}

func TestContext_InvariantsInSQLite(t *testing.T) {
	folder := t.TempDir()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		path := filepath.Join(folder, fmt.Sprint(n, ".db"))
		open := func() memory.Store {
			s, err := sqlite.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		checkConversation(t, open(), open, 8)
	})
}

// conversation is a conversation and what is expected of it.
type conversation struct {
	*rapid.T
	memory      *memory.Memory
	limit       int
	pinned      string
	summarizer  *listSummarizer
	vectors     *letterEmbedder
	values      map[string]string
	system      string
	inputTokens int
	at          float64 // compact_at
	budget      memory.Budget
}

func checkConversation(t *rapid.T, store memory.Store, reopen func() memory.Store, most int) {
	c := &conversation{T: t, summarizer: &listSummarizer{}, vectors: &letterEmbedder{}, values: map[string]string{}}
	c.limit = rapid.IntRange(200, 1500).Draw(t, "token_limit")
	c.inputTokens = rapid.SampledFrom([]int{0, 0, 50, 300}).Draw(t, "input_tokens")
	c.pinned = strings.Repeat("p", rapid.IntRange(1, 60).Draw(t, "pinned"))
	c.system = rapid.SampledFrom([]string{"", "Be kind."}).Draw(t, "system")
	if c.at = rapid.SampledFrom([]float64{0, 0.5, 0.8, 1}).Draw(t, "compact_at"); c.at > 0 {
		c.budget = memory.Budget{Model: "small", ContextWindow: rapid.IntRange(c.limit/2, 2*c.limit).Draw(t, "context_window"), Answer: rapid.IntRange(0, 40).Draw(t, "answer"), Tools: rapid.IntRange(0, 40).Draw(t, "tools")}
	}
	cfg := memory.Config{ID: "m", Compact: memory.Compaction{At: c.at}, Counter: runes{}, Limits: memory.Limits{"token_limit": float64(c.limit), "chat_history_token_ratio": float64(float64(rapid.IntRange(10, 90).Draw(t, "percent")) / 100), "token_flush_size": float64(rapid.IntRange(1, 200).Draw(t, "flush"))}, Context: promptcontext.New(nil,
		promptcontext.Block{Kind: promptcontext.Pinned, Text: c.pinned}, promptcontext.Block{Kind: promptcontext.Variables, Priority: rapid.IntRange(1, 3).Draw(t, "priority")},
		promptcontext.Block{Kind: promptcontext.Summary, Priority: 2, Summarizer: c.summarizer, MaxTokens: 100_000, InputTokens: c.inputTokens},
		promptcontext.Block{Kind: promptcontext.Retrieval, Priority: 3, TopK: rapid.IntRange(1, 4).Draw(t, "top_k"), Embedder: c.vectors})}
	start := func() {
		var err error
		if c.memory, err = memory.New(cfg, store); err != nil {
			t.Fatal(err)
		}
	}
	start()
	for range rapid.IntRange(1, most).Draw(t, "operations") {
		switch rapid.SampledFrom([]string{"turn", "turn", "turn", "turn", "fail", "append", "value", "restart", "model"}).Draw(t, "operation") {
		case "turn":
			c.turn(true)
		case "fail":
			c.turn(false)
		case "append":
			testkit.Must(t, c.memory.Append(context.Background(), "s", chat.Text(chat.User, c.text()), chat.Text(chat.Assistant, c.text())))
		case "value":
			name, text := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name"), fmt.Sprintf("%q", c.text())
			testkit.Must(t, c.memory.SetVariables(context.Background(), "s", memory.Variable{Name: name, Value: []byte(text)}))
			c.values[name] = text
		case "model":
			c.summarizer.fails, c.vectors.fails = nil, nil
			if rapid.Bool().Draw(t, "fails") {
				c.summarizer.fails, c.vectors.fails = errors.New("down"), errors.New("down")
			}
		case "restart":
			if reopen != nil {
				testkit.Must(t, store.Close())
				store = reopen()
			}
			start()
		}
		c.check()
	}
	testkit.Must(t, store.Close())
}

func (c *conversation) text() string {
	return strings.Repeat(string(rune('a'+rapid.IntRange(0, 25).Draw(c.T, "letter"))), rapid.IntRange(1, 80).Draw(c.T, "length"))
}

// turn adds a question, sometimes a tool call, and an answer, or fails.
func (c *conversation) turn(commits bool) {
	ctx := context.Background()
	turn, err := c.memory.Begin(ctx, "s")
	testkit.Must(c, err)
	defer func() { _ = turn.Abort(ctx, errors.New("it failed")) }()
	turn.System(c.system)
	testkit.Must(c, turn.Add(chat.Text(chat.User, c.text())))
	before := c.sent(turn)
	if rapid.Bool().Draw(c.T, "tool") {
		call := chat.Message{ID: chat.NewID(), Role: chat.Assistant}.With(chat.ToolCall{ID: "1", Name: "f", Arguments: "{}"})
		result := chat.Text(chat.Tool, c.text())
		result.ToolCallID = "1"
		testkit.Must(c, turn.Set("a", []byte(`"set"`)))
		testkit.Must(c, turn.Add(call, result))
		after := c.sent(turn)
		if before != nil && after != nil && len(after) >= len(before) && after[len(after)-1].Role == chat.Tool && len(after) == len(before)+2 {
			for i := range before { // the loop's calls share their prefix, unless there is no room any more
				if before[i].Text() != after[i].Text() && len(before[i].Text()) <= len(after[i].Text()) {
					c.Fatalf("message %d of the next call in the loop was %q, is %q", i, before[i].Text(), after[i].Text())
				}
			}
		}
		if commits {
			c.values["a"] = `"set"`
		}
	}
	if commits {
		testkit.Must(c, turn.Add(chat.Text(chat.Assistant, c.text())))
		testkit.Must(c, turn.Commit(ctx))
	}
}

// sent checks one call against the limit and the history.
func (c *conversation) sent(turn *memory.Turn) []chat.Message {
	out, err := turn.Fit(c.budget)
	var small *memory.BudgetError
	if errors.As(err, &small) {
		if small.Round+small.System+small.Context+small.Tools+small.Answer <= small.ContextWindow {
			c.Fatalf("rejected without reason: %v", err)
		}
		return nil
	}
	var over *memory.ContextError
	if errors.As(err, &over) {
		if over.Messages+over.System+over.Context <= c.limit || over.Context < len(c.pinned) {
			c.Fatalf("rejected without reason: %v", err)
		}
		return nil
	}
	testkit.Must(c, err)
	total, messageTokens := 0, 0
	for i, m := range out {
		n := memory.Tokens(runes{}, m)
		total += n
		if i > 0 {
			m.Blocks = slices.DeleteFunc(slices.Clone(m.Blocks), func(b chat.Block) bool { return b.MimeType == chat.MemoryMimeType })
			messageTokens += memory.Tokens(runes{}, m)
		}
	}
	if total > c.limit {
		c.Fatalf("%d tokens were sent, token_limit is %d (%d of messages)", total, c.limit, messageTokens)
	}
	if window := c.budget.ContextWindow; window > 0 && total+c.budget.Answer+c.budget.Tools > window {
		c.Fatalf("%d tokens were sent, the context window is %d", total, window)
	}
	if out[0].Role != chat.System || !strings.Contains(out[0].Text(), c.pinned) || !strings.HasPrefix(out[0].Text(), c.system) {
		c.Fatalf("the pinned text is not sent: %q", out[0].Text())
	}
	c.nothingLost(out)
	return out
}

// nothingLost checks that each earlier message is sent, or in the summary that is sent.
func (c *conversation) nothingLost(out []chat.Message) {
	if c.summarizer.fails != nil || c.inputTokens != 0 {
		return // a later turn summarizes the rest
	}
	summary, err := promptcontext.SummaryOf(context.Background(), c.memory, "s")
	testkit.Must(c, err)
	known := map[string]bool{}
	for _, line := range strings.Fields(summary) {
		known[line] = true
	}
	for _, m := range out {
		known["<"+m.ID+">"] = true
	}
	for e, err := range c.memory.History(context.Background(), "s") {
		testkit.Must(c, err)
		if e.Status != store.Failed && e.Message.Role != chat.System && !known["<"+e.Message.ID+">"] {
			c.Fatalf("message %d is neither sent nor in the summary, which has %d messages", e.Seq, len(strings.Fields(summary)))
		}
	}
}

// check compares the session with its history.
func (c *conversation) check() {
	ctx := context.Background()
	summary, err := promptcontext.SummaryOf(ctx, c.memory, "s")
	testkit.Must(c, err)
	summarized := strings.Fields(summary)
	if slices.Sort(summarized); len(slices.Compact(slices.Clone(summarized))) != len(summarized) {
		c.Fatalf("summarized twice: %q", summarized)
	}
	var order []string // of all messages of turns that did not fail
	for e, err := range c.memory.History(ctx, "s") {
		testkit.Must(c, err)
		if e.Status == store.Failed || e.Message.Role == chat.System {
			continue
		}
		order = append(order, "<"+e.Message.ID+">")
	}
	n := len(strings.Fields(summary))
	if n > len(order) || !slices.Equal(strings.Fields(summary), order[:n]) {
		c.Fatalf("the summary has %q, the history %q", strings.Fields(summary), order)
	}
	for e, err := range c.memory.Events(ctx, "s") {
		testkit.Must(c, err)
		if e.Kind == store.EventSent {
			for _, part := range e.Call.Context {
				for i, seq := range part.Found {
					if e.From > 0 && seq >= e.From || i > 0 && part.Found[i-1] >= seq {
						c.Fatalf("turn %d was sent %d to %d, and found %v", e.Turn, e.From, e.To, part.Found)
					}
				}
			}
		}
	}
	held, err := c.memory.Variables(ctx, "s")
	testkit.Must(c, err)
	got := map[string]string{}
	for _, v := range held {
		got[v.Name] = string(v.Value)
	}
	if !maps.Equal(got, c.values) {
		c.Fatalf("variables %v, want %v", got, c.values)
	}
}
