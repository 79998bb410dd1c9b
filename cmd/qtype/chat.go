package main

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

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// chatCommand is one call of qtype chat.
type chatCommand struct {
	*streams
	flow      string
	session   string
	input     string
	ephemeral bool
	quiet     bool
	clients   *clients
}

func newChat(s *streams) *cobra.Command {
	c := &chatCommand{streams: s, clients: &clients{streams: s}}
	cmd := &cobra.Command{
		Use:   "chat APP",
		Short: "Talk to a conversational flow in the terminal",
		Long: `Talk to a conversational flow in the terminal.

A line is a turn; a backslash at its end continues it on the next one. Ctrl-C stops
the answer that is being written, Ctrl-D ends the conversation, /help tells of the
commands. What is piped in is answered line by line, on standard output alone.`,
		Example: `  qtype chat app.qtype.yaml --session me
  qtype chat app.qtype.yaml -f support -i '{"customer": "c-014"}'
  printf 'Hello\nWhat can you do?\n' | qtype chat app.qtype.yaml --ephemeral`,
		Args: arguments("a document: qtype chat APP"), ValidArgsFunction: yamlFiles,
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args[0]) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&c.flow, "flow", "f", "", "the flow's `ID`; the first conversational one where it is left out")
	f.StringVarP(&c.session, "session", "s", runtime.DefaultSession, "the conversation's `ID`")
	f.StringVarP(&c.input, "input", "i", "", "the flow's other inputs, the same in every turn: a `JSON` object")
	f.BoolVar(&c.ephemeral, "ephemeral", false, "remember nothing after the conversation")
	c.clients.flags(f)
	f.BoolVarP(&c.quiet, "quiet", "q", false, "answers and questions only")
	return cmd
}

// conversation is a flow that is being talked to.
type conversation struct {
	*chatCommand
	app     *runtime.App
	flow    *spec.Flow
	says    *spec.Variable // the input that takes what is said
	answers *spec.Variable // the output that holds the answer
	fixed   map[string]any // the other inputs
	failed  int            // turns that failed
	mu      sync.Mutex     // guards what is printed while a turn goes on
}

func (c *chatCommand) run(ctx context.Context, path string) (err error) {
	p, faults := qtype.Check(ctx, path, qtype.WithStrict())
	if err := faults.Err(); err != nil {
		return err
	}
	talk := &conversation{chatCommand: c}
	if err := talk.choose(p.Document.Application); err != nil {
		return err
	}
	c.clients.lines = newLines(c.in)
	opts, err := c.clients.options(p.Document.Application)
	if err != nil {
		return err
	}
	if c.ephemeral {
		opts = append(opts, qtype.WithEphemeral())
	}
	if !c.quiet {
		opts = append(opts, qtype.WithLog(c.printWarning("")), qtype.WithWarnings(c.printWarning("warning: ")))
	}
	if talk.app, err = qtype.New(p, opts...); err != nil {
		return err
	}
	defer func() {
		if closing := talk.app.Close(context.WithoutCancel(ctx)); err == nil {
			err = closing
		}
	}()
	if err := talk.begin(ctx); err != nil {
		return err
	}
	return talk.loop(ctx)
}

// choose finds the flow, what it is told and what it answers.
func (t *conversation) choose(app *spec.Application) error {
	if app == nil {
		return errors.New("the document is not an application: only an application can run")
	}
	var all, talkative []string
	for _, f := range app.Flows {
		all = append(all, f.ID)
		if f.Interface == nil || f.Interface.Type != "Conversational" {
			continue
		}
		talkative = append(talkative, f.ID)
		if t.flow == nil && (t.chatCommand.flow == "" || t.chatCommand.flow == f.ID) {
			t.flow = f
		}
	}
	switch {
	case t.flow != nil:
	case t.chatCommand.flow != "" && !slices.Contains(all, t.chatCommand.flow):
		return fmt.Errorf("no flow has the id %q; there are: %s%s", t.chatCommand.flow, joinNames(all), didYouMean(t.chatCommand.flow, all))
	case t.chatCommand.flow != "":
		return fmt.Errorf("flow %s is not conversational; those that are: %s", t.chatCommand.flow, joinNames(talkative))
	default:
		return fmt.Errorf("application %s has no flow to talk to: none has interface: {type: Conversational}; qtype run runs the others", app.ID)
	}
	return t.variables()
}

// variables finds the message that goes in, the one that comes out, and the
// values of the other inputs.
func (t *conversation) variables() error {
	given := map[string]any{}
	if t.input != "" {
		v, err := value.Parse(t.input)
		r, ok := v.(*value.Record)
		if err != nil || !ok {
			return usagef("-i cannot be %q: a JSON object with the flow's other inputs is expected", t.input)
		}
		for name, v := range r.All() {
			given[name] = v
		}
	}
	t.fixed = map[string]any{}
	for _, ref := range t.flow.Inputs {
		v := ref.To
		if v.Type.Is("ChatMessage") && t.says == nil {
			t.says = v
			continue
		}
		x, ok := given[v.ID]
		if !ok && !v.IsOptional() {
			return usagef("flow %s needs %s (%s) too: give it by -i '{%q: …}'", t.flow.ID, v.ID, v.Type, v.ID)
		}
		if ok {
			t.fixed[v.ID] = x
		}
		delete(given, v.ID)
	}
	if names := slices.Sorted(maps.Keys(given)); len(names) > 0 {
		return usagef("-i: flow %s has no other input %q", t.flow.ID, names[0])
	}
	for _, ref := range t.flow.Outputs {
		if ref.To.Type.Is("ChatMessage") && t.answers == nil {
			t.answers = ref.To
		}
	}
	if t.says == nil || t.answers == nil { // the checker holds it (QT312, QT315)
		return fmt.Errorf("flow %s takes and gives no ChatMessage", t.flow.ID)
	}
	return nil
}

// begin tells what is talked to, and finds what cannot run before the first word.
func (t *conversation) begin(ctx context.Context) error {
	models, err := t.app.Models(t.flow.ID)
	if err != nil {
		return err
	}
	none := func(func(runtime.Input) bool) {}
	for _, err := range t.app.Run(ctx, t.flow.ID, none) {
		if err != nil {
			return err
		}
	}
	if t.quiet {
		return nil
	}
	parts := []string{t.app.Spec().ID, "flow " + t.flow.ID}
	for _, m := range models {
		parts = append(parts, describeModel(m))
	}
	memories := runtime.MemoryIDs(t.flow)
	for _, m := range memories {
		parts = append(parts, "memory "+m)
	}
	if len(memories) == 0 {
		parts = append(parts, "no memory, so every turn stands alone")
	}
	fmt.Fprintln(t.err, clean(strings.Join(append(parts, "session "+t.session), " · ")))
	if t.inTerminal {
		fmt.Fprintln(t.err, "/help tells of the commands, Ctrl-C stops an answer, Ctrl-D ends")
	}
	return nil
}

// loop reads and answers turns until there are no more. Interrupts are its own: the
// context that the command was given ends with the first one.
func (t *conversation) loop(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	for {
		said, err := t.readInput(ctx, interrupts)
		switch {
		case errors.Is(err, errStopped):
			fmt.Fprintln(t.err, "\nCtrl-D or /quit ends the conversation")
			continue
		case errors.Is(err, io.EOF):
			if t.inTerminal {
				fmt.Fprintln(t.err)
			}
			return t.outcome()
		case err != nil:
			return err
		}
		if strings.TrimSpace(said) == "" {
			continue
		}
		if word, isCommand := commandOf(said); isCommand {
			if word == "quit" || word == "exit" {
				return t.outcome()
			}
			t.slashCommand(ctx, word)
			continue
		}
		if err := t.turn(ctx, strings.TrimPrefix(said, "/"), interrupts); err != nil {
			return err
		}
	}
}

// outcome fails a conversation that nobody watched and in which a turn failed.
func (t *conversation) outcome() error {
	if t.failed > 0 && !t.inTerminal {
		return errSilent
	}
	return nil
}

// readInput is what is said next.
func (t *conversation) readInput(ctx context.Context, interrupts <-chan os.Signal) (string, error) {
	ctx, cancel := stoppable(ctx, interrupts)
	defer cancel()
	var all []string
	for {
		if t.inTerminal {
			prompt := "you> "
			if len(all) > 0 {
				prompt = "...> "
			}
			fmt.Fprint(t.err, prompt)
		}
		text, err := t.clients.lines.next(ctx)
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

// errStopped is the cause of what Ctrl-C ends.
var errStopped = errors.New("cancelled by the user")

// stoppable is ctx, which also ends with an interrupt.
func stoppable(ctx context.Context, interrupts <-chan os.Signal) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case <-interrupts:
			cancel(errStopped)
		case <-ctx.Done():
		}
	})
	return ctx, func() {
		cancel(nil)
		watching.Wait()
	}
}
