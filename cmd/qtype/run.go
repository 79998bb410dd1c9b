package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/records"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
)

// running is one call of qtype run.
type running struct {
	*streams
	flow          string
	input         string
	inputFile     string
	output        string
	format        *choice
	session       string
	sessionColumn string
	errors        string
	ephemeral     bool
	quiet         bool
}

func newRun(s *streams) *cobra.Command {
	r := &running{streams: s, format: newChoice("", "table", "jsonl", "json", "csv", "tsv")}
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
	f.BoolVarP(&r.quiet, "quiet", "q", false, "no progress and no summary")
	_ = c.RegisterFlagCompletionFunc("format", r.format.complete) // fails only for a flag that is not there
	return c
}

// consistent refuses flags that contradict each other.
func (r *running) consistent() error {
	switch {
	case r.input != "" && r.inputFile != "":
		return usagef("-i and -I exclude each other: a run has one input")
	case r.session != "" && r.sessionColumn != "":
		return usagef("--session and --session-column exclude each other")
	case r.output != "" && r.format.value != "":
		return usagef("--format is for standard output; a file's format is that of its name")
	}
	for _, path := range []string{r.output, r.errors} {
		if _, known := records.FormatOf(path); path != "" && !known {
			return usagef("%s: its name tells no format: .csv, .tsv, .json, .jsonl or .parquet is expected", path)
		}
	}
	return nil
}

func (r *running) run(ctx context.Context, path string) (err error) {
	if err := r.consistent(); err != nil {
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
	flow, err := r.chosen(app)
	if err != nil {
		return err
	}
	in, err := r.openInput(flow)
	if err != nil {
		return err
	}
	defer in.close()
	models, err := app.Models(flow.ID)
	if err != nil {
		return err
	}
	results, err := r.newSink(flow, in)
	if err != nil {
		return err
	}
	failed, err := r.newFailures(in, flow)
	if err != nil {
		results.abort()
		return err
	}
	j := &job{running: r, app: app, flow: flow, in: in, results: results, failed: failed}
	j.header(models)
	return j.do(ctx)
}

// open checks the document and readies it.
func (r *running) open(ctx context.Context, path string) (*runtime.App, error) {
	p, faults := qtype.Check(ctx, path, qtype.Strict())
	if err := faults.Err(); err != nil {
		return nil, err
	}
	if !r.quiet {
		r.printWarnings(path, faults)
	}
	if r.ephemeral {
		return qtype.Ready(p, qtype.Ephemeral())
	}
	return qtype.Ready(p, qtype.WithWarnings(func(line string) {
		if !r.quiet {
			fmt.Fprintln(r.err, "warning: "+clean(line))
		}
	}))
}

// chosen is the flow to run.
func (r *running) chosen(app *runtime.App) (*spec.Flow, error) {
	flow, err := app.Flow(r.flow)
	var none *runtime.NoFlowError
	if errors.As(err, &none) {
		return nil, fmt.Errorf("%w%s", err, didYouMean(none.ID, none.Flows))
	}
	return flow, err
}

// job is a run that has all it needs.
type job struct {
	*running
	app     *runtime.App
	flow    *spec.Flow
	in      *input
	results sink
	failed  *failures
}

// header tells what is run on what.
func (j *job) header(models []model.Info) {
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
}

// describeModel names a model; one that is none says so.
func describeModel(m model.Info) string {
	switch {
	case m.StandsFor != "":
		return fmt.Sprintf("model %s stands in for %s, which has no credentials (offline: answers are not a model's)", m.ID, m.StandsFor)
	case m.Mock:
		return fmt.Sprintf("model %s (offline: answers are not a model's)", m.ID)
	case m.Name != "" && m.Name != m.ID:
		return fmt.Sprintf("model %s (%s)", m.ID, m.Name)
	}
	return "model " + m.ID
}

// do takes the rows through the flow and closes what was opened.
func (j *job) do(ctx context.Context) error {
	progress := &runtime.Progress{}
	sum := newSummary(ctx, j)
	show := j.showProgress(ctx, progress)
	err := j.each(ctx, progress, sum, show)
	if err == nil {
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
		err = fmt.Errorf("%w after %s%s", errInterrupted, count(done, "row"), j.notWritten())
	}
	if !j.quiet {
		sum.print(context.WithoutCancel(ctx))
	}
	if err == nil && sum.failed > 0 {
		err = errSilent
	}
	return err
}

// errInterrupted ends a command that the user has stopped.
var errInterrupted = errors.New("interrupted")

// notWritten says that an interrupted run leaves no half file behind.
func (j *job) notWritten() string {
	if j.output == "" {
		return ""
	}
	return ": " + j.output + " was not written"
}

// each hands every result on.
func (j *job) each(ctx context.Context, progress *runtime.Progress, sum *summary, show *display) error {
	j.results.showOn(show)
	for res, err := range j.app.Run(ctx, j.flow.ID, j.in.rows, runtime.WithProgress(progress), runtime.WithEvents(sum.event, steps.EventUsage)) {
		if err != nil {
			return err
		}
		sum.add(res)
		if err := j.failed.add(res); err != nil {
			return err
		}
		if err := j.results.row(res); err != nil {
			return err
		}
	}
	return nil
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
