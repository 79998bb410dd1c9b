package transcript_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// TestImport_AnyEvents checks that no events of a transcript, which a client may have
// written, make a session that cannot be used: it is rejected, or its window has no
// divided tool call and is the same after a restart.
func TestImport_AnyEvents(t *testing.T) {
	imported := 0
	rapid.Check(t, func(t *rapid.T) {
		var in memory.Transcript
		turn := int64(1)
		for n := range rapid.IntRange(1, 12).Draw(t, "messages") {
			turn += rapid.Int64Range(0, 1).Draw(t, "next turn")
			add := func(m chat.Message) {
				m.ID = fmt.Sprint(len(in.Entries))
				in.Entries = append(in.Entries, memory.Entry{Message: m, Turn: turn, Status: rapid.SampledFrom([]store.Status{store.InWindow, store.InWindow, store.Failed}).Draw(t, "status")})
			}
			switch rapid.IntRange(0, 4).Draw(t, "kind") {
			case 0:
				id := fmt.Sprint("call", n)
				add(chat.Message{Role: chat.Assistant}.With(chat.ToolCall{ID: id, Name: "f", Arguments: "{}"}))
				add(chat.Message{Role: chat.Tool, ToolCallID: id, Blocks: []chat.Block{{Type: "text", Text: "3"}}})
			case 1:
				add(chat.Text(chat.System, "s"))
			case 2:
				add(chat.Text(chat.Assistant, "a"))
			default:
				add(chat.Text(chat.User, "q"))
			}
		}
		last := int64(len(in.Entries))
		at := int64(1)
		for range rapid.IntRange(0, 4).Draw(t, "events") {
			at += rapid.Int64Range(0, 2).Draw(t, "later")
			from := rapid.Int64Range(0, last).Draw(t, "from")
			in.Events = append(in.Events, memory.Event{Kind: rapid.SampledFrom([]store.EventKind{store.EventFlush, store.EventSet, store.EventRewind, store.EventSummary}).Draw(t, "event"),
				Turn: at, From: from, To: rapid.Int64Range(from, last).Draw(t, "to"), Rewound: rapid.Int64Range(0, at).Draw(t, "rewound")})
		}
		cfg := memory.Config{ID: "m", Counter: runes{}, Policy: rapid.SampledFrom([]spec.Policy{spec.PolicyFlush, spec.PolicyRoundWindow, spec.PolicyUnbounded}).Draw(t, "policy")}
		backend := memory.NewInProcess()
		m, err := memory.New(cfg, backend)
		testkit.Must(t, err)
		err = m.Import(t.Context(), "s", in)
		if invalid := (*memory.TranscriptError)(nil); errors.As(err, &invalid) {
			return
		}
		testkit.Must(t, err)
		imported++
		for _, use := range []func() error{
			func() error { return nil },
			func() error { return m.Append(t.Context(), "s", chat.Text(chat.User, "next")) },
			func() error { return m.Rewind(t.Context(), "s", rapid.Int64Range(1, turn).Draw(t, "rewind")) },
			func() error { return m.Fork(t.Context(), "s", "t", rapid.Int64Range(1, turn).Draw(t, "fork")) },
		} {
			testkit.Must(t, use())
			window, err := m.Window(t.Context(), "s")
			testkit.Must(t, err)
			calls := map[string]bool{}
			for _, e := range window.Entries {
				for _, c := range e.Message.Calls() {
					calls[c.ID] = true
				}
				if e.Message.Role == chat.Tool && !calls[e.Message.ToolCallID] {
					t.Fatalf("the window has the result of %s without its call", e.Message.ToolCallID)
				}
			}
			again, err := memory.New(cfg, backend)
			testkit.Must(t, err)
			reloaded, err := again.Window(t.Context(), "s")
			testkit.Must(t, err)
			if d := cmp.Diff(window, reloaded, cmpopts.EquateEmpty()); d != "" {
				t.Fatalf("after a restart: %s", d)
			}
		}
	})
	if imported < 10 {
		t.Errorf("only %d transcripts were imported", imported)
	}
}
