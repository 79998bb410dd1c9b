package chatui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/clienttool"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
)

// prompt is what the line of the user begins with.
const prompt = "you> "

// lastTurn is the newest turn of this process.
type lastTurn struct {
	message chat.Message // what was sent
	failed  bool         // the turn failed, or nothing was said before it was stopped: the conversation goes on without it
	details string       // the reasoning and the calls of tools
	answer  string
}

// usage is what turns have used.
type usage struct {
	input, output int // tokens
	cost          float64
}

// runOnScreen is Run for a user who edits lines. Interrupts are those of other processes: the
// screen receives Ctrl-C as a key.
func (c *Chat) runOnScreen(ctx context.Context, interrupts <-chan os.Signal) error {
	c.Screen.Start(ctx)
	defer c.Screen.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		for {
			select {
			case <-interrupts:
				c.Screen.Interrupt()
			case <-ctx.Done():
				return
			}
		}
	}()
	for {
		c.showStatus(ctx)
		text, err := c.Screen.Read(ctx, prompt, "")
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if word, argument, isCommand := slashCommand(text); isCommand {
			if c.runCommand(ctx, word, argument) {
				return nil
			}
			continue
		}
		if strings.HasPrefix(strings.TrimSpace(text), "//") {
			text = strings.TrimPrefix(strings.TrimSpace(text), "/")
		}
		if err := c.send(ctx, c.message(text)); err != nil {
			return err
		}
	}
}

// message returns a message of the user with the files that were attached.
func (c *Chat) message(text string) chat.Message {
	m := chat.Text(chat.User, text)
	m.Blocks = append(m.Blocks, c.attached...)
	c.attached = nil
	return m
}

// send runs a turn. An error of the turn does not end the conversation.
func (c *Chat) send(ctx context.Context, m chat.Message) error {
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	t := c.Target
	values := maps.Clone(t.fixed)
	values[t.input.ID] = m
	l := newLive(c, func() { cancel(errStopped) })
	c.last = &lastTurn{message: m, failed: true}
	grown := c.grown(ctx)
	rows := slices.Values([]runtime.Input{{Session: c.Session, Values: values}})
	kinds := []steps.EventKind{steps.EventText, steps.EventReasoning, steps.EventCommentary, steps.EventToolCall, steps.EventToolResult, steps.EventSource, steps.EventShortened, steps.EventUsage}
	defer func() {
		c.last.details, c.last.answer = l.details.String(), l.answer
		c.used.add(l.used)
	}()
	for res, err := range c.App.Run(within, t.flow.ID, rows, runtime.WithEvents(l.event, kinds...), runtime.WithObserver(l)) {
		switch {
		case errors.Is(context.Cause(within), errStopped):
			c.last.failed = !grown()
			l.end("")
			fmt.Fprintln(c.Streams.Err, "(stopped)")
			return nil
		case ctx.Err() != nil:
			l.end("")
			return context.Cause(ctx)
		case err != nil:
			l.fail(err)
		case res.Err != nil:
			l.fail(res.Err)
		default:
			v, _ := res.Get(t.output.ID)
			c.last.failed = false
			l.end(value.Text(v))
		}
	}
	return nil
}

// fail ends the answer and writes why the turn failed.
func (l *live) fail(err error) {
	l.end("")
	l.chat.failed++
	fmt.Fprintf(l.chat.Streams.Err, "error: %s%s\n", terminal.Clean(err.Error()), clienttool.Advice(err))
}

func (u *usage) add(more usage) {
	u.input, u.output, u.cost = u.input+more.input, u.output+more.output, u.cost+more.cost
}

// showStatus shows the model, the session, what was used, and how full the window is.
func (c *Chat) showStatus(ctx context.Context) {
	if c.Quiet {
		return
	}
	parts := []string{"model " + c.modelName(), "session " + c.name()}
	if full := c.fill(ctx); full != "" {
		parts = append(parts, full)
	}
	if c.used.input+c.used.output > 0 {
		parts = append(parts, fmt.Sprintf("tokens %s in, %s out", textfmt.Thousands(c.used.input), textfmt.Thousands(c.used.output)))
	}
	if c.used.cost > 0 {
		parts = append(parts, "$"+textfmt.Amount(c.used.cost))
	}
	if n := len(c.attached); n > 0 {
		parts = append(parts, textfmt.Count(n, "file")+" attached")
	}
	c.Screen.Status(parts)
}

// modelName returns the name of the model that answers.
func (c *Chat) modelName() string {
	models, err := c.App.Models(c.Target.flow.ID)
	if err != nil || len(models) == 0 {
		return "none"
	}
	m := models[0]
	if i := slices.IndexFunc(models, func(info modelInfo) bool { return info.ID == c.model }); i >= 0 {
		m = models[i]
	}
	if m.Mock {
		return m.ID + " (mock)"
	}
	return cmp.Or(m.Name, m.ID)
}

// fill returns how full the window of the session is, by the memory that is fullest.
func (c *Chat) fill(ctx context.Context) string {
	fullest, text := -1.0, ""
	for _, m := range c.memories() {
		info, err := m.Info(ctx, c.Session)
		if err != nil || info.Limit == 0 {
			continue
		}
		part := float64(info.Used) / float64(info.Limit)
		if part <= fullest {
			continue
		}
		unit := ""
		if info.Unit != store.InTokens {
			unit = " " + string(info.Unit)
		}
		fullest = part
		text = fmt.Sprintf("window %.0f %% (%s / %s%s)", 100*part, textfmt.Thousands(info.Used), textfmt.Thousands(info.Limit), unit)
	}
	return text
}

// activity shows what is waited for since a time.
func (c *Chat) activity(text string, since time.Time, interrupt func()) {
	c.Screen.Activity(text, since, interrupt)
}
