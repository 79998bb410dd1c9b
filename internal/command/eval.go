package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/batch"
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

// evalCommand is one call of qtype eval.
type evalCommand struct {
	*cli.Streams
	qtype.EvaluationConfig
	format   *cli.EnumFlag
	output   string
	html     string
	baseline string
	failed   string
	gate     *cli.EnumFlag
	batch    *cli.EnumFlag
	rebuy    bool
	record   string // all, missing, or empty for a replay
	clients  *appflags.Clients
	log      appflags.LogLevel
	access   appflags.Access
	flags    *pflag.FlagSet
}

// defaultWorkers is how many rows are evaluated at once.
const defaultWorkers = 4

func newEval(s *cli.Streams) *cobra.Command {
	e := &evalCommand{Streams: s, clients: appflags.NewClients(s), format: cli.NewEnumFlag("text", "json", "junit", "markdown"), batch: cli.NewEnumFlag("", batchAlways, batchAuto), gate: cli.NewEnumFlag(string(evalrun.GateProven), string(evalrun.GateMean))}
	c := &cobra.Command{
		Use:   "eval APP",
		Short: "Score a flow on a data set, and compare variants",
		Long: `Runs the rows of a file through a flow and scores each result by metrics. APP is a
document, or a file *.qtype-eval.yaml with metrics and variants of the application.
Without metrics the output is compared with the column expected.`,
		Example: `  qtype eval app.qtype.yaml --data rows.jsonl
  qtype eval app.qtype-eval.yaml -o report.json --html report.html
  qtype eval app.qtype-eval.yaml --trials 5 --until 0.02 --budget 5
  qtype eval app.qtype.yaml --attack system_leak
  qtype eval app.qtype-eval.yaml --baseline report.json --max-regression 0.02`,
		Args: cli.Arguments("a document or an evaluation: qtype eval APP"), ValidArgsFunction: cli.YAMLFiles,
		RunE: func(c *cobra.Command, args []string) error {
			e.Path = args[0]
			if err := e.log.Check(c); err != nil {
				return err
			}
			e.Advice = clienttool.AdviceWithoutPrompts
			return e.run(e.log.Context(c.Context(), e.Streams))
		},
	}
	f := c.Flags()
	e.flags = f
	f.SortFlags = false
	cli.AddFlags(f, "Data and metrics", func() {
		f.StringVar(&e.Data, "data", "", "rows of `FILE`: .csv .tsv .json .jsonl .parquet .xlsx")
		f.StringVarP(&e.Flow, "flow", "f", "", "`ID` of the flow (default: the first one)")
		f.StringArrayVar(&e.Metrics, "metric", nil, "add a metric: a `TYPE`, or its keys in YAML: 'type: regexp, pattern: ^ok'")
		f.StringVar(&e.Attack, "attack", "", "attack the flow in place of data: `CATEGORIES`, all, or keys of attacks in YAML")
		f.StringArrayVar(&e.Variants, "variant", nil, "add a variant: its `KEYS` in YAML: 'id: small, models: {writer: gpt-6-luna}'")
	})
	cli.AddFlags(f, "Rows", func() {
		f.StringVar(&e.Session, "session-column", "", "`COLUMN` with the session of each row (default: session_id or session)")
		f.Int64Var(&e.Limit, "limit", 0, "evaluate at most `N` rows")
		f.IntVar(&e.Trials, "trials", 0, "run each row `N` times (default: trials of the evaluation, or once)")
		f.Float64Var(&e.Until, "until", 0, "end when each score is known to ± this `NUMBER`, before all rows are run")
		f.Float64Var(&e.Budget, "budget", 0, "end when the models have cost this much `MONEY`, by their prices, those of judges and users, too")
		f.StringVar(&e.failed, "only-failed", "", "evaluate only the rows that failed, or did not pass a metric, in the report in `FILE`")
		f.IntVar(&e.Workers, "workers", defaultWorkers, "run `N` rows at once")
		e.batch.AddTo(c, "batch", "", "make the calls of models, judges and users in batches of their providers, which cost half and take minutes or hours (with -o); --batch=auto makes them at once where a batch would have few")
		f.Lookup("batch").NoOptDefVal = batchAlways
		f.BoolVar(&e.Detach, "detach", false, "with --batch, end with status 3 when the batches are sent; --resume collects the answers")
		f.BoolVar(&e.rebuy, "rebuy", false, "with --batch and --resume, make the calls of batches again that their providers do not have any more, although they may have been paid")
		f.StringVar(&e.record, "record", "", "call models and servers and write the recordings; `missing` adds only those that do not exist")
		f.Lookup("record").NoOptDefVal = "all"
		f.BoolVar(&e.Resume, "resume", false, "resume an interrupted evaluation (with -o)")
		f.BoolVar(&e.Restart, "restart", false, "discard an interrupted evaluation and start over")
	})
	cli.AddFlags(f, "Report", func() {
		f.StringVarP(&e.output, "output", "o", "", "write the report as JSON to `FILE`; an interrupted evaluation can then be resumed")
		f.StringVar(&e.html, "html", "", "write the report as a page to `FILE`")
		f.StringVar(&e.baseline, "baseline", "", "compare with the report in `FILE`")
		f.Float64Var(&e.MaxRegression, "max-regression", 0.05, "fail if a mean is worse than that of the baseline by more than this `SHARE`")
		e.gate.AddTo(c, "gate", "", "which regressions fail: those that are not chance, or all of the mean")
		e.format.AddTo(c, "format", "", "output format")
	})
	cli.AddFlags(f, "Tools and approvals", func() {
		e.clients.AddTo(f)
		e.clients.AddDenyTo(f)
	})
	cli.AddFlags(f, "Access", func() { e.access.AddTo(f) })
	cli.AddFlags(f, "Messages", func() { e.log.AddTo(c, "print only why the evaluation fails") })
	cli.GroupHelp(c)
	c.AddCommand(newEvalFrom(s), newEvalView(s), newJudgeCheck(s))
	return c
}

// checkOnlyFailed rejects flags that have no meaning for the failed rows of a report alone.
func (e *evalCommand) checkOnlyFailed() error {
	switch {
	case e.failed == "":
		return nil
	case e.Until > 0:
		return terminal.Usagef("--until and --only-failed exclude each other: failed rows are no sample of all")
	case e.Budget > 0:
		return terminal.Usagef("--budget and --only-failed exclude each other: failed rows are no sample of all")
	case e.baseline != "":
		return terminal.Usagef("--only-failed and --baseline exclude each other: the means would be of different rows")
	}
	return nil
}

// check rejects flags that exclude each other or have no effect.
func (e *evalCommand) check() error {
	for _, check := range []func() error{e.checkNumbers, e.checkOnlyFailed, e.checkWaits} {
		if err := check(); err != nil {
			return err
		}
	}
	switch {
	case e.flags.Changed("max-regression") && e.baseline == "":
		return terminal.Usagef("--max-regression requires --baseline")
	case e.flags.Changed("gate") && e.baseline == "":
		return terminal.Usagef("--gate requires --baseline")
	case remotefs.IsSame(e.output, e.html):
		return terminal.Usagef("-o and --html need different files")
	}
	for _, name := range []string{e.output, e.html} {
		if remotefs.IsSame(name, e.Path) {
			return terminal.Usagef("the report would replace %s: use another name", e.Path)
		}
	}
	return e.clients.Audit.Check(e.output, e.html, e.Data)
}

// checkWaits rejects flags of evaluations that are continued that have no effect.
func (e *evalCommand) checkWaits() error {
	switch {
	case e.Resume && e.Restart:
		return terminal.Usagef("--resume and --restart exclude each other")
	case (e.Resume || e.Restart) && e.output == "":
		return terminal.Usagef("--resume and --restart require -o: only an evaluation with a file can be resumed")
	case e.batch.Value != "" && e.output == "":
		return terminal.Usagef("--batch requires -o: an evaluation must be able to wait")
	case e.Detach && e.batch.Value == "":
		return terminal.Usagef("--detach requires --batch")
	case e.rebuy && (e.batch.Value == "" || !e.Resume):
		return terminal.Usagef("--rebuy requires --batch and --resume")
	}
	return nil
}

// openWaves prepares the waves of --batch; nil without it.
func openWaves(s *cli.Streams, batch, output string, quiet bool) *waves.Run {
	if batch == "" {
		return nil
	}
	w := waves.New(output + waves.Suffix)
	if batch == batchAuto {
		w.Least = leastCalls
	}
	if !quiet {
		w.Report = func(line string) { fmt.Fprintln(s.Err, terminal.Clean(line)) }
	}
	return w
}

// checkNumbers rejects numbers that are out of range.
func (e *evalCommand) checkNumbers() error {
	switch {
	case e.Limit < 0, e.flags.Changed("limit") && e.Limit == 0:
		return terminal.Usagef("--limit cannot be %d: expected a positive number of rows", e.Limit)
	case e.Trials < 0 || e.Trials > spec.MaxTrials, e.flags.Changed("trials") && e.Trials == 0:
		return terminal.Usagef("--trials cannot be %d: expected a number from 1 to %d", e.Trials, spec.MaxTrials)
	case !(e.Until >= 0 && e.Until < 0.5), e.flags.Changed("until") && e.Until == 0:
		return terminal.Usagef("--until cannot be %v: expected a number between 0 and 0.5", e.Until)
	case !(e.Budget >= 0), e.flags.Changed("budget") && e.Budget == 0:
		return terminal.Usagef("--budget cannot be %v: expected a positive amount", e.Budget)
	case e.Workers < 1:
		return terminal.Usagef("--workers cannot be %d: expected a positive number", e.Workers)
	case !(e.MaxRegression >= 0):
		return terminal.Usagef("--max-regression cannot be %v: expected a number from 0", e.MaxRegression)
	}
	return nil
}

// readReport reads a report; nil without a name.
func readReport(name string) (*evalrun.Report, error) {
	if name == "" {
		return nil, nil
	}
	return evalrun.ReadReport(name)
}

func (e *evalCommand) run(ctx context.Context) (err error) {
	if err := e.check(); err != nil {
		return err
	}
	if e.Baseline, err = readReport(e.baseline); err != nil {
		return err
	}
	if e.OnlyFailed, err = readReport(e.failed); err != nil {
		return err
	}
	e.Gate = evalrun.Gate(e.gate.Value)
	if e.Record, err = recordMode(e.record); err != nil {
		return err
	}
	if e.output != "" {
		e.Journal = e.output + evalrun.JournalSuffix
	}
	e.Waves = openWaves(e.Streams, e.batch.Value, e.output, e.log.Quiet)
	if e.Waves != nil {
		e.Waves.Rebuy = e.rebuy
	}
	if e.ErrTerminal && !e.log.Quiet {
		e.Progress = func(done, total int) { fmt.Fprintf(e.Err, "\r%d/%d rows", done, total) }
	}
	files := evalrun.Files{JSON: e.output, HTML: e.html, Redact: redact.From(ctx).String}
	if err := files.Check(); err != nil {
		return err
	}
	e.Save, e.Written = files.Write, []string{e.output, e.html}
	report, err := qtype.Evaluate(e.clients.Audit.Context(waves.With(ctx, e.Waves)), e.EvaluationConfig, e.access.Options(qtype.WithLog(e.Logger("")), qtype.WithOptionsFor(e.clients.Options))...)
	if e.Progress != nil {
		fmt.Fprint(e.Err, "\r\x1b[K")
	}
	if err != nil {
		return e.ended(ctx, err)
	}
	return e.show(report)
}

// ended returns the error of an evaluation with what its user can do.
func (e *evalCommand) ended(ctx context.Context, err error) error {
	var usage *evalrun.UsageError
	switch {
	case errors.As(err, &usage):
		return terminal.Usagef("%s", usage)
	case errors.Is(err, waves.ErrDetached):
		fmt.Fprintln(e.Err, "waiting for batches; collect the answers with: "+terminal.Clean(batch.ResumeCommand(e.CommandLine)))
		return errDetached
	case isLost(err):
		return fmt.Errorf("%w: %s", err, batch.LostAdvice(e.CommandLine))
	case e.Waves != nil && e.Waves.Exists():
		return fmt.Errorf("%w: batches at providers go on; continue with --batch --resume", err)
	case e.output != "" && (ctx.Err() != nil || errors.Is(err, evalrun.ErrNotWritten)):
		return fmt.Errorf("%w: finished rows are in %s; continue with --resume", err, e.Journal)
	}
	return err
}

// isLost reports whether an evaluation has ended for lost batches.
func isLost(err error) bool {
	_, lost := errors.AsType[*waves.LostError](err)
	return lost
}

// show writes the report to standard output.
func (e *evalCommand) show(r *qtype.EvaluationReport) error {
	show := r.Text
	switch {
	case e.format.Value == "json":
		show = r.JSON
	case e.format.Value == "junit":
		show = r.JUnit
	case e.format.Value == "markdown":
		show = r.Markdown
	case e.log.Quiet:
		show = r.WriteViolations
	}
	if err := show(e.Out); err != nil {
		return err
	}
	if e.log.Quiet || e.format.Value == "json" || e.format.Value == "junit" { // the others have them
		for _, w := range r.Warnings {
			fmt.Fprintln(e.Err, "warning:", terminal.Clean(w))
		}
	}
	if r.Failed() {
		return cli.ErrSilent
	}
	return nil
}
