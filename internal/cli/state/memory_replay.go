package state

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/memoryview/replay"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
)

// replayCommand is qtype memory replay. It needs only the document: it opens no store and no model.
type replayCommand struct {
	*memoryCommand
	input string
	each  bool
	cost  string // PROVIDER or PROVIDER/MODEL

	contextWindow int // 0: that of the document's model
}

func newReplay(s *cli.Streams) *cobra.Command {
	r := &replayCommand{memoryCommand: newMemoryCommand(s, "replay", "Replay a transcript through a memory and show what the model would receive", withFormat)}
	r.cmd.Long = `Replays a transcript through a declared memory and shows what the model would
receive. No store is opened and no model is called. The input is JSON lines:
messages in OpenAI's format, or operations: {"op":"clear"},
{"op":"set","messages":[…]}, {"op":"limit","token_limit":2000}.`
	r.cmd.Example = `  qtype memory replay app.qtype.yaml --in transcript.jsonl
  qtype memory replay app.qtype.yaml --memory chat_memory --each --format json < transcript.jsonl`
	f := r.cmd.Flags()
	f.StringVar(&r.input, "in", "-", "`FILE` with the transcript; - is standard input")
	f.BoolVar(&r.each, "each", false, "show the window after every line, not only at the end")
	f.StringVar(&r.cost, "cost", "", "compare the prompts of all policies with the prompt cache of a `PROVIDER`, or PROVIDER/MODEL for its built-in prices")
	f.IntVar(&r.contextWindow, "context-window", 0, "count compact_at against a context window of this many `TOKENS` (default: the smallest of the models that use the memory)")
	r.cmd.RunE = func(c *cobra.Command, args []string) error { return r.run(c.Context(), args[0]) }
	return r.cmd
}

func (r *replayCommand) run(ctx context.Context, path string) error {
	p, err := loadApplication(ctx, path, "declares memories")
	if err != nil {
		return err
	}
	app := p.Document.Application
	declared, err := r.One(app)
	if err != nil {
		return err
	}
	window, err := r.windowOf(app, declared)
	if err != nil {
		return err
	}
	in, name, err := r.Streams.Open(r.input)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // only read
	cfg, format := runtime.MemoryConfig(declared, runtime.Counter(app, declared)), replay.Format(r.format.Value)
	if r.cost == "" {
		err = replay.Run(ctx, cfg, in, r.Out, replay.Options{Each: r.each, Format: format, ContextWindow: window})
	} else {
		o, wrong := replay.CostOf(app, r.cost)
		if r.each {
			wrong = terminal.Usagef("--each and --cost exclude each other")
		}
		if wrong != nil {
			return wrong
		}
		o.ContextWindow, o.Format = window, format
		err = replay.Cost(ctx, cfg, in, r.Out, o)
	}
	var line *replay.LineError
	if errors.As(err, &line) {
		return fmt.Errorf("%s:%d: %w", name, line.Line, line.Err)
	}
	return err
}

// windowOf returns the context window that compact_at counts against; 0 for none.
func (r *replayCommand) windowOf(app *spec.Application, m *spec.Memory) (int, error) {
	row, _ := m.Row()
	compacted := m.CompactAt > 0 && row.Supports("compact_at")
	switch {
	case r.contextWindow < 0:
		return 0, terminal.Usagef("--context-window must be positive")
	case r.contextWindow > 0 && !compacted:
		return 0, terminal.Usagef("--context-window is for a memory with compact_at; memory %s has none", m.ID)
	case r.contextWindow > 0 || !compacted:
		return r.contextWindow, nil
	}
	called, window := runtime.SmallestWindow(app, m)
	if called != nil && float64(window) < m.Limits()["token_limit"] {
		fmt.Fprintf(r.Err, "compact_at counts against the context window of model %s, %s tokens; --context-window sets another one\n", called.ID, textfmt.Thousands(window))
	}
	return window, nil
}
