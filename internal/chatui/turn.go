package chatui

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/citation"
	"github.com/qtype-dev/qtype/internal/clienttool"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
)

// maxToolText is how many characters of a tool's arguments and result are shown.
const maxToolText = 200

// turn sends a message and writes the answer while it is generated. An error of the
// turn does not end the conversation.
func (c *Chat) turn(ctx context.Context, text string, interrupts <-chan os.Signal) error {
	within, cancel := withInterrupts(ctx, interrupts)
	defer cancel()
	t := c.Target
	values := maps.Clone(t.fixed)
	values[t.input.ID] = text
	a := &answer{chat: c, steps: t.flow.Writers(t.output.ID)}
	kinds := []steps.EventKind{steps.EventCommentary, steps.EventToolCall, steps.EventToolResult, steps.EventSource, steps.EventShortened}
	if c.Streams.OutTerminal {
		kinds = append(kinds, steps.EventText)
	}
	rows := slices.Values([]runtime.Input{{Session: c.Session, Values: values}})
	for res, err := range c.App.Run(within, t.flow.ID, rows, runtime.WithEvents(a.event, kinds...)) {
		switch {
		case errors.Is(context.Cause(within), errStopped):
			a.end("")
			fmt.Fprintln(c.Streams.Err, "(stopped)")
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			c.reportError(a, err)
		case res.Err != nil:
			c.reportError(a, res.Err)
		default:
			v, _ := res.Get(t.output.ID)
			a.end(terminal.Printable(value.Text(v)))
			a.listSources()
		}
	}
	return nil
}

// reportError ends the answer and writes why the turn failed.
func (c *Chat) reportError(a *answer, err error) {
	a.end("")
	c.failed++
	fmt.Fprintf(c.Streams.Err, "error: %s%s\n", terminal.Clean(err.Error()), clienttool.Advice(err))
}

// answer writes an answer while it is generated.
type answer struct {
	chat    *Chat
	steps   map[string]bool // whose text is the answer
	shown   strings.Builder // the answer's text since the last tool call
	pieces  pieces          // of the text
	comment strings.Builder // what the model writes before its answer, since it was shown last
	open    bool            // the line has no line end yet
	sources []citation.Source
}

// event shows an event of the turn. It is called by several goroutines.
func (a *answer) event(ev steps.Event) {
	a.chat.mu.Lock()
	defer a.chat.mu.Unlock()
	if ev.Kind != steps.EventCommentary {
		a.showComment()
	}
	switch ev.Kind {
	case steps.EventCommentary:
		a.comment.WriteString(ev.Text)
	case steps.EventText:
		if a.steps[ev.Step] {
			a.write(ev.Text)
		}
	case steps.EventSource:
		if a.steps[ev.Step] {
			a.sources = append(a.sources, *ev.Source)
		}
	case steps.EventToolCall:
		a.abort()
		a.note("→ " + ev.Tool + " " + ev.Text)
	case steps.EventShortened:
		a.note("! " + ev.Text)
	case steps.EventToolResult:
		if ev.Err != nil {
			a.note("← error: " + ev.Err.Error())
			return
		}
		a.note("← " + ev.Text)
	}
}

// note writes a line about a tool or a request.
func (a *answer) note(text string) {
	if !a.chat.Quiet {
		fmt.Fprintln(a.chat.Streams.Err, "  "+textfmt.Ellipsis(terminal.Clean(text), maxToolText))
	}
}

// showComment writes the commentary so far as a line.
func (a *answer) showComment() {
	if text := a.comment.String(); strings.TrimSpace(text) != "" {
		a.abort()
		a.note("· " + textfmt.OneLine(text))
	}
	a.comment.Reset()
}

// listSources writes the passages that the answer cites.
func (a *answer) listSources() {
	a.chat.mu.Lock()
	defer a.chat.mu.Unlock()
	if len(a.sources) == 0 {
		return
	}
	fmt.Fprint(a.chat.Streams.Out, sourceList(a.sources))
}

// sourceList returns the lines of the passages that an answer cites.
func sourceList(sources []citation.Source) string {
	var b strings.Builder
	b.WriteString("Sources:\n")
	for _, s := range sources {
		line := fmt.Sprintf("[%d] %s", s.Number, s.Title)
		if s.Heading != "" {
			line += " (" + s.Heading + ")"
		}
		if s.URL != "" && s.URL != s.Title {
			line += " " + s.URL
		}
		b.WriteString("  " + terminal.Clean(line) + "\n")
	}
	return b.String()
}

// write writes more text of the answer.
func (a *answer) write(text string) { a.print(a.pieces.add(text)) }

// print writes more of the printable text.
func (a *answer) print(text string) {
	if text == "" {
		return
	}
	a.shown.WriteString(text)
	a.open = true
	fmt.Fprint(a.chat.Streams.Out, text)
}

// abort ends the line of the text that was shown so far.
func (a *answer) abort() {
	a.print(a.pieces.end())
	if a.open {
		fmt.Fprintln(a.chat.Streams.Out)
	}
	a.open = false
	a.shown.Reset()
}

// end writes the whole answer unless it was shown already.
func (a *answer) end(text string) {
	a.chat.mu.Lock()
	defer a.chat.mu.Unlock()
	text = terminal.Printable(text)
	a.showComment()
	a.print(a.pieces.end())
	if text != a.shown.String() || text == "" {
		a.abort()
	}
	if text != "" && a.shown.Len() == 0 {
		fmt.Fprint(a.chat.Streams.Out, text)
		a.open = true
	}
	if a.open {
		fmt.Fprintln(a.chat.Streams.Out)
	}
}
