package chatui

import (
	"context"
	"fmt"
	"strings"

	"github.com/qtype-dev/qtype/internal/memoryview"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec/diag"
)

const help = `/memory   show what the model would receive now, and how full its window is
/history  show all messages of this session
/clear    delete this session
/quit     end the conversation (or press Ctrl-D)
//…       send a message that begins with a slash
`

// slashCommand returns the command of a line that begins with one slash.
func slashCommand(line string) (word string, ok bool) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(line), "/")
	if !ok || strings.HasPrefix(rest, "/") {
		return "", false
	}
	word, _, _ = strings.Cut(rest, " ")
	return strings.ToLower(word), true
}

// runCommand runs a command for each memory of the flow. Errors do not end the
// conversation.
func (c *Chat) runCommand(ctx context.Context, word string) {
	if word == "help" {
		fmt.Fprint(c.Streams.Out, help)
		return
	}
	run, ok := map[string]func(context.Context, *memoryview.View, memoryview.Memory) error{
		"memory": func(ctx context.Context, v *memoryview.View, m memoryview.Memory) error {
			return v.Window(ctx, m, c.Session, memoryview.Page{})
		},
		"history": func(ctx context.Context, v *memoryview.View, m memoryview.Memory) error {
			return v.History(ctx, m, c.Session, memoryview.Page{})
		},
		"clear": func(ctx context.Context, v *memoryview.View, m memoryview.Memory) error {
			return v.Clear(ctx, m, c.Session)
		},
	}[word]
	if !ok {
		fmt.Fprintf(c.Streams.Err, "unknown command /%s%s; /help lists the commands\n", terminal.Clean(word), diag.DidYouMean(word, []string{"help", "memory", "history", "clear", "quit"}))
		return
	}
	ids := runtime.MemoryIDs(c.Target.flow)
	if len(ids) == 0 {
		fmt.Fprintf(c.Streams.Err, "flow %s has no memory\n", c.Target.flow.ID)
	}
	view := &memoryview.View{Out: c.Streams.Out}
	if c.Streams.OutTerminal {
		view.Width = c.Streams.Width
	}
	for _, id := range ids {
		if len(ids) > 1 {
			fmt.Fprintf(c.Streams.Out, "memory %s\n", id)
		}
		m := memoryview.Of(c.App, id)
		_, err := memoryview.FindSession(ctx, m, c.Session)
		if err == nil {
			err = run(ctx, view, m)
		}
		if err != nil {
			fmt.Fprintln(c.Streams.Err, terminal.Clean(err.Error()))
		}
	}
}
