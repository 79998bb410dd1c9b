package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/batch"
	"github.com/qtype-dev/qtype/internal/clienttool"
	"github.com/qtype-dev/qtype/internal/terminal"
)

// runCommand is one call of qtype run.
type runCommand struct {
	*streams
	batch.Config
	format   *enumFlag
	clients  *clients
	store    storeFlag
	flags    *pflag.FlagSet
	suspend  suspendFlags
	trace    traceFlag
	log      logLevel
	engine   *enumFlag
	temporal temporalFlags
	access   accessFlags
}

func newRun(s *streams) *cobra.Command {
	r := &runCommand{streams: s, clients: newClients(s), format: newEnumFlag("", "table", "text", "jsonl", "json", "csv", "tsv"), engine: newEnumFlag("local", "temporal")}
	c := &cobra.Command{
		Use:   "run APP",
		Short: "Run a flow once, or over every row of a file",
		Example: `  qtype run app.qtype.yaml -i '{"message": "Where is my parcel?"}' --session c-014
  qtype run app.qtype.yaml -I messages.csv -o replies.parquet
  qtype run app.qtype.yaml -I messages.csv --errors failed.jsonl >replies.jsonl`,
		Args: arguments("a document: qtype run APP"), ValidArgsFunction: yamlFiles,
		RunE: func(c *cobra.Command, args []string) error {
			if err := r.log.check(c); err != nil {
				return err
			}
			r.Quiet = r.log.quiet
			return r.run(r.log.context(c.Context(), r.streams), args[0])
		},
	}
	r.addTo(c)
	groupHelp(c)
	return c
}

// addTo declares the flags of qtype run in the groups of its help.
func (r *runCommand) addTo(c *cobra.Command) {
	f := c.Flags()
	r.flags = f
	f.SortFlags = false
	addFlags(f, "Input and output", func() {
		f.StringVarP(&r.Flow, "flow", "f", "", "`ID` of the flow (default: the first one)")
		f.StringVarP(&r.Input, "input", "i", "", "input: `JSON` object or array, text, @FILE, or - for stdin")
		f.StringVarP(&r.InputFile, "input-file", "I", "", "run over every row of `FILE` (.csv .tsv .json .jsonl .parquet .xlsx), or - for stdin")
		f.StringVarP(&r.Output, "output", "o", "", "write the results to `FILE`: .csv .tsv .json .jsonl .parquet (without a suffix: Parquet)")
		f.BoolVar(&r.MakeFolders, "mkdir", false, "create the folders of -o and --errors")
		r.format.addTo(c, "format", "", "output format (default: table on a terminal, text for a single input there, otherwise jsonl)")
	})
	addFlags(f, "Rows and failures", func() {
		f.Int64Var(&r.Offset, "offset", 0, "skip the first `N` rows")
		f.Int64Var(&r.Limit, "limit", 0, "process at most `N` rows")
		f.StringVar(&r.ErrorFile, "errors", "", "write the failed rows, with their errors, to `FILE`")
		f.BoolVar(&r.FailFast, "fail-fast", false, "stop at the first failed row")
		f.Int64Var(&r.MaxFailures, "max-failures", 0, "stop after `N` failed rows")
		f.BoolVar(&r.Resume, "resume", false, "resume an interrupted run (with -I and -o)")
		f.BoolVar(&r.RetryFailed, "retry-failed", false, "with --resume, retry failed rows")
		f.BoolVar(&r.Restart, "restart", false, "discard an interrupted run and start over")
	})
	addFlags(f, "Engine", func() {
		r.engine.addTo(c, "engine", "", "run the rows in this process (local), or on workers (temporal; see qtype worker)")
		r.temporal.addRunTo(f)
	})
	addFlags(f, "Conversations", func() {
		f.StringVarP(&r.Session, "session", "s", "", "`ID` of the session of all rows")
		f.StringVar(&r.SessionColumn, "session-column", "", "`COLUMN` with the session of each row (default: session_id or session)")
		f.BoolVar(&r.SessionPerRow, "session-per-row", false, "a new session for each row")
		f.StringVar(&r.User, "user", "", "`USER` to whom the sessions belong")
		f.StringVar(&r.UserColumn, "user-column", "", "`COLUMN` with the user of each row (default: user_id or user)")
		f.BoolVar(&r.Ephemeral, "ephemeral", false, "keep memories in RAM only")
		r.store.addTo(f)
	})
	addFlags(f, "Tools and approvals", func() {
		r.clients.flags(f)
		r.suspend.addTo(f)
	})
	addFlags(f, "Access", func() { r.access.addTo(f) })
	addFlags(f, "Messages", func() {
		r.trace.addTo(f)
		r.log.addTo(c, "no progress; failures and warnings only")
	})
}

// check rejects flags that exclude each other, and files that cannot be written.
func (r *runCommand) check() error {
	if r.Output != "" && r.format.value != "" {
		return usagef("--format is for standard output; the format of -o is that of its extension")
	}
	r.Config.Streams = &r.streams.Streams
	if err := r.Check(r.flags.Changed); err != nil {
		return err
	}
	if err := r.suspend.check(r.InputFile, r.Ephemeral); err != nil {
		return err
	}
	if err := r.checkEngine(); err != nil {
		return err
	}
	if err := r.clients.audit.check(r.InputFile, r.Output, r.ErrorFile); err != nil {
		return err
	}
	return r.trace.check(r.InputFile, r.Output, r.ErrorFile, r.clients.audit.path())
}

func (r *runCommand) run(ctx context.Context, path string) (err error) {
	if err := r.check(); err != nil {
		return err
	}
	p, list := qtype.Check(ctx, path, r.access.options(qtype.WithStrict())...)
	if err := list.Err(); err != nil {
		return err
	}
	if !r.Quiet {
		r.printWarnings(path, list)
		if r.Output != "" && filepath.Ext(r.Output) == "" {
			fmt.Fprintf(r.Err, "%s has no suffix: it is written as a Parquet file\n", terminal.Clean(r.Output))
		}
	}
	if r.InTerminal && r.ErrTerminal {
		lines := terminal.NewLines(r.In)
		defer lines.Close()
		r.clients.prompt(lines)
		r.Prompts = p.Document.Application != nil && clienttool.Prompts(p.Document.Application)
	}
	ctx, suspended, err := r.openSuspension(ctx, path, p.Document.Application)
	if err != nil {
		return err
	}
	if err := r.openEngine(path); err != nil {
		return err
	}
	app, err := r.newApp(p, r.clients, &r.store, r.Ephemeral, &r.log)
	if err != nil {
		return err
	}
	defer closeApp(ctx, app, &err)
	ctx, sendTraces := r.startTraces(ctx, app, &r.log)
	defer sendTraces()
	ctx, trace, closeTrace, err := r.trace.start(ctx, r.streams, app, "row")
	if err != nil {
		return err
	}
	defer closeTrace(&err)
	ctx = r.clients.audit.context(ctx)
	r.Format, r.Command, r.Trace = r.format.value, r.args, trace
	err = suspended(batch.Run(ctx, app, r.Config))
	if errors.Is(err, batch.ErrRowsFailed) {
		return errSilent
	}
	return err
}
