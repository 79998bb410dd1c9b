package chatui

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/memoryview"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec/diag"
)

// command is a command that the user types: /name argument.
type command struct {
	name     string
	argument string // shown in the help; in brackets if it may be missing; empty for none
	help     string
	// screen is true for a command that needs a user at a terminal. It reads and writes
	// files or changes the conversation, which a text of a pipe must not do by accident.
	screen bool
	run    func(c *Chat, ctx context.Context, argument string) error
	values func(c *Chat, ctx context.Context, typed string) []string // complete the argument; nil for nothing
}

// errQuit ends the conversation.
var errQuit = errors.New("quit")

// commands returns the table of the commands.
func commands() []command {
	return []command{
		{name: "memory", help: "show what the model would receive now, and how full its window is", run: viewed((*memoryview.View).Window)},
		{name: "history", help: "show all messages of this session", run: viewed((*memoryview.View).History)},
		{name: "details", help: "show the reasoning and the calls of tools of the last answer", screen: true, run: (*Chat).details},
		{name: "sessions", help: "list the sessions", screen: true, run: (*Chat).listSessions},
		{name: "session", argument: "ID", help: "continue another session", screen: true, run: (*Chat).continueSession, values: (*Chat).sessionIDs},
		{name: "new", argument: "[ID]", help: "begin a new session", screen: true, run: (*Chat).newSession},
		{name: "clear", help: "delete this session", run: (*Chat).clear},
		{name: "undo", help: "take back the last message and its answer", screen: true, run: (*Chat).undo},
		{name: "retry", help: "request another answer to the last message", screen: true, run: (*Chat).retry},
		{name: "edit", argument: "[TEXT]", help: "change the last message and send it again", screen: true, run: (*Chat).edit},
		{name: "attach", argument: "FILE", help: "send a file with the next message", screen: true, run: (*Chat).attach, values: (*Chat).fileNames},
		{name: "copy", help: "copy the last answer to the clipboard", screen: true, run: (*Chat).copyAnswer},
		{name: "save", argument: "FILE", help: "write the conversation to a new file, as Markdown", screen: true, run: (*Chat).save, values: (*Chat).fileNames},
		{name: "model", argument: "[ID]", help: "show the models, or answer with another one from now on", screen: true, run: (*Chat).chooseModel, values: (*Chat).modelIDs},
		{name: "help", help: "show this list", run: (*Chat).help},
		{name: "quit", help: "end the conversation (or press Ctrl-D)", run: (*Chat).quit},
		{name: "exit", run: (*Chat).quit}, // not listed
	}
}

func (*Chat) quit(context.Context, string) error { return errQuit }

// available returns the commands of this conversation.
func (c *Chat) available() []command {
	return slices.DeleteFunc(commands(), func(cmd command) bool { return cmd.screen && c.Screen == nil })
}

// help lists the commands.
func (c *Chat) help(context.Context, string) error {
	width := len("/quit    ")
	for _, cmd := range c.available() {
		width = max(width, len(strings.TrimSpace("/"+cmd.name+" "+cmd.argument)))
	}
	for _, cmd := range c.available() {
		if cmd.help != "" && (c.Screen != nil || cmd.name != "help") {
			c.printf("%-*s %s\n", width, strings.TrimSpace("/"+cmd.name+" "+cmd.argument), cmd.help)
		}
	}
	c.printf("%-*s send a message that begins with a slash\n", width, "//…")
	if c.Screen != nil {
		c.printf("Tab completes commands, Up and Down recall messages, Ctrl-R searches them, Alt-Enter begins a new line\n")
	}
	return nil
}

// printf writes a result.
func (c *Chat) printf(format string, args ...any) { fmt.Fprintf(c.Streams.Out, format, args...) }

// slashCommand returns the command of a line that begins with one slash.
func slashCommand(line string) (word, argument string, ok bool) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(line), "/")
	if !ok || strings.HasPrefix(rest, "/") {
		return "", "", false
	}
	word, argument, _ = strings.Cut(rest, " ")
	return strings.ToLower(word), strings.TrimSpace(argument), true
}

// runCommand runs a command and reports whether the conversation ends. Errors do not end it.
func (c *Chat) runCommand(ctx context.Context, word, argument string) (ends bool) {
	all := c.available()
	i := slices.IndexFunc(all, func(cmd command) bool { return cmd.name == word })
	if i < 0 {
		var names []string
		for _, cmd := range all {
			names = append(names, cmd.name)
		}
		fmt.Fprintf(c.Streams.Err, "unknown command /%s%s; /help lists the commands\n", terminal.Clean(word), diag.DidYouMean(word, names))
		return false
	}
	c.changing.Lock()
	defer c.changing.Unlock()
	err := all[i].check(argument, c.Screen != nil)
	if err == nil {
		err = all[i].run(c, ctx, argument)
	}
	if errors.Is(err, errQuit) {
		return true
	}
	if err != nil {
		fmt.Fprintln(c.Streams.Err, terminal.Clean(err.Error()))
	}
	return false
}

// check returns an error if the argument is missing, or if there must be none. Plain lines
// ignore what follows a command, as they always did.
func (cmd *command) check(argument string, strict bool) error {
	switch {
	case argument == "" && cmd.argument != "" && !strings.HasPrefix(cmd.argument, "["):
		return fmt.Errorf("/%s needs an argument: /%[1]s %s", cmd.name, cmd.argument)
	case argument != "" && cmd.argument == "" && strict:
		return fmt.Errorf("/%s takes no argument; a message that begins with a slash is sent with two: //%[1]s …", cmd.name)
	}
	return nil
}

// viewed returns a command that shows something of each memory.
func viewed(show func(v *memoryview.View, ctx context.Context, m memoryview.Memory, session string, page memoryview.Page) error) func(*Chat, context.Context, string) error {
	return func(c *Chat, ctx context.Context, _ string) error {
		return c.eachMemory(ctx, func(v *memoryview.View, m memoryview.Memory) error {
			return show(v, ctx, m, c.Session, memoryview.Page{})
		})
	}
}

// clear deletes the session.
func (c *Chat) clear(ctx context.Context, _ string) error {
	c.last = nil
	return c.eachMemory(ctx, func(v *memoryview.View, m memoryview.Memory) error { return v.Clear(ctx, m, c.Session) })
}

// eachMemory calls f for each memory of the flow that has the session.
func (c *Chat) eachMemory(ctx context.Context, f func(*memoryview.View, memoryview.Memory) error) error {
	ids := runtime.MemoryIDs(c.Target.flow)
	if len(ids) == 0 {
		return fmt.Errorf("flow %s has no memory", c.Target.flow.ID)
	}
	view := c.view()
	for _, id := range ids {
		if len(ids) > 1 {
			c.printf("memory %s\n", id)
		}
		m := memoryview.Of(c.App, id)
		_, err := memoryview.FindSession(ctx, m, c.Session)
		if err == nil {
			err = f(view, m)
		}
		if err != nil {
			fmt.Fprintln(c.Streams.Err, terminal.Clean(err.Error()))
		}
	}
	return nil
}

// view returns what shows memories.
func (c *Chat) view() *memoryview.View {
	view := &memoryview.View{Out: c.Streams.Out}
	if c.Streams.OutTerminal {
		view.Width = c.Streams.Width
	}
	if c.Screen != nil {
		view.Width = c.Screen.Width()
	}
	return view
}

// maxSessions is how many sessions are listed and completed.
const maxSessions = 200

// memories returns the memories of the flow.
func (c *Chat) memories() []memoryview.Memory {
	var all []memoryview.Memory
	for _, id := range runtime.MemoryIDs(c.Target.flow) {
		all = append(all, memoryview.Of(c.App, id))
	}
	return all
}

// name returns the id of the session as the user knows it.
func (c *Chat) name() string { return strings.TrimPrefix(c.Session, memory.UserPrefix(c.User)) }

// messagesOf returns how many messages a stored session has.
func (c *Chat) messagesOf(ctx context.Context, session string) (int64, error) {
	var most int64
	for _, m := range c.memories() {
		info, err := m.Info(ctx, session)
		if err != nil {
			return 0, err
		}
		most = max(most, info.Messages)
	}
	return most, nil
}

// resuming reports that the session is not new. An error is that of the first turn, too.
func (c *Chat) resuming(ctx context.Context) {
	if n, err := c.messagesOf(ctx, c.Session); err == nil && n > 0 && !c.Quiet && c.Streams.InTerminal {
		fmt.Fprintf(c.Streams.Err, "resuming %s, %s\n", terminal.Clean(c.name()), textfmt.Count(int(n), "message"))
	}
}

// sessionIDs returns the ids of sessions that begin with a text, without the user.
func (c *Chat) sessionIDs(ctx context.Context, typed string) []string {
	prefix := memory.UserPrefix(c.User)
	var ids []string
	for _, m := range c.memories() {
		filter := memory.SessionFilter{SessionQuery: store.SessionQuery{Prefix: prefix + typed, Limit: maxSessions}}
		for s, err := range m.EachSession(ctx, filter) {
			if err != nil {
				return nil
			}
			if s.Messages > 0 || !memory.IsShared(s.Session) {
				ids = append(ids, strings.TrimPrefix(s.Session, prefix))
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// listSessions lists the sessions of the user.
func (c *Chat) listSessions(ctx context.Context, _ string) error {
	all := c.memories()
	if len(all) == 0 {
		return c.errNoMemory()
	}
	filter := memory.SessionFilter{SessionQuery: store.SessionQuery{Prefix: memory.UserPrefix(c.User), Limit: maxSessions}}
	return c.view().List(ctx, all, memoryview.ListOptions{SessionFilter: filter, More: func(string) {
		c.printf("there are more; qtype memory list shows all\n")
	}})
}

func (c *Chat) errNoMemory() error {
	return fmt.Errorf("flow %s has no memory: its turns are independent", c.Target.flow.ID)
}

// continueSession goes on with another session.
func (c *Chat) continueSession(ctx context.Context, id string) error {
	if len(c.memories()) == 0 {
		return c.errNoMemory()
	}
	n, err := c.messagesOf(ctx, memory.UserSession(c.User, id))
	switch {
	case err != nil:
		return err
	case n == 0:
		return fmt.Errorf("there is no session %q%s; /new %[1]s begins it", id, diag.DidYouMean(id, c.sessionIDs(ctx, "")))
	}
	c.switchTo(id)
	c.resuming(ctx)
	return nil
}

// newSession begins a session that does not exist yet.
func (c *Chat) newSession(ctx context.Context, id string) error {
	if len(c.memories()) == 0 {
		return c.errNoMemory()
	}
	for number := 2; id == ""; number++ {
		free := fmt.Sprint("s", number)
		if n, err := c.messagesOf(ctx, memory.UserSession(c.User, free)); err != nil {
			return err
		} else if n == 0 && free != c.name() {
			id = free
		}
	}
	if n, err := c.messagesOf(ctx, memory.UserSession(c.User, id)); err != nil {
		return err
	} else if n > 0 {
		return fmt.Errorf("session %q exists, with %s; /session %[1]s continues it", id, textfmt.Count(int(n), "message"))
	}
	c.switchTo(id)
	fmt.Fprintf(c.Streams.Err, "new session %s\n", terminal.Clean(id))
	return nil
}

func (c *Chat) switchTo(id string) {
	c.Session, c.last = memory.UserSession(c.User, id), nil
}
