package chatui

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/chatui/markdown"
	"github.com/qtype-dev/qtype/internal/citation"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/steps"
)

type modelInfo = model.Info

// live shows an answer on a screen while it is generated. Its methods are called by several
// goroutines.
type live struct {
	chat      *Chat
	interrupt func()          // stops the turn
	steps     map[string]bool // whose text is the answer

	mu        sync.Mutex
	text      markdown.Renderer
	shown     strings.Builder // the source of the text since the last call of a tool
	pieces    pieces          // of the text
	reasoning strings.Builder // since it was shortened last
	comment   strings.Builder // what the model writes before its answer, since it was shown last
	thinking  time.Time       // when the reasoning began; zero for none
	calls     map[string]time.Time
	begun     time.Time // when the current activity began
	attempts  int       // calls of the model that failed and are repeated
	reason    string    // why the last of them failed
	sources   []citation.Source
	details   strings.Builder
	answer    string
	used      usage
}

func newLive(c *Chat, interrupt func()) *live {
	t := c.Target
	l := &live{chat: c, interrupt: interrupt, steps: t.flow.Writers(t.output.ID), calls: map[string]time.Time{},
		text: markdown.Renderer{Width: c.Screen.Width(), Color: c.Streams.Color}}
	l.wait("waiting for " + c.modelName())
	return l
}

// wait shows a new activity.
func (l *live) wait(text string) {
	l.begun = time.Now()
	l.show(text)
}

// show changes the text of the activity.
func (l *live) show(text string) { l.chat.activity(text, l.begun, l.interrupt) }

// event shows an event of the turn.
func (l *live) event(ev steps.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch ev.Kind {
	case steps.EventUsage:
		l.used.add(usage{ev.Input, ev.Output, ev.Cost})
	case steps.EventReasoning:
		if l.thinking.IsZero() {
			l.thinking = time.Now()
			l.wait("reasoning")
		}
		l.reasoning.WriteString(ev.Text)
	case steps.EventCommentary:
		l.comment.WriteString(ev.Text)
	case steps.EventText:
		if l.steps[ev.Step] {
			l.shorten()
			l.write(ev.Text)
		}
	case steps.EventSource:
		if l.steps[ev.Step] {
			l.sources = append(l.sources, *ev.Source)
		}
	case steps.EventToolCall:
		l.shorten()
		l.flush()
		l.calls[ev.CallID] = time.Now()
		l.note("→ "+ev.Tool, ev.Text)
		l.wait("running " + ev.Tool)
	case steps.EventToolResult:
		l.toolResult(ev)
	case steps.EventShortened:
		l.note("!", ev.Text)
	}
}

// toolResult shows how a call of a tool ended.
func (l *live) toolResult(ev steps.Event) {
	took := ""
	if begun, ok := l.calls[ev.CallID]; ok {
		took = " " + textfmt.Duration(time.Since(begun))
	}
	delete(l.calls, ev.CallID)
	if ev.Err != nil {
		l.note("✗"+took, ev.Err.Error())
	} else {
		l.note("✓"+took, ev.Text)
	}
	l.wait("waiting for " + l.chat.modelName())
}

// note writes a line about a tool or a request, shortened: /details has the whole text.
func (l *live) note(mark, text string) {
	mark = strings.TrimSpace(terminal.Clean(mark))
	fmt.Fprintf(&l.details, "%s %s\n", mark, terminal.Printable(text))
	if !l.chat.Quiet {
		l.chat.Screen.Print(l.dim("  " + mark + " " + textfmt.Ellipsis(terminal.Clean(text), maxToolText)))
	}
}

// shorten replaces the reasoning by one line, and shows the commentary after it.
func (l *live) shorten() {
	l.shortenReasoning()
	if text := l.comment.String(); strings.TrimSpace(text) != "" {
		l.note("·", textfmt.OneLine(text))
	}
	l.comment.Reset()
}

func (l *live) shortenReasoning() {
	if l.thinking.IsZero() {
		return
	}
	words := len(strings.Fields(l.reasoning.String()))
	fmt.Fprintf(&l.details, "reasoning:\n%s\n", terminal.Printable(strings.TrimSpace(l.reasoning.String())))
	if !l.chat.Quiet {
		l.chat.Screen.Print(l.dim(fmt.Sprintf("  ▸ reasoned for %s, %s (/details shows it)", textfmt.Duration(time.Since(l.thinking)), textfmt.Count(words, "word"))))
	}
	l.reasoning.Reset()
	l.thinking = time.Time{}
}

func (l *live) dim(text string) string {
	if l.chat.Streams.Color {
		return "\x1b[2m" + text + "\x1b[m"
	}
	return text
}

// write shows more text of the answer.
func (l *live) write(text string) { l.print(l.pieces.add(text)) }

// print shows more of the printable text.
func (l *live) print(text string) {
	if text == "" {
		return
	}
	if l.shown.Len() == 0 {
		l.wait("answering")
	}
	l.shown.WriteString(text)
	l.text.Width = l.chat.Screen.Width()
	done := l.text.Write(text)
	if len(done) == 0 {
		l.chat.Screen.Pending(l.text.Pending())
		return
	}
	l.chat.Screen.Pending(nil)
	l.chat.Screen.Print(done...)
	l.chat.Screen.Pending(l.text.Pending())
}

// flush ends the text that was shown so far.
func (l *live) flush() {
	l.print(l.pieces.end())
	rest := l.text.Flush()
	l.chat.Screen.Pending(nil)
	l.chat.Screen.Print(rest...)
	l.shown.Reset()
}

// end shows the whole answer unless it was shown already, and what it cites.
func (l *live) end(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shorten()
	printable := terminal.Printable(text)
	l.print(l.pieces.end())
	shown := l.shown.String()
	l.flush()
	if text != "" && printable != shown {
		r := markdown.Renderer{Width: l.chat.Screen.Width(), Color: l.chat.Streams.Color}
		l.chat.Screen.Print(append(r.Write(printable), r.Flush()...)...)
	}
	if len(l.sources) > 0 && text != "" {
		l.chat.Screen.Print(strings.Split(strings.TrimSuffix(sourceList(l.sources), "\n"), "\n")...)
	}
	l.answer = text
	l.chat.activity("", time.Time{}, nil)
}

// Observes reports whether a kind of operations is observed: attempts to call a model.
func (l *live) Observes(kind steps.OperationKind) bool { return kind == steps.OperationModel }

// Start shows that a model is called, and why if the call before failed.
func (l *live) Start(_ context.Context, op *steps.Operation) steps.Span {
	if op.Kind != steps.OperationModel {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.attempts > 0 {
		l.show(fmt.Sprintf("waiting for %s, attempt %d after %s", op.ID, l.attempts+1, l.reason))
	}
	return attempt{l}
}

// attempt is one call of a model.
type attempt struct{ live *live }

// Context returns ctx.
func (a attempt) Context(ctx context.Context) context.Context { return ctx }

// End shows why an attempt failed, until the next one begins.
func (a attempt) End(r *steps.OperationResult) {
	l := a.live
	l.mu.Lock()
	defer l.mu.Unlock()
	failed, ok := errors.AsType[*model.Error](r.Err)
	if !ok || !failed.Temporary {
		l.attempts = 0
		return
	}
	l.attempts++
	l.reason = "an error of the network"
	if failed.Status != 0 {
		l.reason = strings.TrimSpace(fmt.Sprintf("HTTP %d %s", failed.Status, http.StatusText(failed.Status)))
	}
	text := "retrying after " + l.reason
	if failed.RetryAfter > 0 {
		text = fmt.Sprintf("waiting %s to retry after %s", textfmt.Duration(failed.RetryAfter), l.reason)
	}
	l.show(text)
}

// chooseModel shows the chat models of the document, or lets another one answer.
func (c *Chat) chooseModel(ctx context.Context, id string) error {
	ids := c.modelIDs(ctx, "")
	switch {
	case id == "":
		c.printf("%s answers; models of the document: %s\n", terminal.Clean(c.modelName()), terminal.Clean(textfmt.List(ids)))
		return nil
	case !slices.Contains(ids, id):
		return fmt.Errorf("no chat model has the id %q%s; there are: %s", id, diag.DidYouMean(id, ids), textfmt.List(ids))
	case c.Reopen == nil:
		return fmt.Errorf("the model of this conversation cannot be changed")
	}
	app, target, err := c.Reopen(ctx, id)
	if err != nil {
		return err
	}
	old := c.App
	c.App, c.Target, c.model = app, target, id
	c.printf("%s answers from now on\n", terminal.Clean(c.modelName()))
	return old.Close(context.WithoutCancel(ctx))
}

// modelIDs returns the ids of the chat models that begin with a text.
func (c *Chat) modelIDs(_ context.Context, typed string) []string {
	var ids []string
	for _, m := range c.App.Spec().Models {
		if _, isChat := m.(*spec.Model); isChat && strings.HasPrefix(m.EntityID(), typed) {
			ids = append(ids, m.EntityID())
		}
	}
	return ids
}

// Complete completes the names and the arguments of commands.
func (c *Chat) Complete(ctx context.Context, typed string) (from int, candidates []string) {
	rest, ok := strings.CutPrefix(typed, "/")
	if !ok || strings.HasPrefix(rest, "/") {
		return 0, nil
	}
	c.changing.RLock()
	defer c.changing.RUnlock()
	word, argument, hasArgument := strings.Cut(rest, " ")
	for _, cmd := range c.available() {
		switch {
		case !hasArgument && cmd.help != "" && strings.HasPrefix(cmd.name, word):
			name := "/" + cmd.name
			if cmd.argument != "" {
				name += " "
			}
			candidates = append(candidates, name)
		case hasArgument && cmd.name == word && cmd.values != nil:
			return len(typed) - len(argument), cmd.values(c, ctx, argument)
		}
	}
	slices.Sort(candidates)
	return 0, candidates
}
