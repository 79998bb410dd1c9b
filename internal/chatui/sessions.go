package chatui

import (
	"context"
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
