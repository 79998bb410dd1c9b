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
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// drawConfig is a memory with one of the policies and limits of any size.
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

// drawTranscript is a conversation in which the results of tools follow their calls.
func drawTranscript(t *rapid.T) []chat.Message {
	var all []chat.Message
	var waiting []chat.ToolCall
	for i := range rapid.IntRange(0, 40).Draw(t, "messages") {
		text := strings.Repeat("ü", rapid.IntRange(0, 60).Draw(t, "size")) + fmt.Sprint(i)
		if len(waiting) > 0 {
			m := chat.Text(chat.Tool, text)
			m.ToolCallID, waiting = waiting[0].ID, waiting[1:]
			all = append(all, m)
			continue
		}
		m := chat.Text(rapid.SampledFrom([]chat.Role{chat.User, chat.User, chat.Assistant, chat.Assistant, chat.System}).Draw(t, "role"), text)
		switch m.Role {
		case chat.System: // often the one that holds already
			m.Blocks[0].Text = rapid.SampledFrom([]string{"a", "bb"}).Draw(t, "system")
		case chat.Assistant:
			for j := range rapid.IntRange(0, 2).Draw(t, "calls") {
				m.ToolCalls = append(m.ToolCalls, chat.ToolCall{ID: fmt.Sprint(i, "-", j), Name: "f", Arguments: "{}"})
			}
			waiting = m.ToolCalls
		}
		all = append(all, m)
	}
	return all
}

// TestReplayIsTheMemory: whatever the policy and its limits, after each line the
// window that is told is what a memory holds after the same appends, what left is
// told, once unless it came back, and history counts what was said.
func TestReplayIsTheMemory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg, said := drawConfig(t), drawTranscript(t)
		var in, out bytes.Buffer
		for _, m := range said {
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
		if len(lines) != len(said)+1 {
			t.Fatalf("%d lines tell of %d messages", len(lines)-1, len(said))
		}
		left, chatted := 0, 0
		for i, m := range said {
			if m.Role != chat.System {
				chatted++
			}
			if err := mem.Append(context.Background(), "s", m); err != nil {
				t.Fatal(err)
			}
			evicted, held := compare(t, mem, lines[i])
			// Once a round is over n_rounds, max_context may have room again for
			// what it had cut: that comes back, and may leave again.
			back := cfg.Policy == spec.PolicyRoundWindow && left+evicted+held > chatted
			if left += evicted; left+held != chatted && !back {
				t.Fatalf("of %d messages %d were told as evicted and %d are in the window", chatted, left, held)
			}
		}
	})
}

// compare holds one line of a replay against the memory. It tells how many
// messages the line says left, and how many are in the window, the system
// message aside.
func compare(t *rapid.T, mem *memory.Memory, line string) (evicted, held int) {
	var told struct {
		Window       []json.RawMessage
		Evicted      []json.RawMessage
		WindowTokens int `json:"window_tokens"`
		History      int64
	}
	if err := json.Unmarshal([]byte(line), &told); err != nil {
		t.Fatal(err)
	}
	w, err := mem.Window(context.Background(), "s")
	if err != nil {
		t.Fatal(err)
	}
	want, got := []string{}, []string{}
	for _, m := range w.Messages() {
		want = append(want, string(chat.OpenAI(m)))
	}
	for _, raw := range told.Window {
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
		got = append(got, string(chat.OpenAI(m)))
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("the memory's window, and the one told: %s", d)
	}
	var history int64
	for e, err := range mem.History(context.Background(), "s") {
		if err != nil {
			t.Fatal(err)
		}
		if e.Status != memory.Failed {
			history++
		}
	}
	if told.WindowTokens != w.Tokens || told.History != history {
		t.Fatalf("told are %d tokens and %d messages said, they are %d and %d", told.WindowTokens, told.History, w.Tokens, history)
	}
	return len(told.Evicted), len(w.Entries)
}
