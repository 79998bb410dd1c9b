package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/checkpoint"
	"github.com/qtype-dev/qtype/internal/records"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
)

// runCommand is one call of qtype run.
type runCommand struct {
	*streams
	flow          string
	input         string
	inputFile     string
	output        string
	format        *enumFlag
	session       string
	sessionColumn string
	errors        string
	limit         int64 // rows to run, 0 for all
	offset        int64 // rows to pass over first
	failFast      bool
	maxFailures   int64 // failed rows that end the run, 0 for any number
	resume        bool
	restart       bool
	retryFailed   bool
	ephemeral     bool
	quiet         bool
	clients       *clients
	flags         *pflag.FlagSet
}

func newRun(s *streams) *cobra.Command {
	r := &runCommand{streams: s, clients: &clients{streams: s}, format: newChoice("", "table", "jsonl", "json", "csv", "tsv")}
	c := &cobra.Command{
		Use:   "run APP",
		Short: "Run a flow once, or over every row of a file",
		Example: `  qtype run app.qtype.yaml -i '{"message": "Where is my parcel?"}' --session c-014
  qtype run app.qtype.yaml -I messages.csv -o replies.parquet
  qtype run app.qtype.yaml -I messages.csv --errors failed.jsonl | jq .label`,
		Args: arguments("a document: qtype run APP"), ValidArgsFunction: yamlFiles,
		RunE: func(c *cobra.Command, args []string) error { return r.run(c.Context(), args[0]) },
	}
	f := c.Flags()
	r.flags = f
	f.SortFlags = false
	f.StringVarP(&r.flow, "flow", "f", "", "the flow's `ID`; the first one where it is left out")
	f.StringVarP(&r.input, "input", "i", "", "the input: `JSON` (an object, or an array of rows), a plain text, @file, or - for standard input")
	f.StringVarP(&r.inputFile, "input-file", "I", "", "run over every row of this `FILE`: .csv .tsv .json .jsonl .parquet")
	f.StringVarP(&r.output, "output", "o", "", "write the results to this `FILE`: .csv .tsv .json .jsonl .parquet")
	f.Var(r.format, "format", "how results are printed; a table on a terminal, else JSON lines")
	f.StringVarP(&r.session, "session", "s", "", "the `ID` of the conversation that all rows belong to")
	f.StringVar(&r.sessionColumn, "session-column", "", "the `COLUMN` that names each row's session; session_id, else session")
	f.BoolVar(&r.ephemeral, "ephemeral", false, "remember nothing after the run")
	f.StringVar(&r.errors, "errors", "", "write the rows that failed, with their errors, to this `FILE`")
	f.Int64Var(&r.offset, "offset", 0, "pass over the first `N` rows")
	f.Int64Var(&r.limit, "limit", 0, "run `N` rows at most")
	f.BoolVar(&r.failFast, "fail-fast", false, "end the run with the first row that fails")
	f.Int64Var(&r.maxFailures, "max-failures", 0, "end the run once `N` rows have failed")
	f.BoolVar(&r.resume, "resume", false, "go on with a run of -I and -o that was interrupted")
	f.BoolVar(&r.retryFailed, "retry-failed", false, "with --resume: run the rows again that failed before")
	f.BoolVar(&r.restart, "restart", false, "forget a run that was interrupted, and begin again")
	r.clients.flags(f)
	f.BoolVarP(&r.quiet, "quiet", "q", false, "no progress and no summary")
	_ = c.RegisterFlagCompletionFunc("format", r.format.complete) // fails only for a flag that is not there
	return c
}

// validateFlags refuses flags that contradict each other.
func (r *runCommand) validateFlags() error {
	switch {
	case r.input != "" && r.inputFile != "":
		return usagef("-i and -I exclude each other: a run has one input")
	case r.session != "" && r.sessionColumn != "":
		return usagef("--session and --session-column exclude each other")
	case r.output != "" && r.format.value != "":
		return usagef("--format is for standard output; a file's format is that of its name")
	}
	if err := r.consistentLimits(); err != nil {
		return err
	}
	for _, path := range []string{r.output, r.errors} {
		if path == "" {
			continue
		}
		if err := records.Writable(path); err != nil {
			return &usageError{reason: err.Error()}
		}
	}
	return r.checkDistinctFiles()
}

// checkDistinctFiles refuses a run that would write over its own input, or one of its
// files over another: the rows that stand there would be lost.
func (r *runCommand) checkDistinctFiles() error {
	switch {
	case oneFile(r.inputFile, r.output):
		return usagef("-o %s is the file of -I: a run does not write over its own input; give another name", r.output)
	case oneFile(r.inputFile, r.errors):
		return usagef("--errors %s is the file of -I: its other rows would be lost; give another name", r.errors)
	case oneFile(r.output, r.errors):
		return usagef("--errors %s is the file of -o, too; give another name", r.errors)
	}
	return nil
}

// oneFile tells whether two paths lead to one file, also by way of links.
func oneFile(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	one, err := os.Stat(remotefs.Path(a))
	if err != nil { // at an address, or a file that will be: its name must do
		return a == b || filepath.Clean(remotefs.Path(a)) == filepath.Clean(remotefs.Path(b))
	}
	two, err := os.Stat(remotefs.Path(b))
	return err == nil && one.Mode().IsRegular() && os.SameFile(one, two)
}

// consistentLimits refuses flags of long runs that contradict each other or
// have no effect.
func (r *runCommand) consistentLimits() error {
	switch {
	case r.limit < 0, r.flags.Changed("limit") && r.limit == 0:
		return usagef("--limit cannot be %d: it is a positive number of rows", r.limit)
	case r.offset < 0:
		return usagef("--offset cannot be %d: it is a number of rows", r.offset)
	case r.maxFailures < 0, r.flags.Changed("max-failures") && r.maxFailures == 0:
		return usagef("--max-failures cannot be %d: it is a positive number of rows", r.maxFailures)
	case r.failFast && r.maxFailures > 0:
		return usagef("--fail-fast and --max-failures exclude each other")
	case r.resume && r.restart:
		return usagef("--resume and --restart exclude each other")
	case r.retryFailed && !r.resume:
		return usagef("--retry-failed goes with --resume: in a new run there is nothing to do again")
	case (r.resume || r.restart) && (r.inputFile == "" || r.output == ""):
		return usagef("--resume and --restart go with -I and -o: only a run from file to file can be interrupted and resumed")
	}
	if r.failFast {
		r.maxFailures = 1
	}
	return nil
}

func (r *runCommand) run(ctx context.Context, path string) (err error) {
	if err := r.validateFlags(); err != nil {
		return err
	}
	app, err := r.open(ctx, path)
	if err != nil {
		return err
	}
	defer func() {
		if closing := app.Close(context.WithoutCancel(ctx)); err == nil {
			err = closing
		}
	}()
	flow, err := r.selectFlow(app)
	if err != nil {
		return err
	}
	in, err := r.openInput(ctx, flow)
	if err != nil {
		return err
	}
	defer in.close()
	models, err := app.Models(flow.ID)
	if err != nil {
		return err
	}
	j := &runJob{runCommand: r, app: app, flow: flow, in: in}
	stale := r.staleTempFiles()
	if j.results, err = r.newSink(ctx, flow, in); err != nil {
		return err
	}
	if j.log, j.note, err = r.openJournal(app, flow); err != nil {
		j.results.abort()
		return err
	}
	if j.log != nil {
		remove(stale)
	}
	if j.failed, err = r.newFailures(ctx, in, flow); err != nil {
		j.results.abort()
		return errors.Join(err, j.log.end(false))
	}
	gather, err := app.BatchSteps(flow)
	j.gathers = len(gather) > 0 || err != nil
	if j.failed != nil {
		j.failed.gathers = j.gathers
	}
	j.header(models)
	return j.execute(ctx)
}

// open checks the document and readies it.
func (r *runCommand) open(ctx context.Context, path string) (*runtime.App, error) {
	p, faults := qtype.Check(ctx, path, qtype.WithStrict())
	if err := faults.Err(); err != nil {
		return nil, err
	}
	if !r.quiet {
		r.printWarnings(path, faults)
	}
	if r.inTerminal && r.errTerminal {
		r.clients.lines = newLines(r.in)
	}
	opts, err := r.clients.options(p.Document.Application)
	if err != nil {
		return nil, err
	}
	if r.ephemeral {
		opts = append(opts, qtype.WithEphemeral())
	}
	if !r.quiet {
		opts = append(opts, qtype.WithLog(r.printWarning("")), qtype.WithWarnings(r.printWarning("warning: ")))
	}
	return qtype.New(p, opts...)
}

// printWarning writes a line to standard error; it may be called at any time.
func (s *streams) printWarning(before string) func(string) {
	var mu sync.Mutex
	return func(line string) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintln(s.err, before+clean(line))
	}
}

// selectFlow is the flow to run.
func (r *runCommand) selectFlow(app *runtime.App) (*spec.Flow, error) {
	flow, err := app.Flow(r.flow)
	var none *runtime.NoFlowError
	if errors.As(err, &none) {
		return nil, fmt.Errorf("%w%s", err, didYouMean(none.ID, none.Flows))
	}
	return flow, err
}

// runJob is a run that has all it needs.
type runJob struct {
	*runCommand
	app     *runtime.App
	flow    *spec.Flow
	in      *input
	results sink
	failed  *failures
	log     *runJournal // the journal; nil where there is none
	note    string      // why there is none, where somebody may expect one
	gathers bool        // what comes out belongs to no single row of the input
}

// rowsRead is how many rows of the input the run has taken, with those of earlier runs.
func (j *runJob) rowsRead(progress *runtime.Progress) int64 {
	read, _, _ := progress.Rows()
	if j.log != nil {
		read += j.log.before
	}
	return read
}

// longRunThreshold is how many rows a run has of which somebody would want to resume it.
const longRunThreshold = 100

// header tells what is run on what.
func (j *runJob) header(models []model.Info) {
	if j.quiet {
		return
	}
	parts := []string{j.app.Spec().ID, "flow " + j.flow.ID}
	if j.in.name != "" {
		rows := "rows"
		if j.in.total >= 0 {
			rows = count(j.in.total, "row")
		}
		parts = append(parts, rows+" from "+j.in.name)
	}
	for _, m := range models {
		parts = append(parts, describeModel(m))
	}
	fmt.Fprintln(j.err, clean(strings.Join(parts, " · ")))
	switch {
	case j.log != nil && j.log.before > 0:
		fmt.Fprintf(j.err, "resumed: %s %s before\n", count(j.log.before, "row"), j.log.progress())
	case j.note != "" && (j.in.total < 0 || j.in.total >= longRunThreshold):
		fmt.Fprintln(j.err, "note: "+clean(j.note))
	}
}

// describeModel names a model; one that is none says so.
func describeModel(m model.Info) string {
	switch {
	case m.Replaces != "":
		return fmt.Sprintf("model %s stands in for %s, which has no credentials (offline: answers are not a model's)", m.ID, m.Replaces)
	case m.Mock:
		return fmt.Sprintf("model %s (offline: answers are not a model's)", m.ID)
	case m.Name != "" && m.Name != m.ID:
		return fmt.Sprintf("model %s (%s)", m.ID, m.Name)
	}
	return "model " + m.ID
}

// execute takes the rows through the flow and closes what was opened.
func (j *runJob) execute(ctx context.Context) error {
	progress := &runtime.Progress{}
	sum := newSummary(ctx, j, progress)
	show := j.showProgress(ctx, progress)
	err := j.each(ctx, progress, sum, show)
	broken := err == nil && j.in.fault != nil
	if broken {
		err = j.in.fault
	}
	if err == nil {
		err = j.results.close()
		sum.written = err == nil && j.output != ""
	} else {
		j.results.abort()
	}
	show.stop()
	if failing := j.failed.close(); err == nil {
		err = failing
	}
	if err != nil && ctx.Err() != nil { // an interrupt after the last row stops nothing
		_, done, _ := progress.Rows()
		if j.gathers {
			done = j.rowsRead(progress)
		}
		err = fmt.Errorf("%w after %s", errInterrupted, count(done, "row"))
	}
	switch {
	case broken && j.output != "": // what is wrong with the input must be mended: a run of that is another
		err = fmt.Errorf("%w: %s was not written", err, j.output)
	case err != nil && !broken:
		err = j.explainUnfinished(err)
	}
	if ending := j.log.end(err == nil || broken); err == nil {
		err = ending
	}
	if _, done, _ := progress.Rows(); !j.quiet && (err == nil || done > 0) { // of a run that could not begin there is nothing to sum up
		sum.print(context.WithoutCancel(ctx))
	}
	if err == nil && sum.failed > 0 {
		err = errSilent
	}
	return err
}

// errInterrupted ends a command that the user has stopped.
var errInterrupted = errors.New("interrupted")

// explainUnfinished says that a run that did not come to its end leaves no half file
// behind, and how to go on with it.
func (j *runJob) explainUnfinished(err error) error {
	if j.output == "" || errors.Is(err, checkpoint.ErrBusy) {
		return err
	}
	return fmt.Errorf("%w: %s was not written%s", err, j.output, j.log.advice(j.args))
}

// each writes every result.
func (j *runJob) each(ctx context.Context, progress *runtime.Progress, sum *summary, show *display) error {
	j.results.showOn(show)
	opts := []runtime.RunOption{runtime.WithProgress(progress), runtime.WithEvents(sum.event, steps.EventUsage)}
	if !j.quiet && j.in.file != nil {
		opts = append(opts, runtime.WithStepTimes())
	}
	if j.log != nil {
		opts = append(opts, runtime.WithCheckpoints(j.log.checkpoints))
	}
	bears := &failureLimit{most: j.maxFailures}
	opts = append(opts, runtime.WithDeferFailed(bears.mayDefer))
	for res, err := range j.app.Run(ctx, j.flow.ID, j.in.rows, opts...) {
		if err != nil {
			return err
		}
		if err := j.writeResult(res, sum); err != nil {
			return err
		}
		if err := bears.check(res); err != nil {
			return err
		}
	}
	return nil
}

// writeResult hands one result on. One that does not fit the output is a failed row.
func (j *runJob) writeResult(res *runtime.Result, sum *summary) error {
	err := j.results.row(res)
	var unfit *outputTypeError
	if errors.As(err, &unfit) {
		res.Err, err = &steps.Error{Err: unfit}, nil
	}
	if err != nil {
		return err
	}
	sum.add(res)
	return j.failed.add(res.Number, failureOf(res))
}

// took is a length of time in a few characters.
func took(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", max(d.Milliseconds(), 1))
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
}
