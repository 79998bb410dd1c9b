package command

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/batch"
	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/cli/appflags"
	"github.com/qtype-dev/qtype/internal/clienttool"
	"github.com/qtype-dev/qtype/internal/durable"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/waves"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/tool"
)

// runCommand is one call of qtype run.
type runCommand struct {
	*cli.Streams
	batch.Config
	format   *cli.EnumFlag
	tables   []string // keys of Table with their values
	clients  *appflags.Clients
	store    appflags.Store
	flags    *pflag.FlagSet
	suspend  suspendFlags
	trace    traceFlag
	log      appflags.LogLevel
	engine   *cli.EnumFlag
	batch    *cli.EnumFlag
	finish   string
	temporal appflags.Temporal
	access   appflags.Access
}

// The values of --batch: calls in batches, calls in batches where these have enough calls, calls at once by the tier flex, and
// calls in the background.
const (
	batchAlways = "always"
	batchAuto   = "auto"
	batchFlex   = "flex"
	batch2h     = "2h" // in the background, within this time
	batch8h     = "8h"
)

// leastCalls is the number of calls for which --batch=auto waits for a batch.
const leastCalls = 20

func newRun(s *cli.Streams) *cobra.Command {
	r := &runCommand{Streams: s, clients: appflags.NewClients(s), format: cli.NewEnumFlag("", "table", "text", "jsonl", "json", "csv", "tsv"), engine: cli.NewEnumFlag("local", "temporal"), batch: cli.NewEnumFlag("", batchAlways, batchAuto, batchFlex, batch2h, batch8h)}
	c := &cobra.Command{
		Use:   "run APP",
		Short: "Run a flow once, or over every row of a file",
		Example: `  qtype run app.qtype.yaml -i '{"message": "Where is my parcel?"}' --session c-014
  qtype run app.qtype.yaml -I messages.csv -o replies.jsonl
  qtype run app.qtype.yaml -I messages.csv --errors failed.jsonl >replies.jsonl`,
		Args: cli.Arguments("a document: qtype run APP"), ValidArgsFunction: cli.YAMLFiles,
		RunE: func(c *cobra.Command, args []string) error {
			if err := r.log.Check(c); err != nil {
				return err
			}
			r.Quiet = r.log.Quiet
			return r.run(r.log.Context(c.Context(), r.Streams), args[0])
		},
	}
	r.addTo(c)
	cli.GroupHelp(c)
	return c
}

// addTo declares the flags of qtype run in the groups of its help.
func (r *runCommand) addTo(c *cobra.Command) {
	f := c.Flags()
	r.flags = f
	f.SortFlags = false
	cli.AddFlags(f, "Input and output", func() {
		f.StringVarP(&r.Flow, "flow", "f", "", "`ID` of the flow (default: the first one)")
		f.StringVarP(&r.Input, "input", "i", "", "input: `JSON` object or array, text, @FILE, or - for stdin")
		f.StringVarP(&r.InputFile, "input-file", "I", "", "run over every row of `FILE` (.csv .tsv .json .jsonl .parquet .xlsx), or - for stdin")
		f.StringArrayVar(&r.tables, "table", nil, "how the file of -I is read, as `KEY=VALUE`: "+strings.Join(spec.TableKeys(), ", ")+" (repeatable)")
		f.StringVarP(&r.Output, "output", "o", "", "write the results to `FILE`: .csv .tsv .json .jsonl .parquet (without a suffix: Parquet)")
		f.BoolVar(&r.MakeFolders, "mkdir", false, "create the folders of -o and --errors")
		r.format.AddTo(c, "format", "", "output format (default: table on a terminal, text for a single input there, otherwise jsonl)")
	})
	cli.AddFlags(f, "Rows and failures", func() {
		f.Int64Var(&r.Offset, "offset", 0, "skip the first `N` rows")
		f.Int64Var(&r.Limit, "limit", 0, "process at most `N` rows")
		f.StringVar(&r.ErrorFile, "errors", "", "write the failed rows, with their errors, to `FILE`")
		f.BoolVar(&r.FailFast, "fail-fast", false, "stop at the first failed row")
		f.Int64Var(&r.MaxFailures, "max-failures", 0, "stop after `N` failed rows")
		f.DurationVar(&r.Outage, "outage", 10*time.Minute, "let rows wait up to `TIME` for a model or store that is away; 0 lets them fail, as a single input does without this flag")
		f.BoolVar(&r.Resume, "resume", false, "resume an interrupted run (with -I and -o)")
		f.BoolVar(&r.RetryFailed, "retry-failed", false, "with --resume, retry failed rows")
		f.BoolVar(&r.Restart, "restart", false, "discard an interrupted run and start over")
	})
	cli.AddFlags(f, "Engine", func() {
		r.batch.AddTo(c, "batch", "", "make the calls of models in batches of their providers, which cost half and take minutes or hours (with -I and -o); --batch=auto makes them at once where a batch would have few, --batch=flex makes all at once, by a cheaper tier of service (with -I), and --batch=2h or 8h makes those of OpenAI's Responses API in the background, each within this time")
		f.Lookup("batch").NoOptDefVal = batchAlways
		f.BoolVar(&r.Detach, "detach", false, "with --batch, end with status 3 when the batches are sent, or on Temporal when the workflow is started; --resume collects the answers")
		f.BoolVar(&r.Rebuy, "rebuy", false, "with --batch and --resume, make the calls of batches again that their providers do not have any more, although they may have been paid")
		f.StringVar(&r.finish, "finish-after", "", "with --batch, make the calls that are left at once after a `TIME` (2h), or when so many rows (100), or such a share of them (5%), are left")
		f.BoolVar(&r.Cancel, "cancel", false, "with --batch, cancel the batches of an interrupted run at their providers, and end")
		r.engine.AddTo(c, "engine", "", "run the rows in this process (local), or on workers (temporal; see qtype worker)")
		r.temporal.AddRunTo(f)
	})
	cli.AddFlags(f, "Conversations", func() {
		f.StringVarP(&r.Session, "session", "s", "", "`ID` of the session of all rows")
		f.StringVar(&r.SessionColumn, "session-column", "", "`COLUMN` with the session of each row (default: session_id or session)")
		f.BoolVar(&r.SessionPerRow, "session-per-row", false, "a new session for each row")
		f.StringVar(&r.User, "user", "", "`USER` to whom the sessions belong")
		f.StringVar(&r.UserColumn, "user-column", "", "`COLUMN` with the user of each row (default: user_id or user)")
		f.BoolVar(&r.Ephemeral, "ephemeral", false, "keep memories in RAM only")
		r.store.AddTo(f)
	})
	cli.AddFlags(f, "Tools and approvals", func() {
		r.clients.AddTo(f)
		r.clients.AddDenyTo(f)
		r.suspend.addTo(f)
	})
	cli.AddFlags(f, "Access", func() { r.access.AddTo(f) })
	cli.AddFlags(f, "Messages", func() {
		f.StringVar(&r.OnEnd, "on-end", "", "at the end, run `PROGRAM [ARGUMENTS]`, without a shell, or call an https:// address: each gets the end as JSON")
		f.BoolVar(&r.ProgressJSON, "json-progress", false, "with --batch, write the progress to standard output, one object a line")
		r.trace.addTo(f)
		r.log.AddTo(c, "no progress; failures and warnings only")
	})
}

// check rejects flags that exclude each other, and files that cannot be written.
func (r *runCommand) check(ctx context.Context) error {
	if r.Output != "" && r.format.Value != "" {
		return terminal.Usagef("--format is for standard output; the format of -o is that of its extension")
	}
	for _, text := range r.tables {
		key, value, ok := strings.Cut(text, "=")
		if !ok {
			return terminal.Usagef("--table %s: expected KEY=VALUE, such as delimiter=semicolon", text)
		}
		if err := r.Table.SetKey(key, value); err != nil {
			return terminal.Usagef("--table: %v", err)
		}
	}
	r.Config.Streams = &r.Streams.Streams
	if r.flags.Changed("finish-after") {
		var err error
		if r.Finish, err = batch.ParseFinish(r.finish); err != nil {
			return err
		}
	}
	switch r.batch.Value {
	case batchAlways, batchAuto:
		if r.Waves = waves.New(r.Output + waves.Suffix); r.batch.Value == batchAuto {
			r.Waves.Least = leastCalls
		}
	case batch2h, batch8h:
		r.Waves = waves.New(r.Output + waves.Suffix)
		r.Waves.Window = r.batch.Value
	case batchFlex:
		r.Flex = true
	}
	if r.InputFile == "" && !r.flags.Changed("outage") { // a person waits for the answer
		r.Outage = 0
	}
	if err := r.Check(ctx, r.flags.Changed); err != nil {
		return err
	}
	if err := r.suspend.check(r.InputFile, r.Ephemeral); err != nil {
		return err
	}
	if err := r.checkEngine(); err != nil {
		return err
	}
	if r.clients.User.Deny && r.suspend.file != "" {
		return terminal.Usagef("--deny and --suspend exclude each other: the one rejects what the other waits for")
	}
	if err := r.clients.Audit.Check(r.InputFile, r.Output, r.ErrorFile); err != nil {
		return err
	}
	return r.trace.check(r.InputFile, r.Output, r.ErrorFile, r.clients.Audit.Path())
}

func (r *runCommand) run(ctx context.Context, path string) (err error) {
	if err := r.check(ctx); err != nil {
		return err
	}
	p, list := qtype.Check(waves.With(ctx, r.Waves), path, r.access.Options(qtype.WithStrict())...)
	if err := list.Err(); err != nil {
		return err
	}
	if !r.Quiet {
		printWarnings(r.Streams, path, list)
		if r.Output != "" && filepath.Ext(r.Output) == "" {
			fmt.Fprintf(r.Err, "%s has no suffix: it is written as a Parquet file\n", terminal.Clean(r.Output))
		}
	}
	if r.InTerminal && r.ErrTerminal {
		lines := terminal.NewLines(r.In)
		defer lines.Close()
		r.clients.Prompt(lines)
		r.Prompts = p.Document.Application != nil && clienttool.Prompts(p.Document.Application)
	}
	ctx, suspended, err := r.openSuspension(ctx, path, p.Document.Application)
	if err != nil {
		return err
	}
	if err := r.openEngine(ctx, path); err != nil {
		return err
	}
	var opts []qtype.Option
	if r.Flex {
		opts = append(opts, qtype.WithFlex())
	}
	app, err := newApp(r.Streams, p, r.clients, &r.store, r.Ephemeral, &r.log, opts...)
	if err != nil {
		return err
	}
	defer appflags.CloseApp(ctx, app, &err)
	ctx, sendTraces := startTraces(ctx, r.Streams, app, &r.log)
	defer sendTraces()
	ctx, trace, closeTrace, err := r.trace.start(ctx, r.Streams, app, "row")
	if err != nil {
		return err
	}
	defer closeTrace(&err)
	ctx = r.clients.Audit.Context(ctx)
	r.Format, r.Command, r.Trace = r.format.Value, r.CommandLine, trace
	err = suspended(batch.Run(ctx, app, r.Config))
	switch {
	case errors.Is(err, batch.ErrRowsFailed):
		return cli.ErrSilent
	case errors.Is(err, batch.ErrDetached):
		return errDetached
	}
	return err
}

// checkEngine rejects flags that an engine does not have.
func (r *runCommand) checkEngine() error {
	isTemporal := r.engine.Value == "temporal"
	if err := r.temporal.Check(isTemporal); err != nil || !isTemporal {
		return err
	}
	if r.Flex {
		return terminal.Usagef("--batch=flex is not available with --engine temporal: workers make calls as their document declares; request the tier there, by service_tier in the inference_params of its models")
	}
	if r.Waves != nil && r.Waves.Window != "" {
		return terminal.Usagef("--batch=%[1]s is not available with --engine temporal: use --batch there, or --batch=%[1]s in this process", r.Waves.Window)
	}
	if r.suspend.file != "" {
		return terminal.Usagef("--suspend is not available with --engine temporal")
	}
	if r.clients.User.Deny {
		return terminal.Usagef("--deny is not available with --engine temporal: rows wait for qtype runs answer")
	}
	for _, name := range []string{"client-tool", "approve", "store"} {
		if r.flags.Lookup(name).Changed {
			return terminal.Usagef("--%s is a flag of qtype worker with --engine temporal: workers run the rows", name)
		}
	}
	return nil
}

// openEngine sets the engine of the run; that of this process needs none.
func (r *runCommand) openEngine(ctx context.Context, document string) error {
	if r.engine.Value != "temporal" {
		return nil
	}
	engine, err := durable.From(ctx)
	if err != nil {
		return err
	}
	cfg, err := r.temporal.At(document)
	if err != nil {
		return err
	}
	r.Engine = engine.Batch(cfg)
	return nil
}

// errSuspended ends a run that waits for approvals; what it waits for was printed.
var errSuspended = fmt.Errorf("the run waits for approvals: %w", cli.ErrSilent)

// errDetached ends a run that waits for batches; how to continue it was printed.
var errDetached = fmt.Errorf("the run waits for batches: %w", cli.ErrSilent)

// suspendFlags let a run wait for approvals by other processes.
type suspendFlags struct {
	file    string
	answers []string // N=ANSWER
}

func (s *suspendFlags) addTo(f *pflag.FlagSet) {
	f.StringVar(&s.file, "suspend", "", "store a run that needs an approval in `FILE` and end with status 3; if FILE exists, continue its run")
	f.StringArrayVar(&s.answers, "answer", nil, "with --suspend, answer approval `N`: N=yes, N=no, or N=REASON to reject the call (repeatable)")
}

// check rejects flags that exclude each other.
func (s *suspendFlags) check(inputFile string, ephemeral bool) error {
	switch {
	case s.file == "" && len(s.answers) > 0:
		return terminal.Usagef("--answer requires --suspend")
	case s.file != "" && inputFile != "":
		return terminal.Usagef("--suspend and -I exclude each other: it is for the input of -i")
	case s.file != "" && ephemeral:
		return terminal.Usagef("--suspend and --ephemeral exclude each other: another process continues the run")
	}
	return nil
}

// openSuspension returns the context of a run that may be suspended, and a function that
// turns the error of the run into the error of the command. Without --suspend both change
// nothing.
func (r *runCommand) openSuspension(ctx context.Context, path string, app *spec.Application) (context.Context, func(error) error, error) {
	if r.suspend.file == "" {
		return ctx, func(err error) error { return err }, nil
	}
	in := clienttool.RunInput{Document: path, Flow: r.Flow, Input: r.Input, Session: r.Session, User: r.User}
	run, err := in.Describe(app)
	if err != nil {
		return ctx, nil, err
	}
	s, err := clienttool.OpenSuspension(r.suspend.file, run, r.approved)
	if err != nil {
		return ctx, nil, terminal.Usagef("--suspend: %s", err)
	}
	if err := s.AnswerAll(r.suspend.answers); err != nil {
		return ctx, nil, err
	}
	r.clients.Suspension, r.RunID = s, s.RunID()
	ctx, stop := s.Context(ctx)
	return ctx, func(err error) error {
		defer stop(nil)
		if err != nil && s.WriteWaiting(r.Err) {
			return errSuspended
		}
		if err != nil {
			return err
		}
		return s.Remove()
	}, nil
}

// approved approves the calls of --approve; a terminal is not prompted.
func (r *runCommand) approved(_ context.Context, call tool.Request) (yes bool, reason string, err error) {
	ids := r.clients.User.Approved
	return call.Tool.IsAmong(ids), "", nil
}
