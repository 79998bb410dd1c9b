package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype/internal/memoryview"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/runtime"
)

// memoryList is one call of qtype memory list.
type memoryList struct {
	memoryCommand
	prefix, user, after string
	older, newer        time.Duration
	limit               int
	sort                *enumFlag
}

func newList(s *streams) *cobra.Command {
	r := &memoryList{memoryCommand: memoryCommand{streams: s}}
	c := r.withFormat(r.command("list", "List the sessions of each memory", r.list))
	c.Flags().StringVar(&r.prefix, "prefix", "", "only sessions whose ids begin with this `TEXT`")
	c.Flags().StringVar(&r.user, "user", "", "only sessions of this `USER`")
	c.Flags().DurationVar(&r.older, "older-than", 0, "only sessions whose newest message is older, as a `DURATION` such as 72h")
	c.Flags().DurationVar(&r.newer, "newer-than", 0, "only sessions whose newest message is newer, as a `DURATION`")
	c.Flags().IntVar(&r.limit, "limit", 0, "the most `SESSIONS` (default: all)")
	c.Flags().StringVar(&r.after, "after", "", "only sessions after this `ID`, in the order of the list: the next page")
	r.sort = newEnumFlag(memoryview.Orders()...)
	r.sort.addTo(c, "sort", "", "the order of sessions: id, last (newest message first) or size (most messages first)")
	return c
}

func (r *memoryList) list(ctx context.Context, app *runtime.App) error {
	memories, err := r.memories(app)
	switch {
	case err != nil:
		return err
	case r.limit < 0 || r.older < 0 || r.newer < 0:
		return usagef("--limit, --older-than and --newer-than must be positive")
	case r.after != "" && len(memories) > 1:
		return usagef("--after needs one memory: pass --memory")
	}
	var o memoryview.ListOptions
	o.Prefix, o.After, o.Limit = memory.UserPrefix(r.user)+r.prefix, r.after, r.limit
	o.Sort = memoryview.Order(r.sort.value)
	if r.older > 0 {
		o.UsedBefore = time.Now().Add(-r.older)
	}
	if r.newer > 0 {
		o.UsedAfter = time.Now().Add(-r.newer)
	}
	o.More = func(last string) {
		hint := "--limit"
		if len(memories) == 1 {
			hint = "--after " + terminal.Clean(last)
		}
		fmt.Fprintf(r.Err, "there are more sessions; %s shows them\n", hint)
	}
	return r.view().List(ctx, memories, o)
}

// withPage adds the flags that select messages of a session.
func (r *memoryCommand) withPage(c *cobra.Command) *cobra.Command {
	c.Flags().Int64Var(&r.page.From, "from", 0, "only messages from this `POSITION` on (default: all)")
	c.Flags().IntVar(&r.page.Limit, "limit", 0, "the most `MESSAGES` (default: all)")
	run := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if r.page.From < 0 || r.page.Limit < 0 {
			return usagef("--from and --limit must be positive")
		}
		return run(c, args)
	}
	return c
}
