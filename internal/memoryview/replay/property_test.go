package replay_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/internal/memoryview/replay"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// drawConfig draws a policy and its limits.
func drawConfig(t *rapid.T) memory.Config {
	row := rapid.SampledFrom(spec.Policies()).Draw(t, "policy")
	cfg := memory.Config{ID: "m", Counter: runes{}, Policy: row.Name, Limits: memory.Limits{}}
	for _, l := range row.Limits {
		if l.Unit == spec.UnitShare {
			cfg.Limits[l.Key] = float64(rapid.IntRange(1, 100).Draw(t, l.Key)) / 100
		} else {
			cfg.Limits[l.Key] = float64(rapid.IntRange(1, 300).Draw(t, l.Key))
		}
	}
	if row.Supports("keep_system_first") {
		cfg.KeepSystemFirst = rapid.Bool().Draw(t, "keep_system_first")
	}
	return cfg
}

// drawTranscript draws a conversation in which tool results follow their calls.
func drawTranscript(t *rapid.T) []chat.Message {
	var all []chat.Message
	var pending []chat.ToolCall
	for i := range rapid.IntRange(0, 40).Draw(t, "messages") {
		text := strings.Repeat("ü", rapid.IntRange(0, 60).Draw(t, "size")) + fmt.Sprint(i)
		if len(pending) > 0 {
			m := chat.Text(chat.Tool, text)
			m.ToolCallID, pending = pending[0].ID, pending[1:]
			all = append(all, m)
			continue
		}
		m := chat.Text(rapid.SampledFrom([]chat.Role{chat.User, chat.User, chat.Assistant, chat.Assistant, chat.System}).Draw(t, "role"), text)
		switch m.Role {
		case chat.System: // often equal to the current one
			m.Blocks[0].Text = rapid.SampledFrom([]string{"a", "bb"}).Draw(t, "system")
		case chat.Assistant:
			for j := range rapid.IntRange(0, 2).Draw(t, "calls") {
				m = m.With(chat.ToolCall{ID: fmt.Sprint(i, "-", j), Name: "f", Arguments: "{}"})
			}
			pending = m.Calls()
		}
		all = append(all, m)
	}
	return all
}

// TestRun_MatchesMemory checks, for any policy, that each line has the window of a
// memory after the same appends, that evicted messages are reported once unless
// they returned, and that history counts all messages.
func TestRun_MatchesMemory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg, messages := drawConfig(t), drawTranscript(t)
		var in, out bytes.Buffer
		for _, m := range messages {
			in.Write(append(chat.OpenAI(m), '\n'))
		}
		if err := replay.Run(context.Background(), cfg, &in, &out, replay.Options{Each: true, Format: replay.JSON}); err != nil {
			t.Fatal(err)
		}
		mem, err := memory.New(cfg, memory.NewInProcess())
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.SplitAfter(out.String(), "\n")
		if len(lines) != len(messages)+1 {
			t.Fatalf("%d lines for %d messages", len(lines)-1, len(messages))
		}
		left, chatted := 0, 0
		for i, m := range messages {
			if m.Role != chat.System {
				chatted++
			}
			if err := mem.Append(context.Background(), "s", m); err != nil {
				t.Fatal(err)
			}
			evicted, inWindow := compare(t, mem, lines[i])
			// After the eviction of a round, truncated messages may fit into max_context
			// again. They return, and may be evicted again.
			returned := cfg.Policy == spec.PolicyRoundWindow && left+evicted+inWindow > chatted
			if left += evicted; left+inWindow != chatted && !returned {
				t.Fatalf("of %d messages, %d were reported as evicted and %d are in the window", chatted, left, inWindow)
			}
		}
	})
}

// compare compares a line with the memory. It returns how many messages the line
// reports as evicted, and how many are in the window, without the system message.
func compare(t *rapid.T, mem *memory.Memory, line string) (evicted, inWindow int) {
	var got struct {
		Window       []json.RawMessage
		Evicted      []json.RawMessage
		WindowTokens int `json:"window_tokens"`
		History      int64
	}
	if err := json.Unmarshal([]byte(line), &got); err != nil {
		t.Fatal(err)
	}
	w, err := mem.Window(context.Background(), "s")
	if err != nil {
		t.Fatal(err)
	}
	want, window := []string{}, []string{}
	for _, m := range w.Messages() {
		want = append(want, string(chat.OpenAI(m)))
	}
	for _, raw := range got.Window {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(raw, &fields); err != nil {
			t.Fatal(err)
		}
		delete(fields, "tokens")
		bare, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		m, err := chat.ParseOpenAI(bare)
		if err != nil {
			t.Fatal(err)
		}
		window = append(window, string(chat.OpenAI(m)))
	}
	if d := cmp.Diff(want, window); d != "" {
		t.Fatalf("the memory's window, and that of the line: %s", d)
	}
	var history int64
	for e, err := range mem.History(context.Background(), "s") {
		if err != nil {
			t.Fatal(err)
		}
		if e.Status != store.Failed {
			history++
		}
	}
	if got.WindowTokens != w.Tokens || got.History != history {
		t.Fatalf("got %d tokens and %d messages, want %d and %d", got.WindowTokens, got.History, w.Tokens, history)
	}
	return len(got.Evicted), len(w.Entries)
}
