// Package chatui is a conversation with a flow in the terminal, or over a pipe.
package chatui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/qtype-dev/qtype/internal/chatui/screen"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
)

// Chat is a conversation with a flow.
type Chat struct {
	Streams *terminal.Streams
	Lines   *terminal.Lines // what the user types
	Screen  *screen.Screen  // the terminal, if the user edits lines on it; nil for plain lines
	App     *runtime.App
	Target  *Target
	User    string // to whom the sessions belong; empty for no user
	Session string // as it is stored
	Quiet   bool   // write answers and prompts only
	// Reopen returns the application with another model for the answers of the flow; nil if
	// the model cannot be changed. The conversation closes it.
	Reopen func(ctx context.Context, model string) (*runtime.App, *Target, error)

	failed   int          // turns that failed
	mu       sync.Mutex   // guards the output during a turn
	changing sync.RWMutex // locked while a command may change the fields that completion reads
	attached []chat.Block
	last     *lastTurn // of this session and process; nil for none
	used     usage     // since the beginning
	model    string    // chosen with /model; empty for that of the document
}

// ErrTurnFailed is returned after a conversation without a terminal in which a turn
// failed. The error of the turn was written to the error stream.
var ErrTurnFailed = errors.New("a turn failed")

// errStopped is the cause of a context that Ctrl-C has canceled: a memory keeps what was said.
var errStopped = memory.ErrStopped

// Run reads and answers turns until the input ends or the user quits. An interrupt
// stops only the current answer.
func (c *Chat) Run(ctx context.Context) error {
	if err := c.begin(ctx); err != nil {
		return err
	}
	c.resuming(ctx)
	ctx = context.WithoutCancel(ctx)
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	if c.Screen != nil {
		return c.runOnScreen(ctx, interrupts)
	}
	for {
		text, err := c.readInput(ctx, interrupts)
		switch {
		case errors.Is(err, errStopped):
			fmt.Fprintln(c.Streams.Err, "\nCtrl-D or /quit ends the conversation")
			continue
		case errors.Is(err, io.EOF):
			if c.Streams.InTerminal {
				fmt.Fprintln(c.Streams.Err)
			}
			return c.outcome()
		case err != nil:
			return err
		}
		if strings.TrimSpace(text) == "" {
			continue
		}
		if word, argument, isCommand := slashCommand(text); isCommand {
			if c.runCommand(ctx, word, argument) {
				return c.outcome()
			}
			continue
		}
		if err := c.turn(ctx, strings.TrimPrefix(text, "/"), interrupts); err != nil {
			return err
		}
	}
}

// begin writes the header. It runs the flow without rows, so that what cannot run
// fails before the first turn.
func (c *Chat) begin(ctx context.Context) error {
	flow := c.Target.flow
	models, err := c.App.Models(flow.ID)
	if err != nil {
		return err
	}
	none := func(func(runtime.Input) bool) {}
	for _, err := range c.App.Run(steps.WithoutObservers(ctx), flow.ID, none) {
		if err != nil {
			return err
		}
	}
	if c.Quiet {
		return nil
	}
	parts := []string{c.App.Spec().ID, "flow " + flow.ID}
	for _, m := range models {
		parts = append(parts, DescribeModel(m))
	}
	memories := runtime.MemoryIDs(flow)
	for _, m := range memories {
		parts = append(parts, "memory "+m)
	}
	if len(memories) == 0 {
		parts = append(parts, "no memory (turns are independent)")
	}
	header := terminal.Clean(strings.Join(append(parts, "session "+c.Session), " · "))
	if c.Streams.InTerminal {
		header += "\n/help lists the commands, Ctrl-C stops an answer, Ctrl-D quits"
	}
	if c.Screen != nil {
		header = ansi.Wrap(header, c.Screen.Width(), "")
	}
	fmt.Fprintln(c.Streams.Err, header)
	return nil
}

// DescribeModel returns a model's name for a header. It marks a mock as such.
func DescribeModel(m model.Info) string {
	switch {
	case m.Replaces != "":
		return fmt.Sprintf("no credentials for %s: using mock %s (offline)", m.Replaces, m.ID)
	case m.Mock:
		return fmt.Sprintf("model %s (mock, offline)", m.ID)
	case m.Name != "" && m.Name != m.ID:
		return fmt.Sprintf("model %s (%s)", m.ID, m.Name)
	}
	return "model " + m.ID
}

// outcome returns an error if a turn failed and no user has seen it.
func (c *Chat) outcome() error {
	if c.failed > 0 && !c.Streams.InTerminal {
		return ErrTurnFailed
	}
	return nil
}

// readInput returns what the user types next: a line, or several if they end in a
// backslash.
func (c *Chat) readInput(ctx context.Context, interrupts <-chan os.Signal) (string, error) {
	ctx, cancel := withInterrupts(ctx, interrupts)
	defer cancel()
	var all []string
	for {
		if c.Streams.InTerminal {
			prompt := "you> "
			if len(all) > 0 {
				prompt = "...> "
			}
			fmt.Fprint(c.Streams.Err, prompt)
		}
		text, err := c.Lines.Next(ctx)
		if err != nil && (!errors.Is(err, io.EOF) || len(all) == 0) {
			return "", err
		}
		more, continued := strings.CutSuffix(text, `\`)
		all = append(all, more)
		if err != nil || !continued {
			return strings.Join(all, "\n"), nil
		}
	}
}

// withInterrupts returns a context that an interrupt cancels with errStopped.
func withInterrupts(ctx context.Context, interrupts <-chan os.Signal) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	var waiting sync.WaitGroup
	waiting.Go(func() {
		select {
		case <-interrupts:
			cancel(errStopped)
		case <-ctx.Done():
		}
	})
	return ctx, func() {
		cancel(nil)
		waiting.Wait()
	}
}

// pieces makes the pieces of a text printable, so that together they are the printable whole:
// the bytes of an incomplete character, and a CR that an LF may follow, wait for the next one.
type pieces struct{ waiting string }

// add returns what can be printed with the next piece.
func (p *pieces) add(text string) string {
	text = p.waiting + text
	n := completeLength(text)
	p.waiting = text[n:]
	return terminal.Printable(text[:n])
}

// end returns the rest.
func (p *pieces) end() string {
	text := terminal.Printable(p.waiting)
	p.waiting = ""
	return text
}

// completeLength returns the length of a text without an incomplete character or a CR at its
// end.
func completeLength(text string) int {
	if n := len(text); n > 0 && text[n-1] == '\r' {
		return n - 1
	}
	for cut := 1; cut < utf8.UTFMax && cut <= len(text); cut++ {
		if utf8.RuneStart(text[len(text)-cut]) {
			if !utf8.FullRuneInString(text[len(text)-cut:]) {
				return len(text) - cut
			}
			break
		}
	}
	return len(text)
}

// Target is the flow of a conversation with the variables that carry its messages.
type Target struct {
	flow   *spec.Flow
	input  *spec.Variable // takes the user's message
	output *spec.Variable // holds the answer
	fixed  map[string]any // the other inputs, the same in every turn
}

// Flow returns the id of the flow.
func (t *Target) Flow() string { return t.flow.ID }

// NewTarget selects a conversational flow: that of the id, or the first one if id is
// empty. inputs is a JSON object with the flow's other inputs; it may be empty. An
// terminal.UsageError concerns these.
func NewTarget(app *spec.Application, id, inputs string) (*Target, error) {
	if app == nil {
		return nil, errors.New("the document is not an application: only an application can run")
	}
	var all, conversational []string
	var flow *spec.Flow
	for _, f := range app.Flows {
		all = append(all, f.ID)
		if f.Interface == nil || f.Interface.Type != "Conversational" {
			continue
		}
		conversational = append(conversational, f.ID)
		if flow == nil && (id == "" || id == f.ID) {
			flow = f
		}
	}
	switch {
	case flow != nil:
	case id != "" && !slices.Contains(all, id):
		return nil, fmt.Errorf("no flow has the id %q; there are: %s%s", id, textfmt.List(all), diag.DidYouMean(id, all))
	case id != "":
		return nil, fmt.Errorf("flow %s is not conversational; conversational flows: %s", id, textfmt.List(conversational))
	default:
		return nil, fmt.Errorf("application %s has no conversational flow (interface: {type: Conversational}); use qtype run for other flows", app.ID)
	}
	t := &Target{flow: flow, fixed: map[string]any{}}
	return t, t.bind(inputs)
}

// bind finds the message variables of the flow and takes the other inputs from JSON.
func (t *Target) bind(inputs string) error {
	given := map[string]any{}
	if inputs != "" {
		v, err := value.Parse(inputs)
		r, ok := v.(*value.Record)
		if err != nil || !ok {
			return terminal.Usagef("-i cannot be %q: expected a JSON object with the flow's other inputs", inputs)
		}
		given = maps.Collect(r.All())
	}
	for _, ref := range t.flow.Inputs {
		v := ref.To
		if v.Type.Is("ChatMessage") && t.input == nil {
			t.input = v
			continue
		}
		x, ok := given[v.ID]
		if !ok && !v.IsOptional() {
			return terminal.Usagef("flow %s also needs %s (%s): pass -i '{%q: …}'", t.flow.ID, v.ID, v.Type, v.ID)
		}
		if ok {
			t.fixed[v.ID] = x
		}
		delete(given, v.ID)
	}
	if names := slices.Sorted(maps.Keys(given)); len(names) > 0 {
		return terminal.Usagef("-i: flow %s has no other input %q", t.flow.ID, names[0])
	}
	for _, ref := range t.flow.Outputs {
		if ref.To.Type.Is("ChatMessage") && t.output == nil {
			t.output = ref.To
		}
	}
	if t.input == nil || t.output == nil { // the validator reports it as QT312 or QT315
		return fmt.Errorf("flow %s must have an input and an output of type ChatMessage", t.flow.ID)
	}
	return nil
}
