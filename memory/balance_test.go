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
		m = m.With(chat.ToolCall{ID: id, Name: "find", Arguments: "{}"})
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
		for _, c := range m.Calls() {
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
					testkit.Must(t, m.AppendUnchecked(ctx, "s", msg))
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
	testkit.Must(t, m.AppendUnchecked(t.Context(), "s", chat.Text(chat.User, "q"), callMessage("1", "2"), resultMessage("1"), chat.Text(chat.User, "q"), resultMessage("2")))
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

// drawMalformed draws messages in which calls and results are in any order.
func drawMalformed(t *rapid.T) []chat.Message {
	var msgs []chat.Message
	for i := range rapid.IntRange(1, 12).Draw(t, "messages") {
		msg := chat.Text(chat.User, fmt.Sprint("question ", i))
		switch rapid.IntRange(0, 5).Draw(t, "kind") {
		case 0:
			msg = chat.Text(chat.Assistant, "answer")
		case 1:
			msg = callMessage(fmt.Sprint("a", i), fmt.Sprint("b", i))
		case 2, 3:
			msg = resultMessage(fmt.Sprint(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "call"), rapid.IntRange(max(i-3, 0), i).Draw(t, "of")))
		case 4:
			msg = chat.Text(chat.System, fmt.Sprint("rules ", i))
		}
		msgs = append(msgs, msg)
	}
	return msgs
}

// isBalanced reports whether results directly follow their calls. The calls of the last
// message may be open.
func isBalanced(msgs []chat.Message) bool {
	var open []string
	for _, m := range msgs {
		switch {
		case m.Role == chat.System:
		case m.Role == chat.Tool:
			at := slices.Index(open, m.ToolCallID)
			if at < 0 {
				return false
			}
			open = slices.Delete(open, at, at+1)
		case len(open) > 0:
			return false
		default:
			for _, c := range m.Calls() {
				open = append(open, c.ID)
			}
		}
	}
	return true
}

// TestAppend_Malformed: with every policy, messages that are not balanced are rejected and
// change nothing, and every window of those that are accepted is balanced: whether they are
// added at once, one by one, as a turn, or as a new window.
func TestAppend_Malformed(t *testing.T) {
	for _, row := range spec.Policies() {
		t.Run(string(row.Name), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				m, err := memory.New(memory.Config{ID: "m", Policy: row.Name, Limits: drawLimitsOf(t, row.Name), Counter: runes{}}, memory.NewInProcess())
				testkit.Must(t, err)
				ctx := context.Background()
				var accepted []chat.Message // since the window was replaced
				for range rapid.IntRange(1, 6).Draw(t, "changes") {
					msgs := drawMalformed(t)
					before, err := m.Head(ctx, "s")
					testkit.Must(t, err)
					all := slices.Concat(accepted, msgs)
					switch rapid.SampledFrom([]string{"append", "each", "set"}).Draw(t, "change") {
					case "append":
						err = m.Append(ctx, "s", msgs...)
					case "each":
						msgs = msgs[:1]
						all = slices.Concat(accepted, msgs)
						err = m.Append(ctx, "s", msgs...)
					default:
						all = msgs
						err = m.Set(ctx, "s", msgs...)
					}
					_, rejected := errors.AsType[*memory.BalanceError](err)
					if err != nil && !rejected || rejected == isBalanced(all) {
						t.Fatalf("%v: %v", err, all)
					}
					after, err := m.Head(ctx, "s")
					testkit.Must(t, err)
					if rejected && after.Version != before.Version {
						t.Fatalf("rejected messages changed the session")
					}
					if !rejected {
						accepted = all
					}
					w, err := m.Window(ctx, "s")
					testkit.Must(t, err)
					if !isBalanced(w.Messages()) {
						t.Fatalf("the window is not balanced: %v", w.Messages())
					}
				}
			})
		})
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

// TestBalanceError names the message and the call.
func TestBalanceError(t *testing.T) {
	m := newUnbounded(t, memory.NewInProcess())
	testkit.Must(t, m.Append(t.Context(), "s", chat.Text(chat.User, "q"), callMessage("1")))
	for want, msg := range map[string]chat.Message{
		`memory m, session "s": message 1 (user) follows the tool call "1" (find), which has no result: add its result first`: chat.Text(chat.User, "q"),
		`memory m, session "s": message 1 (tool) is the result of tool call "2", which does not precede it`:                   resultMessage("2"),
	} {
		if err := m.Append(t.Context(), "s", msg); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	testkit.Must(t, m.Append(t.Context(), "s", resultMessage("1")))
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
