package explain_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/memoryview/explain"
	"github.com/qtype-dev/qtype/internal/memoryview/replay"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec/chat"
)

// runes counts characters.
type runes struct{}

func (runes) Count(text string) int { return len([]rune(text)) }

// newSession returns a memory with a chat share of 100 characters. Its turns have
// a question of 22, an answer of 22 and a system message of 17, in a context window
// of 120.
func newSession(t *testing.T) *memory.Memory {
	m, err := memory.New(memory.Config{ID: "m", Limits: memory.Limits{"token_limit": 200, "chat_history_token_ratio": 0.5, "token_flush_size": 20}, Counter: runes{}}, memory.NewInProcess())
	testkit.Must(t, err)
	testkit.Must(t, m.Append(t.Context(), "s", chat.Text(chat.User, "appended")))
	for i := range 4 {
		turn, err := m.Begin(t.Context(), "s")
		testkit.Must(t, err)
		turn.System("be brief")
		testkit.Must(t, turn.Add(chat.Text(chat.User, strings.Repeat("q", 15))))
		room := 120
		if i == 3 {
			room = 80
		}
		_, err = turn.Fit(memory.Budget{Model: "small", ContextWindow: room, Answer: 20})
		testkit.Must(t, err)
		if i == 1 {
			testkit.Must(t, turn.Abort(t.Context(), errors.New("no answer")))
			continue
		}
		testkit.Must(t, turn.Add(chat.Text(chat.Assistant, strings.Repeat("a", 15))))
		testkit.Must(t, turn.Commit(t.Context()))
	}
	return m
}

func TestTurn(t *testing.T) {
	m := newSession(t)
	for turn, want := range map[int64]string{
		1: "turn 1 called no model: its messages were appended\n",
		2: "turn 2 sent 2 messages, 37 tokens, to small (context window 120, 20 for the answer)\npreceded by a system message of 17 tokens\n",
		3: "turn 3 sent 3 messages, 71 tokens, to small (context window 120, 20 for the answer)\npreceded by a system message of 17 tokens\n" +
			"the request differs from the request before at byte 8, after 17 tokens: message 1 is not sent any\n  more; a cache of the provider does not have the 37 tokens that followed\n" +
			"the turn failed: no answer\nleft out: message 1: over the context window of 120 in this call\n",
		0: "turn 5 sent 1 message, 22 tokens, to small (context window 80, 20 for the answer)\npreceded by a system message of 17 tokens\n" +
			"the request differs from the request before at byte 23, after 39 tokens: message 3 is not sent any\n  more; a cache of the provider does not have the 49 tokens that followed\n" +
			"left out: messages 1 to 3, flushed in turn 4: 113 tokens exceeded the chat share of 100 (token_limit\n" +
			"          200 × chat_history_token_ratio 0.5); at least 20 had to leave, 64 left, to the start of a\n          round\n" +
			"left out: message 4, added in turn 3, which failed: no answer\n" +
			"left out: messages 5 to 6: over the context window of 80 in this call\n",
	} {
		r, err := explain.Turn(t.Context(), m, "s", turn)
		testkit.Must(t, err)
		var b strings.Builder
		testkit.Must(t, r.Write(&b))
		if b.String() != want {
			t.Errorf("got %s\nwant %s", b.String(), want)
		}
	}
	var none *explain.NoTurnError
	if _, err := explain.Turn(t.Context(), m, "s", 9); !errors.As(err, &none) || err.Error() != `session "s" has no turn 9; its turns are 1 to 5` {
		t.Errorf("got %v", err)
	}
	if _, err := explain.Turn(t.Context(), m, "unknown", 0); err == nil || err.Error() != `session "unknown" has no turns yet` {
		t.Errorf("got %v", err)
	}
}

// TestTurn_FailedOverLimit checks that a failed turn, which evicts nothing, reports
// what its policy left out.
func TestTurn_FailedOverLimit(t *testing.T) {
	m, err := memory.New(memory.Config{ID: "m", Policy: "message_window", Limits: memory.Limits{"max_messages": 2}, Counter: runes{}}, memory.NewInProcess())
	testkit.Must(t, err)
	testkit.Must(t, m.Append(t.Context(), "s", chat.Text(chat.User, "q"), chat.Text(chat.Assistant, "a")))
	turn, err := m.Begin(t.Context(), "s")
	testkit.Must(t, err)
	testkit.Must(t, turn.Add(chat.Text(chat.User, "r")))
	_, err = turn.Fit(memory.Budget{Model: "small"})
	testkit.Must(t, err)
	testkit.Must(t, turn.Abort(t.Context(), errors.New("no answer")))
	r, err := explain.Turn(t.Context(), m, "s", 0)
	testkit.Must(t, err)
	var b strings.Builder
	testkit.Must(t, r.Write(&b))
	want := "turn 2 sent 2 messages, 21 tokens, to small\nthe turn failed: no answer\n" +
		"left out: message 1: over the policy's limit in this call; not evicted, because the turn failed\n"
	if b.String() != want {
		t.Errorf("got %s\nwant %s", b.String(), want)
	}
}

// TestTurn_Omitted checks that messages that gave way to the question of the turn are reported.
func TestTurn_Omitted(t *testing.T) {
	m, err := memory.New(memory.Config{ID: "m", Policy: "message_window", Limits: memory.Limits{"max_messages": 3}, Counter: runes{}}, memory.NewInProcess())
	testkit.Must(t, err)
	turn, err := m.Begin(t.Context(), "s")
	testkit.Must(t, err)
	testkit.Must(t, turn.Add(chat.Text(chat.User, "q")))
	for _, id := range []string{"a", "b"} {
		_, err := turn.Fit(memory.Budget{Model: "small"})
		testkit.Must(t, err)
		result := chat.Text(chat.Tool, "r")
		result.ToolCallID = id
		testkit.Must(t, turn.Add(chat.Message{Role: chat.Assistant}.With(chat.ToolCall{ID: id, Name: "f"}), result))
	}
	_, err = turn.Fit(memory.Budget{Model: "small"})
	testkit.Must(t, err)
	testkit.Must(t, turn.Add(chat.Text(chat.Assistant, "answer")))
	testkit.Must(t, turn.Commit(t.Context()))
	r, err := explain.Turn(t.Context(), m, "s", 0)
	testkit.Must(t, err)
	var b strings.Builder
	testkit.Must(t, r.Write(&b))
	want := "turn 1 sent 3 messages, 50 tokens, to small\ncall 3 differs from the request before at byte 1, after 8 tokens: message 2 is not sent any more; a\n  cache of the provider does not have the 42 tokens that followed\nthis was the last of 3 calls\n" +
		"left out: messages 2 to 3: over the policy's limit in this call; the question of the turn stays\n"
	if b.String() != want {
		t.Errorf("got %s\nwant %s", b.String(), want)
	}
}

// TestExport checks that an export can be replayed.
func TestExport(t *testing.T) {
	m := newSession(t)
	var out, all, again strings.Builder
	_, err := replay.Export(t.Context(), m, "s", &out, false)
	testkit.Must(t, err)
	_, err = replay.Export(t.Context(), m, "s", &all, true)
	testkit.Must(t, err)
	if n, with := strings.Count(out.String(), "\n"), strings.Count(all.String(), "\n"); n != 7 || with != 8 {
		t.Errorf("%d lines, %d with the failed turn", n, with)
	}
	cfg := memory.Config{ID: "m", Policy: "unbounded", Counter: runes{}}
	testkit.Must(t, replay.Run(t.Context(), cfg, strings.NewReader(out.String()), &again, replay.Options{}))
	if !strings.Contains(again.String(), "7 messages so far") {
		t.Errorf("replayed: %s", again.String())
	}
}

// TestTurn_Rewound checks that messages that left with their turns are listed with
// the reason, and that those that returned are listed as sent.
func TestTurn_Rewound(t *testing.T) {
	m, err := memory.New(memory.Config{ID: "m", Policy: "message_window", Limits: memory.Limits{"max_messages": 3}, Counter: runes{}}, memory.NewInProcess())
	testkit.Must(t, err)
	ask := func(question string) { takeTurn(t, m, question) }
	ask("1")
	ask("2")
	testkit.Must(t, m.Rewind(t.Context(), "s", 2))
	ask("3")
	r, err := explain.Turn(t.Context(), m, "s", 0)
	testkit.Must(t, err)
	var b strings.Builder
	testkit.Must(t, r.Write(&b))
	want := "turn 4 sent 3 messages, 29 tokens, to small\nthe request differs from the request before at byte 2, after 21 tokens: message 3 is not sent any\n  more; a cache of the provider does not have the 8 tokens that followed\nleft out: messages 3 to 4: turn 2 and later ones were rewound in turn 3\n"
	if b.String() != want {
		t.Errorf("got %s\nwant %s", b.String(), want)
	}
}

// TestTurn_Revised checks that a message that was edited is listed with its new text from
// then on, and that a deleted one is listed with the reason.
func TestTurn_Revised(t *testing.T) {
	m, err := memory.New(memory.Config{ID: "m", Policy: "unbounded", Counter: runes{}}, memory.NewInProcess())
	testkit.Must(t, err)
	ask := func(question string) { takeTurn(t, m, question) }
	ask("1")
	testkit.Must(t, m.Edit(t.Context(), "s", 1, chat.Text(chat.User, "one")))
	testkit.Must(t, m.Delete(t.Context(), "s", 2))
	ask("2")
	testkit.Must(t, m.Regenerate(t.Context(), "s", 4)) // the edit of an earlier message stays
	ask("2")
	testkit.Must(t, m.Rewind(t.Context(), "s", 2)) // this undoes it
	ask("2")
	for turn, want := range map[int64]string{
		1: "turn 1 sent 1 message, 8 tokens, to small\n",
		2: "turn 2 called no model: message 1 was edited\n",
		3: "turn 3 called no model: message 2 was deleted\n",
		4: "turn 4 sent 2 messages, 18 tokens, to small\nthe request differs from the request before at byte 0, after 0 tokens: message 1 has another text; a\n  cache of the provider does not have the 8 tokens that followed\nmessage 1 was sent with its new text, message 3\nleft out: message 2: deleted in turn 3\n",
		6: "turn 6 sent 2 messages, 18 tokens, to small\nthe request begins with the whole request before: 18 tokens\nmessage 1 was sent with its new text, message 3\nleft out: message 2: deleted in turn 3\n" +
			"left out: messages 4 to 5: turn 4 and later ones were rewound in turn 5\n",
		8: "turn 8 sent 3 messages, 29 tokens, to small\nthe request differs from the request before at byte 0, after 0 tokens: message 1 has another text; a\n  cache of the provider does not have the 18 tokens that followed\nleft out: messages 4 to 5: turn 4 and later ones were rewound in turn 5\n" +
			"left out: messages 6 to 7: turn 2 and later ones were rewound in turn 7\n",
	} {
		r, err := explain.Turn(t.Context(), m, "s", turn)
		testkit.Must(t, err)
		var b strings.Builder
		testkit.Must(t, r.Write(&b))
		if b.String() != want {
			t.Errorf("got %s\nwant %s", b.String(), want)
		}
	}
}

// TestTurn_Shortened checks that results that were sent in a short form are reported.
func TestTurn_Shortened(t *testing.T) {
	m, err := memory.New(memory.Config{ID: "m", Policy: "token_window", Limits: memory.Limits{"max_tokens": 500}, Counter: runes{},
		Compact: memory.Compaction{ToolResults: 200}}, memory.NewInProcess())
	testkit.Must(t, err)
	result := chat.Text(chat.Tool, strings.Repeat("r", 600))
	result.ToolCallID = "a"
	turn, err := m.Begin(t.Context(), "s")
	testkit.Must(t, err)
	testkit.Must(t, turn.Add(chat.Text(chat.User, "q"), chat.Message{Role: chat.Assistant}.With(chat.ToolCall{ID: "a", Name: "f"}), result,
		chat.Text(chat.Assistant, "looking")))
	sent, err := turn.Fit(memory.Budget{Model: "small"})
	testkit.Must(t, err)
	testkit.Must(t, turn.Commit(t.Context()))
	r, err := explain.Turn(t.Context(), m, "s", 0)
	testkit.Must(t, err)
	var b strings.Builder
	testkit.Must(t, r.Write(&b))
	if want := "shortened: the tool results 3, 616 tokens as a whole (shorten_tool_results)\n"; !strings.HasSuffix(b.String(), want) || len(r.Missing) > 0 {
		t.Errorf("got %s, want %s", b.String(), want)
	}
	tokens := 0
	for _, msg := range sent {
		tokens += m.Tokens(msg)
	}
	if r.Tokens != tokens || !r.Sent[2].Shortened || r.Sent[2].Tokens != 616 {
		t.Errorf("sent %+v, %d tokens, want %d", r.Sent, r.Tokens, tokens)
	}
}

// takeTurn adds a question to session s, and an answer.
func takeTurn(t *testing.T, m *memory.Memory, question string) {
	t.Helper()
	testkit.Must(t, m.Turn(t.Context(), "s", func(turn *memory.Turn) error {
		testkit.Must(t, turn.Add(chat.Text(chat.User, question)))
		_, err := turn.Fit(memory.Budget{Model: "small"})
		return errors.Join(err, turn.Add(chat.Text(chat.Assistant, "a")))
	}))
}
