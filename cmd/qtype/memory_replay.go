package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype/internal/memoryview/replay"
	"github.com/qtype-dev/qtype/internal/tokenizer"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
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
		Short: "Feed a transcript through a memory and show what the model would be sent",
		Long: `Feeds a transcript through a declared memory and shows what the model would be
sent. No store and no model is touched. The input is JSON lines: messages as
OpenAI writes them, or operations: {"op":"clear"}, {"op":"set","messages":[…]},
{"op":"limit","token_limit":2000}.`,
		Example: `  qtype memory replay app.qtype.yaml --in transcript.jsonl
  qtype memory replay app.qtype.yaml --memory chat_memory --each --format json < transcript.jsonl`,
		Args: arguments("a document: qtype memory replay APP"), ValidArgsFunction: yamlFiles,
		RunE: func(c *cobra.Command, args []string) error { return r.run(c.Context(), args[0]) },
	}
	c.Flags().StringVarP(&r.memory, "memory", "m", "", "the memory's `ID`; may be left out where there is only one")
	c.Flags().StringVar(&r.input, "in", "-", "the transcript's `FILE`; - is standard input")
	c.Flags().BoolVar(&r.each, "each", false, "show the window after every line, not only at the end")
	r.withFormat(c)
	return c
}

// run needs the document's memory alone: neither a store nor a model is opened.
func (r *replayCommand) run(ctx context.Context, path string) error {
	app, err := application(ctx, path, "declares memories")
	if err != nil {
		return err
	}
	declared, err := r.one(app)
	if err != nil {
		return err
	}
	cfg, err := replayConfig(app, declared)
	if err != nil {
		return err
	}
	in, name, err := r.open()
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // only read
	err = replay.Run(ctx, cfg, in, r.out, replay.Options{Each: r.each, Format: replay.Format(r.format.value)})
	var fault *replay.LineError
	if errors.As(err, &fault) {
		return fmt.Errorf("%s:%d: %w", name, fault.Line, fault.Err)
	}
	return err
}

// replayConfig is a declared memory, counting as it counts in a run.
func replayConfig(app *spec.Application, m *spec.Memory) (memory.Config, error) {
	enc, err := tokenizer.For(runtime.Encoding(app, m))
	if err != nil {
		return memory.Config{}, err
	}
	return runtime.MemoryConfig(m, enc), nil
}

// open opens the transcript and tells what to call it.
func (r *replayCommand) open() (io.ReadCloser, string, error) {
	if r.input == "-" {
		return io.NopCloser(r.in), "standard input", nil
	}
	info, err := os.Stat(r.input)
	if err == nil && info.IsDir() {
		return nil, "", fmt.Errorf("%s: is a directory, not a file", r.input)
	}
	f, err := os.Open(r.input)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", r.input, plainCause(err))
	}
	return f, r.input, nil
}

// errNoFile is a missing file in a user's words.
var errNoFile = errors.New("no such file")

// plainCause is what the operating system said, without the path and the call.
func plainCause(err error) error {
	var perr *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errNoFile
	case errors.As(err, &perr):
		return perr.Err
	}
	return err
}
