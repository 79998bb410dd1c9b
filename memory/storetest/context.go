package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/memory/promptcontext"
	"github.com/qtype-dev/qtype/internal/memory/ranking"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/internal/vectors"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// fakeSummarizer writes summaries with a line for each message.
type fakeSummarizer struct{}

// Summarize adds the messages' texts to the list.
func (fakeSummarizer) Summarize(_ context.Context, f promptcontext.SummaryRequest) (string, error) {
	lines := strings.Fields(f.Summary)
	for i := range f.Messages {
		lines = append(lines, f.Messages[i].Text())
	}
	return strings.Join(lines, "\n"), nil
}

// fakeEmbedder makes vectors of the lengths of texts, which show what was embedded.
type fakeEmbedder struct{}

// Name returns a constant.
func (fakeEmbedder) Name() (string, error) { return "measure", nil }

// Embed returns vectors of two numbers.
func (fakeEmbedder) Embed(_ context.Context, texts []string, _ bool) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		vectors[i] = []float32{1, float32(len(text))}
	}
	return vectors, nil
}

// withContext returns a memory with every kind of context block.
func withContext(s store.Store) (*memory.Memory, error) {
	return memory.New(memory.Config{ID: "m", Limits: memory.Limits{"token_limit": 400, "chat_history_token_ratio": 0.5, "token_flush_size": 50}, Counter: runes{}, Context: promptcontext.New(nil,
		promptcontext.Block{Kind: promptcontext.Pinned, Text: "pinned"}, promptcontext.Block{Kind: promptcontext.Variables, Priority: 1},
		promptcontext.Block{Kind: promptcontext.Summary, Priority: 2, MaxTokens: 1 << 30, Summarizer: fakeSummarizer{}},
		promptcontext.Block{Kind: promptcontext.Retrieval, Priority: 3, Embedder: fakeEmbedder{}})}, s)
}

// runTurn runs a turn that adds one user message and sets a variable to it. Evicted
// messages are summarized and embedded on the way.
func runTurn(ctx context.Context, m *memory.Memory, session, text string) error {
	turn, err := m.Begin(ctx, session)
	if err != nil {
		return err
	}
	defer func() { _ = turn.Abort(context.WithoutCancel(ctx), nil) }()
	if err := turn.Add(chat.Text(chat.User, text)); err != nil {
		return err
	}
	if _, err := turn.Window(); err != nil {
		return err
	}
	if err := turn.Set("last", fmt.Appendf(nil, "%q", text)); err != nil {
		return err
	}
	return turn.Commit(ctx)
}

// contexts checks that two memories that share the store, as two processes
// would, summarize and embed the messages that the other's turns evict: each of
// them once, in order. The variables are those of the newest turn, and Clear
// deletes everything.
func contexts(t *testing.T, s store.Store) {
	first, err := withContext(s)
	testkit.Must(t, err)
	second, err := withContext(s)
	testkit.Must(t, err)
	inParallel(2, func(i int) {
		m := []*memory.Memory{first, second}[i]
		for n := range 12 {
			if err := runTurn(t.Context(), m, "s", fmt.Sprintf("%d-%d%s", i, n, strings.Repeat("x", 20))); err != nil {
				t.Error(err)
			}
		}
	})
	testkit.Must(t, runTurn(t.Context(), first, "s", "the-last"))
	checkContext(t, s, "s", true)
	key := store.Key{Memory: "m", Session: "s"}
	found := map[int64]int{}
	vectorKey := store.Key{Memory: "m\x00vectors", Session: "s"}
	for _, e := range entries(t, s, vectorKey, store.Query{}) {
		for _, b := range e.Message.Blocks {
			var v vectors.Vectors
			testkit.Must(t, v.AddBinary(b.Data))
			for _, m := range v.Nearest([]float32{1, 1}, 1<<20, func(int64) bool { return true }) {
				found[ranking.PlaceOf(m.ID).Seq]++ // the messages are one passage each
			}
		}
	}
	flushed := 0
	head, err := s.Head(t.Context(), key)
	testkit.Must(t, err)
	for _, e := range entries(t, s, key, store.Query{Live: true}) {
		if e.Seq < head.State.First {
			if flushed++; found[e.Seq] != 1 {
				t.Errorf("message %d was embedded %d times", e.Seq, found[e.Seq])
			}
		}
	}
	if flushed < 15 {
		t.Errorf("only %d messages were flushed", flushed)
	}
	testkit.Must(t, second.Clear(t.Context(), "s"))
	for _, k := range []store.Key{key, vectorKey} {
		if got := dump(t, s, k); got.Head.Version != 0 || len(got.Entries)+len(got.Events) != 0 {
			t.Errorf("left over of %q: %+v", k, got)
		}
	}
}

// checkContext checks that the summary lists the messages from the first one on, each
// once and in order, with all set every message that left the window, and that the newest
// message set the variable.
func checkContext(t *testing.T, s store.Store, session string, all bool) {
	t.Helper()
	m, err := withContext(s)
	testkit.Must(t, err)
	text, err := promptcontext.SummaryOf(t.Context(), m, session)
	testkit.Must(t, err)
	summarized := strings.Fields(text)
	var added []string
	flushed := 0
	for e, err := range m.History(t.Context(), session) {
		testkit.Must(t, err)
		if e.Status == store.Failed {
			continue
		}
		if added = append(added, e.Message.Text()); e.Status == store.Flushed {
			flushed = len(added)
		}
	}
	if len(summarized) > len(added) || !slices.Equal(summarized, added[:len(summarized)]) {
		t.Errorf("%s: the summary has %q, the history %q", session, summarized, added)
	}
	if all && len(summarized) < flushed {
		t.Errorf("%s: %d messages left the window, only %d are in the summary", session, flushed, len(summarized))
	}
	variables, err := m.Variables(t.Context(), session)
	testkit.Must(t, err)
	if n := len(added); n > 0 && (len(variables) != 1 || string(variables[0].Value) != fmt.Sprintf("%q", added[n-1])) {
		t.Errorf("%s: the variables are %s, the last message was %q", session, variables[0].Value, added[n-1])
	}
}

const contextSessions = 4 // sessions with context of a writer that will be killed

// summarize runs turns whose evicted messages are summarized and embedded, until
// the writer is killed.
func summarize(store store.Store, name string) error {
	m, err := withContext(store)
	if err != nil {
		return err
	}
	errs := make([]error, contextSessions)
	inParallel(contextSessions, func(i int) {
		for n := 0; errs[i] == nil; n++ {
			errs[i] = runTurn(context.Background(), m, fmt.Sprint("c", i), fmt.Sprintf("%s-%d", name, n))
		}
	})
	return errors.Join(errs...)
}

// checkSummaries checks that, whenever the writers were killed, no message was
// summarized twice or skipped, a turn's variable is that of its message, and the
// next turn summarizes the rest.
func checkSummaries(t *testing.T, s store.Store) {
	t.Helper()
	m, err := withContext(s)
	testkit.Must(t, err)
	summarized := 0
	for i := range contextSessions {
		session := fmt.Sprint("c", i)
		checkContext(t, s, session, false)
		testkit.Must(t, runTurn(t.Context(), m, session, "the-last"))
		testkit.Must(t, runTurn(t.Context(), m, session, "the-very-last"))
		checkContext(t, s, session, true)
		text, err := promptcontext.SummaryOf(t.Context(), m, session)
		testkit.Must(t, err)
		summarized += len(strings.Fields(text))
	}
	t.Logf("%d messages summarized", summarized)
}
