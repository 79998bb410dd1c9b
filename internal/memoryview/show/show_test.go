package show_test

import (
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/memoryview/show"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

func TestPrinter_Message(t *testing.T) {
	for _, c := range []struct {
		name string
		m    chat.Message
		want string
	}{
		{"plain", chat.Text(chat.User, "Where is my parcel?"), "user          Where is my parcel?                   1,208"},
		{"too long", chat.Text(chat.User, "one two three four five six seven eight"), "user          one two three four five six seven ei… 1,208"},
		{"lines", chat.Text(chat.User, "one\n\n two\tthree"), "user          one two three                         1,208"},
		{"wide characters", chat.Text(chat.Assistant, "荷物はどこ"), "assistant     荷物はどこ                            1,208"},
		{"escape sequences", chat.Text(chat.User, "a\x1b[2Jb\u202Ec"), "user          a\uFFFD[2Jb\uFFFDc                              1,208"},
		{"named", chat.Message{Role: chat.User, Name: "bo"}, "user bo                                             1,208"},
		{"media", chat.Message{Role: chat.User, Blocks: []chat.Block{{Type: "text", Text: "see"}, {Type: "image", Data: make([]byte, 1500)}}}, "user          see [image, 1,500 bytes]              1,208"},
		{"call", chat.Message{Role: chat.Assistant, Blocks: []chat.Block{{Type: "text", Text: "ok"}}}.With(chat.ToolCall{ID: "1", Name: "find", Arguments: "{}"}), "assistant     ok → find({})                         1,208"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			p := &show.Printer{Out: &out, Width: 57}
			if err := p.Message(&memory.Entry{Message: c.m, Tokens: 1208}); err != nil {
				t.Fatal(err)
			}
			if got := out.String(); got != c.want+"\n" {
				t.Errorf("got\n%q\nwant\n%q", got, c.want)
			}
		})
	}
}

// TestPrinter_ToolResult checks that the result of a tool has the tool's name.
func TestPrinter_ToolResult(t *testing.T) {
	var out strings.Builder
	p := &show.Printer{Out: &out, Width: 40}
	for _, m := range []chat.Message{
		chat.Message{Role: chat.Assistant}.With(chat.ToolCall{ID: "1", Name: "find_order"}),
		{Role: chat.Tool, ToolCallID: "1", Blocks: []chat.Block{{Type: "text", Text: "found"}}},
		{Role: chat.Tool, ToolCallID: "2", Blocks: []chat.Block{{Type: "text", Text: "of a call that left"}}},
	} {
		if err := p.Message(&memory.Entry{Message: m, Tokens: 9}); err != nil {
			t.Fatal(err)
		}
	}
	want := "assistant     → find_order()           9\n  find_order  found                    9\ntool          of a call that left      9\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

func TestPrinter_FullWindow(t *testing.T) {
	var out strings.Builder
	p := &show.Printer{Out: &out}
	if err := p.Window(memory.Window{Tokens: 36_102, Used: 36_102, Limit: 35_000, Unit: store.InTokens}, ""); err != nil {
		t.Fatal(err)
	}
	if want := "window ▕" + strings.Repeat("█", 40) + "  36,102 of 35,000 tokens\n"; out.String() != want {
		t.Errorf("got %s", out.String())
	}
}
