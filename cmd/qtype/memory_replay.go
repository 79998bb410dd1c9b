package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype/internal/memoryview/replay"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
)

// replayCommand is one call of qtype memory replay.
type replayCommand struct {
	memoryCommand
	input string
	each  bool
	cost  string // PROVIDER or PROVIDER/MODEL

	contextWindow int // 0: that of the document's model
}

func newReplay(s *streams) *cobra.Command {
	r := &replayCommand{memoryCommand: memoryCommand{streams: s}}
	c := &cobra.Command{
		Use:   "replay APP",
		Short: "Replay a transcript through a memory and show what the model would receive",
		Long: `Replays a transcript through a declared memory and shows what the model would
receive. No store is opened and no model is called. The input is JSON lines:
messages in OpenAI's format, or operations: {"op":"clear"},
{"op":"set","messages":[…]}, {"op":"limit","token_limit":2000}.`,
		Example: `  qtype memory replay app.qtype.yaml --in transcript.jsonl
  qtype memory replay app.qtype.yaml --memory chat_memory --each --format json < transcript.jsonl`,
		Args: arguments("a document: qtype memory replay APP"), ValidArgsFunction: yamlFiles,
		RunE: func(c *cobra.Command, args []string) error { return r.run(c.Context(), args[0]) },
	}
	r.withMemory(c)
	c.Flags().StringVar(&r.input, "in", "-", "`FILE` with the transcript; - is standard input")
	c.Flags().BoolVar(&r.each, "each", false, "show the window after every line, not only at the end")
	c.Flags().StringVar(&r.cost, "cost", "", "compare the prompts of all policies with the prompt cache of a `PROVIDER`, or PROVIDER/MODEL for its built-in prices")
	c.Flags().IntVar(&r.contextWindow, "context-window", 0, "count compact_at against a context window of this many `TOKENS` (default: the smallest of the models that use the memory)")
	r.withFormat(c)
	return c
}

// run needs only the document: it opens no store and no model.
func (r *replayCommand) run(ctx context.Context, path string) error {
	app, err := loadApplication(ctx, path, "declares memories")
	if err != nil {
		return err
	}
	declared, err := r.one(app)
	if err != nil {
		return err
	}
	window, err := r.windowOf(app, declared)
	if err != nil {
		return err
	}
	in, name, err := openInput(r.streams, r.input)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // only read
	cfg := runtime.MemoryConfig(declared, runtime.Counter(app, declared))
	if r.cost == "" {
		err = replay.Run(ctx, cfg, in, r.Out, replay.Options{Each: r.each, Format: replay.Format(r.format.value), ContextWindow: window})
	} else {
		o, wrong := r.costOptions(app)
		if wrong != nil {
			return wrong
		}
		o.ContextWindow = window
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
		return 0, usagef("--context-window must be positive")
	case r.contextWindow > 0 && !compacted:
		return 0, usagef("--context-window is for a memory with compact_at; memory %s has none", m.ID)
	case r.contextWindow > 0 || !compacted:
		return r.contextWindow, nil
	}
	called, window := runtime.SmallestWindow(app, m)
	if called != nil && float64(window) < m.Limits()["token_limit"] {
		fmt.Fprintf(r.Err, "compact_at counts against the context window of model %s, %s tokens; --context-window sets another one\n", called.ID, textfmt.Thousands(window))
	}
	return window, nil
}

// costOptions returns the rules and the prices of --cost.
func (r *replayCommand) costOptions(app *spec.Application) (replay.CostOptions, error) {
	name, model, _ := strings.Cut(r.cost, "/")
	row, ok := spec.LookupProvider(name)
	switch {
	case r.each:
		return replay.CostOptions{}, usagef("--each and --cost exclude each other")
	case !ok:
		return replay.CostOptions{}, usagef("unknown provider %q", name)
	case row.Caching == nil:
		return replay.CostOptions{}, usagef("the rules of the prompt cache of %s are unknown", name)
	}
	o := replay.CostOptions{Rules: *row.Caching, Format: replay.Format(r.format.value), Prices: spec.BuiltinPrices(name, model)}
	if model != "" && o.Prices == nil {
		return o, usagef("the prices of %s are unknown; declare a model with prices and pass --cost %s", r.cost, name)
	}
	for _, m := range app.Models {
		if base := m.Base(); model == "" && o.Prices == nil && base.Provider == name {
			o.Prices = base.CallPrices()
		}
	}
	return o, nil
}

// openInput opens a file, - for standard input, and returns its name for messages.
func openInput(s *streams, path string) (io.ReadCloser, string, error) {
	if path == "-" {
		return io.NopCloser(s.In), "standard input", nil
	}
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		return nil, "", fmt.Errorf("%s: is a directory, not a file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", path, terminal.Cause(err))
	}
	return f, path, nil
}
