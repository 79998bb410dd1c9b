package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/qtype-dev/qtype/runtime"
)

// chatHelp tells of the commands.
const chatHelp = `/memory   what the model would be sent now, and how full its window is
/history  everything that was said in this session
/clear    forget this session
/quit     end the conversation; so does Ctrl-D
//…       say something that begins with a slash
`

// commandOf is the word of a line that is a command.
func commandOf(line string) (word string, ok bool) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(line), "/")
	if !ok || strings.HasPrefix(rest, "/") {
		return "", false
	}
	word, _, _ = strings.Cut(rest, " ")
	return strings.ToLower(word), true
}

// slashCommand does what a command says. Whatever fails costs the command alone.
func (t *conversation) slashCommand(ctx context.Context, word string) {
	switch word {
	case "help":
		fmt.Fprint(t.out, chatHelp)
		return
	case "memory", "history", "clear":
	default:
		fmt.Fprintf(t.err, "there is no command /%s%s; /help tells of all\n", clean(word), didYouMean(word, []string{"help", "memory", "history", "clear", "quit"}))
		return
	}
	memories := runtime.MemoryIDs(t.flow)
	if len(memories) == 0 {
		fmt.Fprintf(t.err, "flow %s has no memory\n", t.flow.ID)
	}
	for _, id := range memories {
		if len(memories) > 1 {
			fmt.Fprintf(t.out, "memory %s\n", id)
		}
		look := &memoryCommand{streams: t.streams, memory: id, session: t.session, format: newChoice("text", "json")}
		do := map[string]func() error{
			"memory":  func() error { return look.show(ctx, t.app) },
			"history": func() error { return look.history(ctx, t.app) },
			"clear":   func() error { return look.clear(ctx, t.app) },
		}
		if err := do[word](); err != nil {
			fmt.Fprintln(t.err, clean(err.Error()))
		}
	}
}
