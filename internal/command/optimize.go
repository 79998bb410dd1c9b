package command

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/cli/appflags"
	"github.com/qtype-dev/qtype/internal/clienttool"
	"github.com/qtype-dev/qtype/internal/eval/evalrun"
	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/waves"
	"github.com/qtype-dev/qtype/spec"
)

// optimizeCommand is one call of qtype optimize.
type optimizeCommand struct {
	*cli.Streams
	qtype.OptimizationConfig
	format  *cli.EnumFlag
	batch   *cli.EnumFlag
	output  string
	write   bool
	record  string // all, missing, or empty for a replay
	clients *appflags.Clients
	log     appflags.LogLevel
	access  appflags.Access
	flags   *pflag.FlagSet
}

func newOptimize(s *cli.Streams) *cobra.Command {
	o := &optimizeCommand{Streams: s, clients: appflags.NewClients(s), format: cli.NewEnumFlag("text", "json"), batch: cli.NewEnumFlag("", batchAlways, batchAuto)}
	c := &cobra.Command{
		Use:   "optimize APP",
		Short: "Improve prompts and settings by an evaluation",
		Long: `Changes system messages, templates and other values of a document so that its evaluation has
better scores. APP is a file *.qtype-eval.yaml, whose key optimize says what may change and what it may
cost, or a document. The result is a patch. Rows that the search has not used decide: if they prove no
improvement, there is no patch, and the exit status is 1.`,
		Example: `  qtype optimize prompts.qtype-eval.yaml -o better.patch
  qtype optimize prompts.qtype-eval.yaml --write
  qtype optimize prompts.qtype-eval.yaml -o better.patch --resume`,
		Args: cli.Arguments("a document or an evaluation: qtype optimize APP"), ValidArgsFunction: cli.YAMLFiles,
		RunE: func(c *cobra.Command, args []string) error {
			o.Path = args[0]
			if err := o.log.Check(c); err != nil {
				return err
			}
			o.Advice = clienttool.AdviceWithoutPrompts
			return o.run(o.log.Context(c.Context(), o.Streams))
		},
	}
	f := c.Flags()
	o.flags = f
	f.SortFlags = false
	cli.AddFlags(f, "Data", func() {
		f.StringVar(&o.Data, "data", "", "rows of `FILE`: .csv .tsv .json .jsonl .parquet .xlsx")
		f.StringVarP(&o.Flow, "flow", "f", "", "`ID` of the flow (default: the first one)")
		f.StringVar(&o.Session, "session-column", "", "`COLUMN` with the session of each row (default: session_id or session)")
		f.IntVar(&o.Trials, "trials", 0, "run each row `N` times (default: trials of the evaluation, or once)")
		f.IntVar(&o.Workers, "workers", defaultWorkers, "run `N` rows at once")
		f.StringVar(&o.record, "record", "", "call models and servers and write the recordings; `missing` adds only those that do not exist")
		f.Lookup("record").NoOptDefVal = "all"
		o.batch.AddTo(c, "batch", "", "make the calls of rows in batches of their providers, which cost half and take minutes or hours (with -o); --batch=auto makes them at once where a batch would have few")
		f.Lookup("batch").NoOptDefVal = batchAlways
		f.BoolVar(&o.Resume, "resume", false, "resume an interrupted optimization (with -o)")
		f.BoolVar(&o.Restart, "restart", false, "discard an interrupted optimization and start over")
	})
	cli.AddFlags(f, "Result", func() {
		f.StringVarP(&o.output, "output", "o", "", "write the patch to `FILE`; an interrupted optimization can then be resumed")
		f.BoolVar(&o.write, "write", false, "change the document, if an improvement is found")
		o.format.AddTo(c, "format", "", "output format")
	})
	cli.AddFlags(f, "Tools and approvals", func() {
		o.clients.AddTo(f)
		o.clients.AddDenyTo(f)
	})
	cli.AddFlags(f, "Access", func() { o.access.AddTo(f) })
	cli.AddFlags(f, "Messages", func() { o.log.AddTo(c, "do not print the candidates") })
	cli.GroupHelp(c)
	return c
}

// check rejects flags that exclude each other or have no effect.
func (o *optimizeCommand) check() error {
	switch {
	case o.Trials < 0 || o.Trials > spec.MaxTrials, o.flags.Changed("trials") && o.Trials == 0:
		return terminal.Usagef("--trials cannot be %d: expected a number from 1 to %d", o.Trials, spec.MaxTrials)
	case o.Workers < 1:
		return terminal.Usagef("--workers cannot be %d: expected a positive number", o.Workers)
	case o.Resume && o.Restart:
		return terminal.Usagef("--resume and --restart exclude each other")
	case (o.Resume || o.Restart) && o.output == "":
		return terminal.Usagef("--resume and --restart require -o: only an optimization with a file can be resumed")
	case o.batch.Value != "" && o.output == "":
		return terminal.Usagef("--batch requires -o: an optimization must be able to wait")
	case o.Resume && o.record != "":
		return terminal.Usagef("--resume and --record exclude each other: calls of finished rows are not recorded")
	case remotefs.IsSame(o.output, o.Path):
		return terminal.Usagef("the patch would replace %s: use another name", o.Path)
	}
	return o.clients.Audit.Check(o.output, o.Data)
}

func (o *optimizeCommand) run(ctx context.Context) (err error) {
	if err := o.check(); err != nil {
		return err
	}
	if o.Record, err = recordMode(o.record); err != nil {
		return err
	}
	if o.output != "" {
		o.Journal, o.Written = o.output+".qtype-journal", []string{o.output}
		files := evalrun.Files{JSON: o.output}
		if err := files.Check(); err != nil {
			return err
		}
	}
	if !o.log.Quiet {
		o.Log = func(line string) { fmt.Fprintln(o.Err, terminal.Clean(redact.From(ctx).String(line))) }
	}
	o.Waves = openWaves(o.Streams, o.batch.Value, o.output, o.log.Quiet)
	report, err := qtype.Optimize(o.clients.Audit.Context(waves.With(ctx, o.Waves)), o.OptimizationConfig,
		o.access.Options(qtype.WithLog(o.Logger("")), qtype.WithOptionsFor(o.clients.Options))...)
	var usage *evalrun.UsageError
	switch {
	case errors.As(err, &usage):
		return terminal.Usagef("%s", usage)
	case err != nil && o.Waves != nil && o.Waves.Exists():
		return fmt.Errorf("%w: batches at providers go on; continue with --batch --resume", err)
	case err != nil && o.output != "" && (ctx.Err() != nil || errors.Is(err, evalrun.ErrNotWritten)):
		return fmt.Errorf("%w: finished rows are in %s; continue with --resume", err, o.Journal)
	case err != nil:
		return err
	}
	if err := o.show(report); err != nil {
		return err
	}
	if !report.Found {
		return cli.ErrSilent
	}
	if o.write {
		return report.Apply()
	}
	return nil
}

// show writes the report to standard output, with the patch if no file has it.
func (o *optimizeCommand) show(r *qtype.OptimizationReport) error {
	if o.format.Value == "json" {
		return r.JSON(o.Out)
	}
	if err := r.Text(o.Out); err != nil || r.Patch() == "" || o.output != "" || o.write {
		return err
	}
	_, err := io.WriteString(terminal.EscapeAll(o.Out), "\n"+r.Patch())
	return err
}
