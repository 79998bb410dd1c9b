package steps

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/internal/tokenizer"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/tool"
	"github.com/qtype-dev/qtype/tool/tooltest"
)

// readTool makes the tool, and a memory with a long message as the second one.
func readTool(t *testing.T) (tool.Tool, *memory.Memory) {
	counter, err := tokenizer.For("o200k_base")
	testkit.Must(t, err)
	m, err := memory.New(memory.Config{ID: "chat", Counter: counter}, memory.NewInProcess())
	testkit.Must(t, err)
	testkit.Must(t, m.Append(t.Context(), "ada/1", chat.Text(chat.User, "hello"), chat.Text(chat.Assistant, strings.Repeat("ü", maxReadText+5))))
	return NewMemoryReadTool(&spec.MemoryTool{ToolBase: spec.ToolBase{ID: "read", Name: "read"}, Read: true}, m), m
}

func TestMemoryReadTool_Contract(t *testing.T) {
	read, _ := readTool(t)
	tooltest.Run(t, tooltest.Case{Context: inSession, Tool: read, Args: map[string]any{"message": int64(1)}})
}

// TestMemoryReadTool_Pages reads a long message, and a message of the active turn.
func TestMemoryReadTool_Pages(t *testing.T) {
	read, m := readTool(t)
	ctx := inSession(t.Context())
	for _, test := range []struct {
		args, want map[string]any
	}{
		{map[string]any{"message": int64(1)}, map[string]any{"content": "hello", "characters": 5}},
		{map[string]any{"message": int64(2)}, map[string]any{"content": strings.Repeat("ü", maxReadText), "characters": maxReadText + 5, "next_offset": maxReadText}},
		{map[string]any{"message": int64(2), "offset": int64(maxReadText)}, map[string]any{"content": "üüüüü", "characters": maxReadText + 5}},
	} {
		got, err := read.Call(ctx, test.args)
		if err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%v: got %.80v, %v", test.args, got, err)
		}
	}
	turn, err := m.Begin(t.Context(), "ada/1")
	testkit.Must(t, err)
	testkit.Must(t, turn.Add(chat.Text(chat.User, "more")))
	inTurn := enterTurn(t.Context(), callContext{session: "ada/1", memory: m, turn: turn})
	if got, err := read.Call(inTurn, map[string]any{"message": int64(3)}); err != nil || got.(map[string]any)["content"] != "more" {
		t.Errorf("got %v, %v", got, err)
	}
	testkit.Must(t, turn.Abort(t.Context(), errors.New("done")))
}

func TestMemoryReadTool_Invalid(t *testing.T) {
	read, _ := readTool(t)
	for want, args := range map[string]map[string]any{
		"the session has no such message; its positions are 1 to 2": {"message": int64(9)},
		"is not a position in the message":                          {"message": int64(1), "offset": int64(6)},
	} {
		if _, err := read.Call(inSession(t.Context()), args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if _, err := read.Call(t.Context(), map[string]any{"message": int64(1)}); err == nil {
		t.Error("called outside of a step")
	}
}
