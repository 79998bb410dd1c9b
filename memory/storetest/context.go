package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/vectors"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/promptcontext"
	"github.com/qtype-dev/qtype/spec/chat"
)

// fakeSummarizer writes summaries that list what was folded, a line for each message.
type fakeSummarizer struct{}

// Summarize adds the messages' texts to the list.
func (fakeSummarizer) Summarize(_ context.Context, f promptcontext.SummaryRequest) (string, error) {
	lines := strings.Fields(f.Summary)
	for i := range f.Messages {
		lines = append(lines, f.Messages[i].Text())
	}
	return strings.Join(lines, "\n"), nil
}

// fakeEmbedder makes vectors of texts' lengths: enough to see which were made.
type fakeEmbedder struct{}

// Name is the same for all of them.
func (fakeEmbedder) Name() (string, error) { return "measure", nil }

// Embed makes a vector of two numbers.
func (fakeEmbedder) Embed(_ context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		vectors[i] = []float32{1, float32(len(text))}
	}
	return vectors, nil
}

// withContext is a memory with every kind of context block, over s.
func withContext(s memory.Store) (*memory.Memory, error) {
	return memory.New(memory.Config{ID: "m", Limits: memory.Limits{"token_limit": 400, "chat_history_token_ratio": 0.5, "token_flush_size": 50}, Counter: runes{}, Context: promptcontext.New(nil,
		promptcontext.Block{Kind: promptcontext.Pinned, Text: "pinned"}, promptcontext.Block{Kind: promptcontext.Variables, Priority: 1},
		promptcontext.Block{Kind: promptcontext.Summary, Priority: 2, MaxTokens: 1 << 30, Summarizer: fakeSummarizer{}},
		promptcontext.Block{Kind: promptcontext.Retrieval, Priority: 3, Embedder: fakeEmbedder{}})}, s)
}

// ask is a turn that says one user message and sets a variable to it; what was
// flushed is folded and embedded on the way.
func ask(ctx context.Context, m *memory.Memory, session, text string) error {
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

// contexts: two memories that share the store, as two processes would, fold and
// embed what each other's turns flush: every message once, in its order. The
// variables are those of the newest turn, and nothing outlives a Clear.
func contexts(t *testing.T, s memory.Store) {
	first, err := withContext(s)
	must(t, err)
	second, err := withContext(s)
	must(t, err)
	inParallel(2, func(i int) {
		m := []*memory.Memory{first, second}[i]
		for n := range 12 {
			if err := ask(t.Context(), m, "s", fmt.Sprintf("%d-%d%s", i, n, strings.Repeat("x", 20))); err != nil {
				t.Error(err)
			}
		}
	})
	must(t, ask(t.Context(), first, "s", "the-last"))
	checkContext(t, s, "s", true)
	key := memory.Key{Memory: "m", Session: "s"}
	found := map[int64]int{}
	vectorKey := memory.Key{Memory: "m\x00vectors", Session: "s"}
	for _, e := range entries(t, s, vectorKey, memory.Query{}) {
		for _, b := range e.Message.Blocks {
			var v vectors.Vectors
			must(t, v.AddBinary(b.Data))
			for _, m := range v.Nearest([]float32{1, 1}, 1<<20, func(int64) bool { return true }) {
				found[m.ID]++
			}
		}
	}
	flushed := 0
	head, err := s.Head(t.Context(), key)
	must(t, err)
	for _, e := range entries(t, s, key, memory.Query{Live: true}) {
		if e.Seq < head.State.First {
			if flushed++; found[e.Seq] != 1 {
				t.Errorf("message %d was embedded %d times", e.Seq, found[e.Seq])
			}
		}
	}
	if flushed < 15 {
		t.Errorf("only %d messages were flushed", flushed)
	}
	must(t, second.Clear(t.Context(), "s"))
	for _, k := range []memory.Key{key, vectorKey} {
		if got := dump(t, s, k); got.Head.Version != 0 || len(got.Entries)+len(got.Events) != 0 {
			t.Errorf("left over of %q: %+v", k, got)
		}
	}
}

// checkContext: the summary lists the messages from the first one on, each once
// and in order, and with all set everything that left the window; the variable
// is the newest message's.
func checkContext(t *testing.T, s memory.Store, session string, all bool) {
	t.Helper()
	m, err := withContext(s)
	must(t, err)
	text, err := promptcontext.SummaryOf(t.Context(), m, session)
	must(t, err)
	folded := strings.Fields(text)
	var said []string
	flushed := 0
	for e, err := range m.History(t.Context(), session) {
		must(t, err)
		if e.Status == memory.Failed {
			continue
		}
		if said = append(said, e.Message.Text()); e.Status == memory.Flushed {
			flushed = len(said)
		}
	}
	if len(folded) > len(said) || !slices.Equal(folded, said[:len(folded)]) {
		t.Errorf("%s: folded were %q, said %q", session, folded, said)
	}
	if all && len(folded) < flushed {
		t.Errorf("%s: %d messages left the window, only %d are in the summary", session, flushed, len(folded))
	}
	variables, err := m.Variables(t.Context(), session)
	must(t, err)
	if n := len(said); n > 0 && (len(variables) != 1 || string(variables[0].Value) != fmt.Sprintf("%q", said[n-1])) {
		t.Errorf("%s: the variables are %s, the last message was %q", session, variables[0].Value, said[n-1])
	}
}

const contextSessions = 4 // that a writer which is to be killed speaks in beside the others

// folding is what a writer does that is to be killed: turns whose flushed
// messages are folded and embedded, in sessions of their own, as fast as can be.
func folding(store memory.Store, name string) error {
	m, err := withContext(store)
	if err != nil {
		return err
	}
	errs := make([]error, contextSessions)
	inParallel(contextSessions, func(i int) {
		for n := 0; errs[i] == nil; n++ {
			errs[i] = ask(context.Background(), m, fmt.Sprint("c", i), fmt.Sprintf("%s-%d", name, n))
		}
	})
	return errors.Join(errs...)
}

// checkFolded: whatever the moment at which its writers were killed, no message
// is folded twice or passed over, a turn's variable is that of its message, and
// the next turn folds what is left.
func checkFolded(t *testing.T, s memory.Store) {
	t.Helper()
	m, err := withContext(s)
	must(t, err)
	folded := 0
	for i := range contextSessions {
		session := fmt.Sprint("c", i)
		checkContext(t, s, session, false)
		must(t, ask(t.Context(), m, session, "the-last"))
		must(t, ask(t.Context(), m, session, "the-very-last"))
		checkContext(t, s, session, true)
		text, err := promptcontext.SummaryOf(t.Context(), m, session)
		must(t, err)
		folded += len(strings.Fields(text))
	}
	t.Logf("%d messages folded", folded)
}
