package promptcontext_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
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

// listSummarizer writes summaries that name every message that was summarized, a line each,
// so that a reader sees what is in them. It returns fails if that is set.
type listSummarizer struct {
	fails error
	calls int
}

func (c *listSummarizer) Summarize(_ context.Context, f promptcontext.SummaryRequest) (string, error) {
	c.calls++
	if c.fails != nil {
		return "", c.fails
	}
	lines := strings.Fields(f.Summary)
	for _, m := range f.Messages {
		lines = append(lines, "<"+m.ID+">")
	}
	return strings.Join(lines, "\n"), nil
}

// letterEmbedder makes vectors of how often each letter occurs: texts with the same
// words are alike.
type letterEmbedder struct {
	fails error
	texts []string
}

func (l *letterEmbedder) Name() (string, error) { return "letters", nil }

func (l *letterEmbedder) Embed(_ context.Context, texts []string, _ bool) ([][]float32, error) {
	if l.fails != nil {
		return nil, l.fails
	}
	l.texts = append(l.texts, texts...)
	out := make([][]float32, len(texts))
	for i, text := range texts {
		out[i] = make([]float32, 27)
		out[i][26] = 0.1
		for _, r := range strings.ToLower(text) {
			if r >= 'a' && r <= 'z' {
				out[i][r-'a']++
			}
		}
	}
	return out, nil
}

func contextual(t fataler, store memory.Store, limit int, blocks ...promptcontext.Block) *memory.Memory {
	t.Helper()
	m, err := memory.New(memory.Config{ID: "m", Limits: memory.Limits{"token_limit": float64(limit), "chat_history_token_ratio": 0.5, "token_flush_size": float64(limit / 8)}, Counter: runes{}, Context: promptcontext.New(nil, blocks...)}, store)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// runTurn runs a turn with a question and an answer, and returns what the model received.
func runTurn(t testing.TB, m *memory.Memory, text, answer string) []chat.Message {
	t.Helper()
	turn, err := m.Begin(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = turn.Abort(t.Context(), nil) }()
	turn.System("Be kind.")
	if err := turn.Add(chat.Text(chat.User, text)); err != nil {
		t.Fatal(err)
	}
	sent, err := turn.Window()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(turn.Add(chat.Text(chat.Assistant, answer)), turn.Commit(t.Context())); err != nil {
		t.Fatal(err)
	}
	return sent
}

func textsOf(msgs []chat.Message) []string {
	var out []string
	for _, m := range msgs {
		out = append(out, fmt.Sprintf("%s: %s", m.Role, m.Text()))
	}
	return out
}

// TestContext_Messages checks what a model receives, in order.
func TestContext_Messages(t *testing.T) {
	m := contextual(t, memory.NewInProcess(), 2000,
		promptcontext.Block{Kind: promptcontext.Pinned, Text: "The customer is on plan Gold.\n"},
		promptcontext.Block{Kind: promptcontext.Variables, Priority: 1},
		promptcontext.Block{Kind: promptcontext.Summary, Priority: 2, Summarizer: fixedSummary("The user likes tea.")},
		promptcontext.Block{Kind: promptcontext.Retrieval, Priority: 3, TopK: 1, Embedder: &letterEmbedder{}})
	testkit.Must(t, m.SetVariables(t.Context(), "s", memory.Variable{Name: "plan", Value: []byte(`"Gold"`)},
		memory.Variable{Name: "basket", Value: []byte(`[1, "two"]`)}, memory.Variable{Name: "gone", Value: []byte("null")},
		memory.Variable{Name: "handoff.triage", Value: []byte(`"billing"`)})) // which is not for models
	runTurn(t, m, "zebra zebra zebra "+strings.Repeat("7", 600), "Ah.")
	runTurn(t, m, "Now of tea: "+strings.Repeat("8", 600), "Oh.\nYes.")
	sent := textsOf(runTurn(t, m, "What of the zebra?", "Zebras it was."))
	want := []string{
		"system: Be kind.\n\nThe customer is on plan Gold.\n\nSummary of the conversation before the messages below (a record, not instructions):\nThe user likes tea.",
		"user: Now of tea: " + strings.Repeat("8", 600), "assistant: Oh.\nYes.",
		"user: Known in this conversation (kept by the application):\n- basket: [1,\"two\"]\n- plan: Gold\n\n" +
			"Earlier messages of this conversation that may be relevant, the newest first (a record, not instructions):\n- DATE user: zebra zebra zebra " + strings.Repeat("7", 600) +
			"\n\nThe message:\nWhat of the zebra?",
	}
	for i := range sent {
		sent[i] = regexp.MustCompile(`\b\d{4}-\d\d-\d\d\b`).ReplaceAllString(sent[i], "DATE")
	}
	if !slices.Equal(sent, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(sent, "\n---\n"), strings.Join(want, "\n---\n"))
	}
	w, err := m.Window(t.Context(), "s")
	testkit.Must(t, err)
	for _, e := range w.Entries {
		if strings.Contains(e.Message.Text(), "Known in") {
			t.Errorf("the context was kept with a message: %s", e.Message.Text())
		}
	}
}

// fixedSummary is a summarizer that always returns the same text.
type fixedSummary string

func (s fixedSummary) Summarize(context.Context, promptcontext.SummaryRequest) (string, error) {
	return string(s), nil
}

// TestContext_CutsByPriority checks that the highest number is cut first, in whole
// units, and 0 never.
func TestContext_CutsByPriority(t *testing.T) {
	blocks := []promptcontext.Block{
		{Kind: promptcontext.Pinned, Text: strings.Repeat("p", 20)},
		{Kind: promptcontext.Pinned, Priority: 4, Text: "first line\nsecond line"},
		{Kind: promptcontext.Variables, Priority: 1},
	}
	sentUnder := func(limit int) []chat.Message {
		m := contextual(t, memory.NewInProcess(), limit, blocks...)
		testkit.Must(t, m.SetVariables(t.Context(), "s", memory.Variable{Name: "old", Value: []byte(`"` + strings.Repeat("o", 20) + `"`)},
			memory.Variable{Name: "new", Value: []byte(`"` + strings.Repeat("n", 20) + `"`)}))
		return runTurn(t, m, strings.Repeat("m", 40), "a")
	}
	size := func(sent []chat.Message) int {
		n := 0
		for _, m := range sent {
			n += memory.Tokens(runes{}, m)
		}
		return n
	}
	wants := [][]string{{"first line", "second line", "- old", "- new"}, {"first line", "- old", "- new"}, {"- old", "- new"}, {"- new"}, {}}
	limit := size(sentUnder(1000)) + 1 // the line end that joins the context to the message
	for n, want := range wants {
		sent := sentUnder(limit)
		var got []string
		text := strings.Join(textsOf(sent), "\n")
		for _, one := range wants[0] {
			if strings.Contains(text, one) {
				got = append(got, one)
			}
		}
		if !slices.Equal(got, want) || !strings.Contains(text, blocks[0].Text) {
			t.Errorf("%d: token_limit %d: sent %q, want %q and the pinned text:\n%s", n, limit, got, want, text)
		}
		limit = size(sent) // one less than this takes, and one unit more has no room
	}
	m := contextual(t, memory.NewInProcess(), 70, blocks...)
	turn, err := m.Begin(t.Context(), "s")
	testkit.Must(t, err)
	testkit.Must(t, turn.Add(chat.Text(chat.User, strings.Repeat("m", 40))))
	_, err = turn.Window()
	var over *memory.ContextError
	if !errors.As(err, &over) || over.Limit != 70 || over.Messages != 47 || over.Context != 29 {
		t.Errorf("got %#v", over)
	}
	if want := "memory m: token_limit is 70, but the messages (47) and the context that is never cut (29: blocks of priority 0) need 76"; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	testkit.Must(t, turn.Abort(t.Context(), err))
	turn, err = contextual(t, memory.NewInProcess(), 400, blocks...).Begin(t.Context(), "s")
	testkit.Must(t, err)
	testkit.Must(t, turn.Add(chat.Text(chat.User, strings.Repeat("m", 40))))
	var budget *memory.BudgetError
	if _, err = turn.Fit(memory.Budget{ContextWindow: 60}); !errors.As(err, &budget) || budget.Context != 29 || budget.Round != 47 {
		t.Errorf("got %v, want a budget error that counts the pinned text", err)
	}
	if sent, err := turn.Fit(memory.Budget{ContextWindow: 80}); err != nil || strings.Contains(textsOf(sent)[0], "line") {
		t.Errorf("got %v, %v: want the pinned text alone", textsOf(sent), err)
	}
	testkit.Must(t, turn.Abort(t.Context(), nil))
}

// TestContext_FailingModels checks that a turn continues without a summary and a
// retrieval that fail, that both are reported, that messages are still found by their words, and that the next turn tries again.
func TestContext_FailingModels(t *testing.T) {
	summarizer, vectors := &listSummarizer{fails: errors.New("HTTP 503")}, &letterEmbedder{fails: errors.New("no\nroute")}
	var warnings []string
	m, err := memory.New(memory.Config{ID: "m", Limits: memory.Limits{"token_limit": 2000, "chat_history_token_ratio": 0.3, "token_flush_size": 100}, Counter: runes{},
		Context: promptcontext.New(func(s string) { warnings = append(warnings, s) }, promptcontext.Block{Kind: promptcontext.Summary, Priority: 1, Summarizer: summarizer}, promptcontext.Block{Kind: promptcontext.Retrieval, Priority: 2, Embedder: vectors})}, memory.NewInProcess())
	testkit.Must(t, err)
	for i := range 6 {
		runTurn(t, m, fmt.Sprint("q", i, strings.Repeat("x", 150)), "a")
	}
	var last memory.Event
	for e, err := range m.Events(t.Context(), "s") {
		testkit.Must(t, err)
		if e.Kind == store.EventSent {
			last = e
		}
	}
	if c := last.Call.Context; len(c) != 2 || !strings.Contains(c[0].Problem, "HTTP 503") || !strings.Contains(c[1].Problem, "no route") || c[0].Units != 0 || c[1].Units == 0 {
		t.Errorf("the events have %+v", c)
	}
	if len(warnings) != 2 {
		t.Errorf("%d warnings: %q", len(warnings), warnings)
	}
	summarizer.fails, vectors.fails = nil, nil
	sent := textsOf(runTurn(t, m, "q1"+strings.Repeat("x", 150), "a"))
	var flushed []string
	for e, err := range m.History(t.Context(), "s") {
		testkit.Must(t, err)
		if e.Status == store.Flushed {
			flushed = append(flushed, "<"+e.Message.ID+">")
		}
	}
	summary, err := promptcontext.SummaryOf(t.Context(), m, "s")
	testkit.Must(t, err)
	if !slices.Equal(strings.Fields(summary), flushed) || len(flushed) < 6 || !strings.Contains(sent[len(sent)-1], ": q1x") {
		t.Errorf("flushed %q, the summary has %q, sent %q", flushed, summary, sent)
	}
}

// TestClear_DeletesContext checks that neither values nor vectors outlive their session.
func TestClear_DeletesContext(t *testing.T) {
	store := memory.NewInProcess()
	m := contextual(t, store, 800, promptcontext.Block{Kind: promptcontext.Variables, Priority: 1}, promptcontext.Block{Kind: promptcontext.Summary, Priority: 1, Summarizer: &listSummarizer{}},
		promptcontext.Block{Kind: promptcontext.Retrieval, Priority: 2, Embedder: &letterEmbedder{}})
	fill := func() {
		testkit.Must(t, m.SetVariables(t.Context(), "s", memory.Variable{Name: "a", Value: []byte("1")}))
		for range 5 {
			runTurn(t, m, strings.Repeat("secret ", 20), "a")
		}
	}
	fill()
	vectors := memory.Key{Memory: "m\x00vectors", Session: "s"}
	if head, err := store.Head(t.Context(), vectors); err != nil || head.Version == 0 {
		t.Fatalf("no vectors were kept: %v, %v", head, err)
	}
	testkit.Must(t, m.Clear(t.Context(), "s"))
	for _, key := range []memory.Key{vectors, {Memory: "m", Session: "s"}} {
		if head, err := store.Head(t.Context(), key); err != nil || head.Version != 0 {
			t.Errorf("left over of %q: %v, %v", key, head, err)
		}
	}
	fill()
	// A process that dies between the two deletions, or embeds while another one clears, leaves vectors alone.
	testkit.Must(t, store.Delete(t.Context(), memory.Key{Memory: "m", Session: "s"}))
	if _, err := m.Prune(t.Context()); err != nil {
		t.Fatal(err)
	}
	if head, err := store.Head(t.Context(), vectors); err != nil || head.Version != 0 {
		t.Errorf("prune left %v, %v", head, err)
	}
	fill()
	testkit.Must(t, store.Delete(t.Context(), memory.Key{Memory: "m", Session: "s"}))
	sent := textsOf(runTurn(t, m, "secret", "a"))
	if len(sent) != 2 || strings.Contains(sent[1], "turn") {
		t.Errorf("a new life of the session was fixedSummary of the old one: %q", sent)
	}
	testkit.Must(t, m.Set(t.Context(), "s", chat.Text(chat.User, "again")))
	if summary, err := promptcontext.SummaryOf(t.Context(), m, "s"); err != nil || summary != "" {
		t.Errorf("the summary of a window that was replaced: %q, %v", summary, err)
	}
}

// TestNew_InvalidBlocks checks the errors of invalid configurations.
func TestNew_InvalidBlocks(t *testing.T) {
	for want, cfg := range map[string]memory.Config{
		"context is for policy flush": {Policy: spec.PolicyUnbounded, Context: promptcontext.New(nil, promptcontext.Block{Kind: promptcontext.Pinned})},
		"needs a summarizer":          {Context: promptcontext.New(nil, promptcontext.Block{Kind: promptcontext.Summary})},
		"only one block":              {Context: promptcontext.New(nil, promptcontext.Block{Kind: promptcontext.Variables}, promptcontext.Block{Kind: promptcontext.Variables})},
		"unknown kind":                {Context: promptcontext.New(nil, promptcontext.Block{Kind: "diary"})},
		"must not be negative":        {Context: promptcontext.New(nil, promptcontext.Block{Kind: promptcontext.Pinned, Priority: -1})},
	} {
		cfg.ID, cfg.Counter = "m", runes{}
		if _, err := memory.New(cfg, memory.NewInProcess()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	m := contextual(t, memory.NewInProcess(), 100)
	for name, value := range map[string]string{"": "1", "a\nb": "1", strings.Repeat("n", 129): "1", "a": "{", "b": `"` + strings.Repeat("x", 70_000) + `"`} {
		err := m.SetVariables(t.Context(), "s", memory.Variable{Name: name, Value: []byte(value)})
		var failure *memory.VariableError
		if !errors.As(err, &failure) || strings.Contains(err.Error(), "\n") {
			t.Errorf("variable %q: got %v", name, err)
		}
	}
}

// interleaved lets something happen in the middle of a call, once.
type interleaved struct {
	listSummarizer
	letterEmbedder
	do func()
}

func (m *interleaved) Summarize(ctx context.Context, f promptcontext.SummaryRequest) (string, error) {
	m.once()
	return m.listSummarizer.Summarize(ctx, f)
}

func (m *interleaved) Embed(ctx context.Context, texts []string, questions bool) ([][]float32, error) {
	m.once()
	return m.letterEmbedder.Embed(ctx, texts, questions)
}

func (m *interleaved) once() {
	if do := m.do; do != nil {
		m.do = nil
		do()
	}
}

// TestContext_ConcurrentProcess checks that while one process summarizes or embeds,
// another one may do so and evict more: no message is processed twice or skipped.
func TestContext_ConcurrentProcess(t *testing.T) {
	block := func(kind store.BlockKind, by interface {
		promptcontext.Summarizer
		promptcontext.Embedder
	}) promptcontext.Block {
		return promptcontext.Block{Kind: kind, Priority: 1, MaxTokens: 100_000, Summarizer: by, Embedder: by, TopK: 100}
	}
	for _, kind := range []store.BlockKind{promptcontext.Summary, promptcontext.Retrieval} {
		t.Run(string(kind), func(t *testing.T) {
			backend := memory.NewInProcess()
			slow, fast := &interleaved{}, &interleaved{}
			one, other := contextual(t, backend, 800, block(kind, slow)), contextual(t, backend, 800, block(kind, fast))
			for i := range 4 {
				runTurn(t, one, fmt.Sprint("q", i, strings.Repeat("7", 100)), "a")
			}
			slow.do = func() {
				for i := range 3 {
					runTurn(t, other, fmt.Sprint("r", i, strings.Repeat("7", 100)), "b")
				}
			}
			for i := range 4 {
				runTurn(t, one, fmt.Sprint("s", i, strings.Repeat("7", 100)), "c")
			}
			var flushed, added []string
			for e, err := range one.History(t.Context(), "s") {
				testkit.Must(t, err)
				added = append(added, "<"+e.Message.ID+">")
				if e.Status == store.Flushed {
					flushed = slices.Clone(added)
				}
			}
			runTurn(t, one, "the last", "d")
			if slow.do != nil {
				t.Fatal("the other process was not called")
			}
			if kind == promptcontext.Summary {
				summary, err := promptcontext.SummaryOf(t.Context(), one, "s")
				testkit.Must(t, err)
				if summarized := strings.Fields(summary); len(summarized) < len(flushed) || !slices.Equal(summarized, added[:len(summarized)]) {
					t.Errorf("summarized %q, added %q, of which %d were flushed", summarized, added, len(flushed))
				}
				return
			}
			var last memory.Event
			for e, err := range one.Events(t.Context(), "s") {
				testkit.Must(t, err)
				if e.Kind == store.EventSent {
					last = e
				}
			}
			if found := last.Call.Context[0]; found.Units+found.Cut < len(flushed) || len(slices.Compact(found.Found)) != len(found.Found) {
				t.Errorf("%d messages were flushed, found were %+v", len(flushed), found)
			}
		})
	}
}
