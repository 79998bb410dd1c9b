package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype/internal/memoryview"
	"github.com/qtype-dev/qtype/internal/memoryview/replay"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/memory/transcript"
	"github.com/qtype-dev/qtype/runtime"
)

// memoryTransfer is one call of a subcommand that writes sessions to a file, or reads them.
type memoryTransfer struct {
	memoryCommand
	failed, variables, full, skip bool
	input                         string    // import: the file
	from                          *enumFlag // import: the format of the file
}

func newExport(s *streams) *cobra.Command {
	r := &memoryTransfer{memoryCommand: memoryCommand{streams: s}}
	c := r.withSession(r.command("export", "Write a session's messages as JSON lines, in OpenAI's format", r.export))
	c.Flags().BoolVar(&r.full, "full", false, "include everything that qtype memory import reads: ids, times, turns, events and variables")
	c.Flags().BoolVar(&r.all, "all", false, "all sessions of the memory, in one file; needs --full")
	c.Flags().BoolVar(&r.failed, "failed", false, "include the messages of failed turns")
	c.Flags().BoolVar(&r.variables, "variables", false, "include the session's variables, as an operation that qtype memory replay reads")
	return c
}

func (r *memoryTransfer) export(ctx context.Context, app *runtime.App) error {
	switch {
	case r.all && !r.full:
		return usagef("--all needs --full: the lines of several sessions need their ids")
	case r.all && r.session != "":
		return usagef("--session and --all exclude each other")
	case r.all:
		return r.exportAll(ctx, app)
	}
	m, err := r.conversation(ctx, app)
	if err != nil {
		return err
	}
	if r.full {
		out := bufio.NewWriter(r.Out)
		return errors.Join(transcript.ExportSession(ctx, m.Memory, r.session, out), out.Flush())
	}
	if err := replay.Export(ctx, m.Memory, r.session, r.Out, r.failed); err != nil || !r.variables {
		return err
	}
	return replay.ExportVariables(ctx, m.Memory, r.session, r.Out)
}

func (r *memoryTransfer) exportAll(ctx context.Context, app *runtime.App) error {
	declared, err := r.one(app.Spec())
	if err != nil {
		return err
	}
	m := memoryview.Of(app, declared.ID)
	sessions, err := m.Sessions(ctx)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(r.Out)
	for _, s := range sessions {
		if err := transcript.ExportSession(ctx, m.Memory, s.Session, out); err != nil {
			return errors.Join(err, out.Flush())
		}
	}
	return out.Flush()
}

func newImport(s *streams) *cobra.Command {
	r := &memoryTransfer{memoryCommand: memoryCommand{streams: s}}
	c := r.withSession(r.command("import", "Make sessions of the lines of qtype memory export, or of a file of another program", r.importSessions))
	c.Long = `Makes sessions of a file:

  lines        what qtype memory export --full writes, with the ids of its sessions,
               or messages in OpenAI's format, one on a line, which need --session
  langchain    LangChain's messages_to_dict or dumps, as JSON, of a list of messages, or an
               object that has one, such as a checkpoint of LangGraph; needs --session
  langchain4j  the list of LangChain4j's ChatMessageSerializer; needs --session`
	c.Example = `  qtype memory export app.qtype.yaml --full --all > all.jsonl
  qtype memory import app.qtype.yaml --in all.jsonl
  qtype memory import app.qtype.yaml --session c-1 --in messages.json --from-format langchain4j`
	c.Flags().Lookup("session").Usage = "`ID` of the new session (default: the ids of the file)"
	c.Flags().StringVar(&r.input, "in", "-", "`FILE` with the conversations; - is standard input")
	r.from = newEnumFlag(append([]string{"auto"}, transcript.Formats()...)...)
	c.Flags().Var(r.from, "from-format", "format of the file: auto detects it")
	c.Flags().BoolVar(&r.skip, "skip-existing", false, "leave sessions alone that exist already, for example to continue an import")
	return c
}

func (r *memoryTransfer) importSessions(ctx context.Context, app *runtime.App) error {
	declared, err := r.one(app.Spec())
	if err != nil {
		return err
	}
	in, name, err := openInput(r.streams, r.input)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // only read
	o := transcript.Options{SkipExisting: r.skip}
	if r.session != "" {
		o.Session = &r.session
	}
	if r.from.value != "auto" {
		o.Format = transcript.Format(r.from.value)
	}
	return r.importAll(ctx, memoryview.Of(app, declared.ID), in, name, o)
}

// importAll imports and writes a line for each session.
func (r *memoryTransfer) importAll(ctx context.Context, m memoryview.Memory, in io.Reader, name string, o transcript.Options) error {
	made, existed := 0, 0
	var failed error
	err := transcript.ImportAll(ctx, m.Memory, in, o, func(one transcript.Imported) {
		if one.Existed {
			existed++
			return
		}
		made++
		info, err := m.Info(ctx, one.Session)
		if err == nil {
			_, err = fmt.Fprintf(r.Out, "memory %s: session %s has %s\n", m.ID, terminal.Clean(one.Session), textfmt.Count(int(info.Messages), "message"))
		}
		failed = errors.Join(failed, err)
	})
	if existed > 0 {
		_, wrong := fmt.Fprintf(r.Out, "memory %s: %s existed already\n", m.ID, textfmt.Count(existed, "session"))
		failed = errors.Join(failed, wrong)
	}
	if err == nil {
		return failed
	}
	if line, ok := errors.AsType[*transcript.LineError](err); ok {
		err = fmt.Errorf("%s:%d: %w", name, line.Line, line.Err)
	}
	if made > 0 {
		err = fmt.Errorf("%w (%s before it stored; --skip-existing continues)", err, textfmt.Count(made, "session"))
	}
	return err
}
