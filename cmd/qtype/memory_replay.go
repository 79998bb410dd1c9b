package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype/internal/memoryview/replay"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/runtime"
)

// replayCommand is one call of qtype memory replay.
type replayCommand struct {
	memoryCommand
	input string
	each  bool
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
	in, name, err := openInput(r.streams, r.input)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // only read
	err = replay.Run(ctx, runtime.MemoryConfig(declared, runtime.Counter(app, declared)), in, r.Out, replay.Options{Each: r.each, Format: replay.Format(r.format.value)})
	var line *replay.LineError
	if errors.As(err, &line) {
		return fmt.Errorf("%s:%d: %w", name, line.Line, line.Err)
	}
	return err
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
