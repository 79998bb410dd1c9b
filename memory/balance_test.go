package memory_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// callMessage is a message of an assistant that calls tools.
func callMessage(ids ...string) chat.Message {
	m := chat.Message{Role: chat.Assistant}
	for _, id := range ids {
		m.ToolCalls = append(m.ToolCalls, chat.ToolCall{ID: id, Name: "find", Arguments: "{}"})
	}
	return m
}

func resultMessage(id string) chat.Message {
	m := chat.Text(chat.Tool, "found")
	m.ToolCallID, m.Name = id, "find"
	return m
}

// checkBalanced fails unless each tool call is directly followed by its results.
func checkBalanced(t interface{ Fatalf(string, ...any) }, msgs []chat.Message) {
	var open []string
	for i, m := range msgs {
		if m.Role == chat.Tool {
			at := slices.Index(open, m.ToolCallID)
			if at < 0 {
				t.Fatalf("message %d is a result without its call: %v", i, msgs)
			}
			open = slices.Delete(open, at, at+1)
			continue
		}
		if len(open) > 0 {
			t.Fatalf("message %d follows a call without its result: %v", i, msgs)
		}
		for _, c := range m.ToolCalls {
			open = append(open, c.ID)
		}
	}
	if len(open) > 0 {
		t.Fatalf("the last call has no result: %v", msgs)
	}
}

// TestFit_MalformedTranscript: a session in which tool calls and results are not in pairs can
// be continued: each request is balanced, with every policy. This is what another program
// or an older version may have stored.
func TestFit_MalformedTranscript(t *testing.T) {
	for _, row := range spec.Policies() {
		t.Run(string(row.Name), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				limits := memory.Limits{}
				for _, l := range row.Limits {
					limits[l.Key] = float64(rapid.IntRange(1, 200).Draw(t, l.Key))
				}
				if _, ok := limits["chat_history_token_ratio"]; ok {
					limits["chat_history_token_ratio"] = 0.7
				}
				m, err := memory.New(memory.Config{ID: "m", Policy: row.Name, Limits: limits, Counter: runes{}}, memory.NewInProcess())
				testkit.Must(t, err)
				ctx := context.Background()
				for i := range rapid.IntRange(1, 12).Draw(t, "messages") {
					msg := chat.Text(chat.User, fmt.Sprint("question ", i))
					switch rapid.IntRange(0, 4).Draw(t, "kind") {
					case 0:
						msg = chat.Text(chat.Assistant, "answer")
					case 1:
						msg = callMessage(fmt.Sprint("a", i), fmt.Sprint("b", i))
					case 2, 3:
						msg = resultMessage(fmt.Sprint(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "call"), rapid.IntRange(0, i).Draw(t, "of")))
					}
					testkit.Must(t, m.Append(ctx, "s", msg))
				}
				for range 2 {
					err := m.Turn(ctx, "s", func(turn *memory.Turn) error {
						testkit.Must(t, turn.Add(chat.Text(chat.User, "q")))
						sent, err := turn.Fit(memory.Budget{Model: "small", ContextWindow: 10_000})
						if err != nil {
							return err
						}
						checkBalanced(t, sent)
						return turn.Add(chat.Text(chat.Assistant, "a"))
					})
					var empty *memory.EmptyWindowError
					if err != nil && !errors.As(err, &empty) {
						t.Fatalf("%v", err)
					}
				}
			})
		})
	}
}

// TestRepairs counts the changes of a request, and reports them once.
func TestRepairs(t *testing.T) {
	m := newUnbounded(t, memory.NewInProcess())
	testkit.Must(t, m.Append(t.Context(), "s", chat.Text(chat.User, "q"), callMessage("1", "2"), resultMessage("1"), chat.Text(chat.User, "q"), resultMessage("2")))
	for number, want := range []bool{true, false} {
		testkit.Must(t, m.Turn(t.Context(), "s", func(turn *memory.Turn) error {
			testkit.Must(t, turn.Add(chat.Text(chat.User, "next")))
			sent, err := turn.Fit(memory.Budget{})
			testkit.Must(t, err)
			if got := sent[3].Text(); got != chat.MissingResult || sent[3].ToolCallID != "2" {
				t.Errorf("turn %d: the missing result is %q", number, got)
			}
			if n, isNew := turn.Repairs(); n != 2 || isNew != want {
				t.Errorf("turn %d: %d repairs, new: %t", number, n, isNew)
			}
			return turn.Add(chat.Text(chat.Assistant, "a"))
		}))
	}
}

// TestFit_OwnResult: a result without a call that the turn itself adds is not left out.
func TestFit_OwnResult(t *testing.T) {
	m := newUnbounded(t, memory.NewInProcess())
	testkit.Must(t, m.Append(t.Context(), "s", chat.Text(chat.User, "q"), chat.Text(chat.Assistant, "a")))
	testkit.Must(t, m.Turn(t.Context(), "s", func(turn *memory.Turn) error {
		testkit.Must(t, turn.Add(resultMessage("1")))
		if sent, err := turn.Fit(memory.Budget{}); err != nil || len(sent) != 3 {
			t.Errorf("got %d messages, %v", len(sent), err)
		}
		return nil
	}))
}

// TestFit_RepairsFit: the results that are added count.
func TestFit_RepairsFit(t *testing.T) {
	m := newUnbounded(t, memory.NewInProcess())
	testkit.Must(t, m.Append(t.Context(), "s", callMessage("1")))
	testkit.Must(t, m.Turn(t.Context(), "s", func(turn *memory.Turn) error {
		testkit.Must(t, turn.Add(chat.Text(chat.User, "q")))
		if sent, err := turn.Fit(memory.Budget{ContextWindow: 60}); err != nil || len(sent) != 1 {
			t.Errorf("got %d messages, %v, want the newest one", len(sent), err)
		}
		return nil
	}))
}
