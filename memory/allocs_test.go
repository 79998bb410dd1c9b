//go:build !race

package memory_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// appendsOfARun is how many messages are said, and windows read, between two
// looks at the allocations.
const appendsOfARun = 64

// TestNoAllocations: saying a message and reading the window makes nothing but
// what the history keeps, and that comes from chunks: for 64 messages one chunk of
// entries and one of ids, and less than one each of places, events and window.
func TestNoAllocations(t *testing.T) {
	configs := []memory.Config{
		{Policy: spec.PolicyMessageWindow, MaxMessages: 10},
		{Policy: spec.PolicyTokenWindow, MaxTokens: 300},
		{Policy: spec.PolicyFlush, TokenLimit: 60_000, FlushSize: 20_000}, // each flush writes a line on why
		{Policy: spec.PolicyUnbounded},
	}
	for _, cfg := range configs {
		cfg.ID, cfg.Counter = "m", chars4{}
		t.Run(string(cfg.Policy), func(t *testing.T) {
			m, err := memory.New(cfg, memory.NewInProcess())
			must(t, err)
			said, spoken := m.Session("append"), m.Session("say")
			if n := allocationsOfARun(t, said, appendOne, readBoth); n > 5 {
				t.Errorf("%d appends and reads make %v allocations, want at most 5", appendsOfARun, n)
			}
			if n := allocationsOfARun(t, spoken, sayOne, readBoth); n > 6 { // one chunk more, of blocks
				t.Errorf("saying and reading %d texts makes %v allocations, want at most 6", appendsOfARun, n)
			}
		})
	}
}

// TestNoAllocationsOfWindows is the same where only windows are kept: once a
// window is full, nothing at all is made.
func TestNoAllocationsOfWindows(t *testing.T) {
	m, err := memory.New(memory.Config{ID: "m", Policy: spec.PolicyMessageWindow, MaxMessages: 10, Counter: chars4{}}, memory.NewInProcessWithoutHistory())
	must(t, err)
	if n := allocationsOfARun(t, m.Session("say"), sayOne, readMessages); n != 0 {
		t.Errorf("%d messages and reads make %v allocations, want none", appendsOfARun, n)
	}
}

type (
	appendRequest func(ctx context.Context, s *memory.Session, i int) error
	reading       func(ctx context.Context, s *memory.Session, b *memory.WindowBuffer) (int, error)
)

// allocationsOfARun is how often memory was taken, on average, while so many
// messages were said and the window was read after each.
func allocationsOfARun(t *testing.T, s *memory.Session, say appendRequest, read reading) float64 {
	ctx := context.Background()
	var b memory.WindowBuffer
	run := func() {
		for i := range appendsOfARun {
			if err := say(ctx, s, i); err != nil {
				t.Fatal(err)
			}
			if n, err := read(ctx, s, &b); err != nil || n == 0 {
				t.Fatalf("%d messages, %v", n, err)
			}
		}
	}
	for range 10 {
		run() // chunks have their length by now
	}
	return testing.AllocsPerRun(100, run)
}

func readMessages(ctx context.Context, s *memory.Session, b *memory.WindowBuffer) (int, error) {
	msgs, err := s.Messages(ctx, b)
	return len(msgs), err
}

func readBoth(ctx context.Context, s *memory.Session, b *memory.WindowBuffer) (int, error) {
	w, err := s.Window(ctx)
	if err != nil {
		return 0, err
	}
	n, err := readMessages(ctx, s, b)
	if n != len(w.Entries) {
		return 0, fmt.Errorf("%d messages, %d entries", n, len(w.Entries))
	}
	return n, err
}

// said are messages that were made beforehand.
var said = []chat.Message{
	{Role: chat.User, Blocks: []chat.Block{{Type: "text", Text: "what is the weather like in the city of which I told you"}}},
	{Role: chat.Assistant, ToolCalls: []chat.ToolCall{{ID: "c", Name: "weather", Arguments: `{"city":"Oslo"}`}}},
	{Role: chat.Tool, ToolCallID: "c", Blocks: []chat.Block{{Type: "text", Text: "rain"}}},
	{Role: chat.Assistant, Blocks: []chat.Block{{Type: "text", Text: "it rains"}}},
}

func appendOne(ctx context.Context, s *memory.Session, i int) error {
	return s.Append(ctx, said[i%len(said)])
}

func sayOne(ctx context.Context, s *memory.Session, i int) error {
	return s.AppendText(ctx, said[i%2*3].Role, said[i%2*3].Blocks[0].Text)
}
