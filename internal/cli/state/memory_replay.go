package state

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/memoryview/replay"
	"github.com/qtype-dev/qtype/internal/memoryview/transfer"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/memory/transcript"
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

func newExport(s *cli.Streams) *cobra.Command {
	r := newMemoryCommand(s, "export", "Write a session's messages as JSON lines, in OpenAI's format", withSession)
	var full, all, failed, variables bool
	f := r.cmd.Flags()
	f.BoolVar(&full, "full", false, "include everything that qtype memory import reads: ids, times, turns, events and variables")
	f.BoolVar(&all, "all", false, "all sessions of the memory, in one file; needs --full")
	f.BoolVar(&failed, "failed", false, "include the messages of failed turns")
	f.BoolVar(&variables, "variables", false, "include the session's variables, as an operation that qtype memory replay reads")
	r.check(func() error {
		switch {
		case all && !full:
			return terminal.Usagef("--all needs --full: the lines of several sessions need their ids")
		case all && r.Session != "":
			return terminal.Usagef("--session and --all exclude each other")
		}
		return nil
	})
	return r.do(func(ctx context.Context, app *runtime.App) error {
		if all {
			m, err := r.Open(app)
			if err != nil {
				return err
			}
			return transfer.ExportAll(ctx, m, r.Out)
		}
		m, session, err := r.Conversation(ctx, app)
		if err != nil {
			return err
		}
		if full {
			return transfer.Export(ctx, m, r.Out, session)
		}
		shortened, err := replay.Export(ctx, m.Memory, session, r.Out, failed)
		if shortened > 0 {
			fmt.Fprintf(r.Err, "warning: %s written without reasoning, commentary or items of providers, for which OpenAI's format has no place; --full keeps them\n", textfmt.Count(shortened, "message"))
		}
		if err != nil || !variables {
			return err
		}
		return replay.ExportVariables(ctx, m.Memory, session, r.Out)
	})
}

func newImport(s *cli.Streams) *cobra.Command {
	r := newMemoryCommand(s, "import", "Make sessions of the lines of qtype memory export, or of a file of another program", withSession)
	r.cmd.Long = `Makes sessions of a file:

  lines        what qtype memory export --full writes, with the ids of its sessions,
               or messages in OpenAI's format, one on a line, which need --session
  langchain    LangChain's messages_to_dict or dumps, as JSON, of a list of messages, or an
               object that has one, such as a checkpoint of LangGraph; needs --session
  langchain4j  the list of LangChain4j's ChatMessageSerializer; needs --session`
	r.cmd.Example = `  qtype memory export app.qtype.yaml --full --all > all.jsonl
  qtype memory import app.qtype.yaml --in all.jsonl
  qtype memory import app.qtype.yaml --session c-1 --in messages.json --from-format langchain4j`
	f := r.cmd.Flags()
	f.Lookup("session").Usage = "`ID` of the new session (default: the ids of the file)"
	input := f.String("in", "-", "`FILE` with the conversations; - is standard input")
	from := cli.NewEnumFlag(append([]string{"auto"}, transcript.Formats()...)...)
	f.Var(from, "from-format", "format of the file: auto detects it")
	skip := f.Bool("skip-existing", false, "leave sessions alone that exist already, for example to continue an import")
	r.check(func() error {
		if r.User != "" && r.Session == "" {
			return terminal.Usagef("--user needs --session: without it, sessions have the ids and users of the file")
		}
		return nil
	})
	return r.do(func(ctx context.Context, app *runtime.App) error {
		m, err := r.Open(app)
		if err != nil {
			return err
		}
		in, name, err := s.Open(*input)
		if err != nil {
			return err
		}
		defer func() { _ = in.Close() }() // only read
		file := transfer.File{In: in, Name: name, Options: transcript.Options{SkipExisting: *skip}}
		if r.Session != "" {
			stored := r.Stored(r.Session)
			file.Session = &stored
		}
		if from.Value != "auto" {
			file.Format = transcript.Format(from.Value)
		}
		return transfer.Import(ctx, m, file, r.Out)
	})
}

func newCopy(s *cli.Streams) *cobra.Command {
	r := newMemoryCommand(s, "copy", "Copy all sessions of a memory between two stores", 0)
	r.cmd.Long = `Copies the sessions of a memory from one store to another, of any kinds: with everything,
the vectors of retrieval and the stored index of words included. Each copy is read again and compared. The stores may be
in use; calling it again continues, and copies what has changed since. A session that went
on in the target is left alone. One of the stores is that of the document, unless both are
named. If its store is encrypted, its keys are used for both.`
	r.cmd.Example = `  qtype memory copy app.qtype.yaml --to postgres://localhost/conversations
  qtype memory copy app.qtype.yaml --from sqlite:old.db --unencrypted from`
	var stores transfer.Stores
	r.cmd.Flags().StringVar(&stores.From, "from", "", "`ADDRESS` of the store to read, such as sqlite:memory.db (default: that of the document)")
	r.cmd.Flags().StringVar(&stores.To, "to", "", "`ADDRESS` of the store to write (default: that of the document)")
	unencrypted := cli.NewEnumFlag("none", transfer.From, transfer.To)
	r.cmd.Flags().Var(unencrypted, "unencrypted", "the store that is not encrypted, though that of the document is: from or to")
	return r.do(func(ctx context.Context, app *runtime.App) error {
		stores.Unencrypted = unencrypted.Value
		return transfer.Copy(ctx, app, &r.Selection, stores, r.Out)
	})
}

func newReencrypt(s *cli.Streams) *cobra.Command {
	r := newMemoryCommand(s, "reencrypt", "Encrypt stored conversations again with the newest key", 0)
	r.cmd.Long = `Encrypts what the store of a memory has with the key of its encryption: what was encrypted
with one of the old_keys and, with allow_unencrypted, what was not encrypted. The store stays
in use: give the new key to all processes first. Each session is read again with the new key
alone and compared. After an interruption, calling it again continues. When it has ended,
old_keys and allow_unencrypted can be removed. The state that qtype serve keeps in the store,
cached results, rate limits and budgets are encrypted too.`
	r.cmd.Example = `  qtype memory reencrypt app.qtype.yaml
  qtype memory reencrypt app.qtype.yaml --memory chats`
	return r.do(func(ctx context.Context, app *runtime.App) error {
		return transfer.Reencrypt(ctx, app, &r.Selection, r.Out)
	})
}
