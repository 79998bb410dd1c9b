// Package encryptedtest has tests of encrypted stores, for every kind of store.
package encryptedtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/memory/promptcontext"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// listSummarizer returns the texts of the messages, one per line.
type listSummarizer struct{}

func (listSummarizer) Summarize(_ context.Context, f promptcontext.SummaryRequest) (string, error) {
	texts := strings.Fields(f.Summary)
	for i := range f.Messages {
		texts = append(texts, strings.ReplaceAll(f.Messages[i].Text(), " ", "-"))
	}
	return strings.Join(texts, "\n"), nil
}

// NewMemory returns a memory whose sessions have flushed messages, a summary,
// variables and events.
func NewMemory(t testing.TB, s store.Store) *memory.Memory {
	t.Helper()
	m, err := memory.New(memory.Config{ID: "m", Limits: memory.Limits{"token_limit": 400, "chat_history_token_ratio": 0.25, "token_flush_size": 50}, Counter: letters{}, Context: promptcontext.New(nil,
		promptcontext.Block{Kind: promptcontext.Summary, Priority: 1, MaxTokens: 1 << 20, Summarizer: listSummarizer{}}, promptcontext.Block{Kind: promptcontext.Variables, Priority: 2})}, s)
	testkit.Must(t, err)
	return m
}

// RunTurn runs a turn with a question, its answer and a variable.
func RunTurn(t testing.TB, m *memory.Memory, session, text string) {
	t.Helper()
	turn, err := m.Begin(t.Context(), session)
	testkit.Must(t, err)
	defer func() { _ = turn.Abort(context.WithoutCancel(t.Context()), nil) }()
	turn.System("be Geheim-kind")
	testkit.Must(t, turn.Add(chat.Message{ID: session + text, Role: chat.User, Blocks: []chat.Block{{Type: "text", Text: text}}}))
	_, err = turn.Window()
	testkit.Must(t, err)
	testkit.Must(t, turn.Set("topic", fmt.Appendf(nil, "%q", text)))
	testkit.Must(t, turn.Add(chat.Message{ID: session + text + "!", Role: chat.Assistant, Blocks: []chat.Block{{Type: "text", Text: "answer to " + text}}}))
	testkit.Must(t, turn.Commit(t.Context()))
}

// RunTurns runs five turns, one of which fails.
func RunTurns(t testing.TB, m *memory.Memory, session string) {
	t.Helper()
	for _, text := range []string{"first", "second", "third"} {
		RunTurn(t, m, session, text)
	}
	turn, err := m.Begin(t.Context(), session)
	testkit.Must(t, err)
	testkit.Must(t, turn.Add(chat.Text(chat.User, "Geheim-failed")))
	testkit.Must(t, turn.Abort(t.Context(), errors.New("the model said Geheim-reason")))
	RunTurn(t, m, session, "fourth")
}

// ReadAll returns everything that a session holds, or the first error.
func ReadAll(ctx context.Context, m *memory.Memory, session string) (string, error) {
	var out strings.Builder
	w, err := m.Window(ctx, session)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(&out, "window:")
	for _, e := range w.Entries {
		fmt.Fprintf(&out, " %s;", e.Message.Text())
	}
	for e, err := range m.History(ctx, session) {
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&out, "\n%d %s %s: %s", e.Seq, e.Status, e.Message.Role, e.Message.Text())
	}
	for e, err := range m.Events(ctx, session) {
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&out, "\n%s of turn %d: %d messages", e.Kind, e.Turn, e.Messages)
		if e.Kind == store.EventFailed {
			fmt.Fprintf(&out, ", %s", e.Reason)
		}
	}
	summary, err := promptcontext.SummaryOf(ctx, m, session)
	if err != nil {
		return "", err
	}
	variables, err := m.Variables(ctx, session)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(&out, "\nsummary: %s", strings.Join(strings.Fields(summary), " "))
	for _, v := range variables {
		fmt.Fprintf(&out, "\n%s = %s", v.Name, v.Value)
	}
	return out.String(), nil
}

// letters counts a token for each byte.
type letters struct{}

func (letters) Count(text string) int { return len(text) }
