package explain

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// session is a random conversation.
type session struct {
	*rapid.T
	m *memory.Memory
	n int
}

// text returns a message with a new text of random size.
func (s *session) text(role chat.Role) chat.Message {
	s.n++
	return chat.Text(role, fmt.Sprint(s.n, strings.Repeat("x", rapid.IntRange(0, 30).Draw(s.T, "size"))))
}

// turn adds a question and an answer, with a tool call or not, or fails.
func (s *session) turn() {
	ctx := s.Context()
	turn, err := s.m.Begin(ctx, "s")
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = turn.Abort(ctx, errors.New("no answer")) }() // has no effect after Commit
	if rapid.IntRange(0, 5).Draw(s.T, "system") == 0 {
		_ = turn.Add(s.text(chat.System))
	}
	if turn.Add(s.text(chat.User)) != nil {
		return
	}
	budget := memory.Budget{Model: "small", ContextWindow: rapid.IntRange(60, 400).Draw(s.T, "window"), Answer: 20}
	if _, err := turn.Fit(budget); err != nil || rapid.IntRange(0, 5).Draw(s.T, "fails") == 0 {
		return
	}
	if rapid.Bool().Draw(s.T, "call") {
		call := s.text(chat.Assistant)
		call = call.With(chat.ToolCall{ID: fmt.Sprint("c", s.n), Name: "find"})
		result := s.text(chat.Tool)
		result.ToolCallID = call.Calls()[0].ID
		if turn.Add(call) != nil || turn.Add(result) != nil {
			return
		}
		if _, err := turn.Fit(budget); err != nil {
			return
		}
	}
	if turn.Add(s.text(chat.Assistant)) == nil {
		_ = turn.Commit(ctx)
	}
}

// revise changes an earlier part of the conversation, if there is one to change.
func (s *session) revise() {
	ctx := s.Context()
	info, err := s.m.Info(ctx, "s")
	if err != nil {
		s.Fatal(err)
	}
	if info.Messages == 0 {
		return
	}
	at := rapid.Int64Range(1, info.Messages).Draw(s.T, "at")
	switch rapid.IntRange(0, 6).Draw(s.T, "revision") {
	case 0:
		_ = s.m.Rewind(ctx, "s", rapid.Int64Range(1, info.Turns).Draw(s.T, "turn"))
	case 1:
		_ = s.m.Edit(ctx, "s", at, s.text(chat.User))
	case 2:
		_ = s.m.Delete(ctx, "s", at)
	case 3:
		_ = s.m.Regenerate(ctx, "s", at)
	case 4:
		_ = s.m.Set(ctx, "s", s.text(chat.User), s.text(chat.Assistant))
	case 5:
		_ = s.m.Pin(ctx, "s", at)
	case 6:
		_ = s.m.Unpin(ctx, "s", at)
	}
}

// TestTurn_EqualsNaive checks that a report does not depend on what was read of the session.
func TestTurn_EqualsNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := rapid.SampledFrom([]memory.Config{
			{Policy: spec.PolicyMessageWindow, Limits: memory.Limits{"max_messages": 4}},
			{Policy: spec.PolicyTokenWindow, Limits: memory.Limits{"max_tokens": 120}},
			{Policy: spec.PolicyFlush, Limits: memory.Limits{"token_limit": 300, "chat_history_token_ratio": 0.5, "token_flush_size": 20}},
			{Policy: spec.PolicyRoundWindow, Limits: memory.Limits{"n_rounds": 2, "max_context": 200}},
			{Policy: spec.PolicyUnbounded},
		}).Draw(t, "policy")
		limits.ID, limits.Counter = "m", length{}
		m, err := memory.New(limits, memory.NewInProcess())
		if err != nil {
			t.Fatal(err)
		}
		s := &session{T: t, m: m}
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			if rapid.IntRange(0, 3).Draw(t, "step") == 0 {
				s.revise()
			} else {
				s.turn()
			}
		}
		info, err := m.Info(t.Context(), "s")
		if err != nil {
			t.Fatal(err)
		}
		for turn := int64(1); turn <= info.Turns; turn++ {
			want, err := naiveTurn(t.Context(), m, "s", turn)
			if err != nil {
				t.Fatal(err)
			}
			want.addPrefix() // it is a part of the event
			got, err := Turn(t.Context(), m, "s", turn)
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("turn %d: %v\ngot  %+v\nwant %+v", turn, err, got, want)
			}
			if messages, tokens := sumOf(got.Sent); messages != got.Messages || tokens != got.Tokens && !got.Call.Cut {
				t.Fatalf("turn %d: the list of sent messages has %d, %d tokens; the call had %d, %d tokens", turn, messages, tokens, got.Messages, got.Tokens)
			}
		}
	})
}

// length counts characters.
type length struct{}

func (length) Count(text string) int { return len(text) }

func sumOf(sent []Message) (messages, tokens int) {
	for _, m := range sent {
		messages, tokens = messages+1, tokens+m.Tokens
	}
	return messages, tokens
}
