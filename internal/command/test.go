package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/apptest/testrun"
	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec"
)

// testCommand is one call of qtype test.
type testCommand struct {
	*cli.Streams
	format *cli.EnumFlag
	run    string
	quiet  bool
	record string // all, missing, or empty for a replay
	prune  bool
	trace  traceFlag
	allow  bool
	trials int
	flags  *pflag.FlagSet
}

func newTest(s *cli.Streams) *cobra.Command {
	t := &testCommand{Streams: s, format: cli.NewEnumFlag("text", "json", "junit", "github")}
	c := &cobra.Command{
		Use:   "test [PATH…]",
		Short: "Run application tests offline, with mocks",
		Long: `Runs the tests in files *.qtype-test.yaml: turns through a flow, with mocks in
place of models and tools, and the expected results. For a directory, all such files
below it are run; the default is the current directory.

Calls that no mock answers come from the file that a test file declares as recordings;
--record makes the calls and writes it.

Steps and tools that read or write files, query databases or start programs fail a test,
unless it lists them under allow; --allow-effects allows all of them.`,
		Example: `  qtype test
  qtype test app.qtype-test.yaml --run 'name'
  qtype test --format junit > report.xml
  qtype test app.qtype-test.yaml --record
  qtype test app.qtype-test.yaml --trials 10`,
		RunE: func(c *cobra.Command, args []string) error { return t.all(c.Context(), args) },
	}
	t.flags = c.Flags()
	t.format.AddTo(c, "format", "", "output format")
	c.Flags().StringVar(&t.run, "run", "", "run only tests whose names match this regular `EXPRESSION`")
	c.Flags().IntVar(&t.trials, "trials", 0, "run each test `N` times (default: trials of the file, or once)")
	c.Flags().StringVar(&t.record, "record", "", "call models and servers and write the recordings; `missing` adds only those that do not exist")
	c.Flags().Lookup("record").NoOptDefVal = "all"
	c.Flags().BoolVar(&t.prune, "remove-stale", false, "remove recordings that no test uses")
	t.trace.addTo(c.Flags())
	c.Flags().BoolVar(&t.allow, "allow-effects", false, "let all tests read and write files, query databases, start programs and call servers")
	c.Flags().BoolVarP(&t.quiet, "quiet", "q", false, "print failed tests only")
	c.AddCommand(newTestFrom(s))
	return c
}

// options returns what the flags say.
func (t *testCommand) options() (o qtype.TestOptions, err error) {
	names, err := regexp.Compile(t.run)
	if err != nil {
		return o, terminal.Usagef("--run: invalid regular expression %q", t.run)
	}
	mode, err := recordMode(t.record)
	switch {
	case err != nil:
		return o, err
	case t.flags.Changed("trials") && (t.trials < 1 || t.trials > spec.MaxTrials):
		return o, terminal.Usagef("--trials cannot be %d: expected a number from 1 to %d", t.trials, spec.MaxTrials)
	case t.prune && t.run != "":
		return o, terminal.Usagef("--remove-stale and --run exclude each other: the other tests may use the recordings")
	}
	log := qtype.WithLog(func(line string) { fmt.Fprintln(t.Err, line) })
	return qtype.TestOptions{Names: names, Record: mode, Prune: t.prune, AllowEffects: t.allow, Trials: t.trials, Options: []qtype.Option{log}}, t.trace.check()
}

// recordMode returns what the value of --record says.
func recordMode(value string) (qtype.TestRecordMode, error) {
	modes := map[string]qtype.TestRecordMode{"": qtype.TestReplay, "all": qtype.TestRecord, "missing": qtype.TestRecordMissing}
	mode, known := modes[value]
	if !known {
		return mode, terminal.Usagef("--record: %q is unknown: use --record or --record=missing", value)
	}
	return mode, nil
}

// all runs the tests at the paths.
func (t *testCommand) all(ctx context.Context, paths []string) (err error) {
	o, err := t.options()
	if err != nil {
		return err
	}
	trace, err := t.trace.open(t.Streams, redact.From(ctx), "turn", "tests")
	if err != nil {
		return err
	}
	defer closeTrace(trace, &err)
	ctx = trace.Context(ctx)
	if len(paths) == 0 {
		paths = []string{"."}
	}
	printer := &testrun.Printer{Out: t.Out, Quiet: t.quiet, Diagnostics: t.DiagnosticOptions(t.OutTerminal)}
	if t.format.Value == "text" {
		o.Started, o.Finished, o.Ended = printer.Started, printer.Finished, printer.Ended
	}
	begin := time.Now()
	reports, err := qtype.Test(ctx, paths, o)
	var missing *fs.PathError
	switch {
	case ctx.Err() != nil:
		return cli.ErrInterrupted
	case errors.As(err, &missing):
		return fmt.Errorf("%s: cannot be read: %w", missing.Path, terminal.Cause(err))
	case err != nil:
		return err
	case len(reports) == 0:
		return fmt.Errorf("no *.qtype-test.yaml in %s", textfmt.List(paths))
	case t.record != "" && !slices.ContainsFunc(reports, func(r qtype.TestReport) bool { return r.Recorded || r.Diagnostics.Errors() > 0 }):
		return errors.New("--record: no test file declares recordings: add recordings: app.recordings.json")
	}
	if err := printer.Summary(reports, t.format.Value, time.Since(begin)); err != nil {
		return err
	}
	switch passed, failed := testrun.Passed(reports); {
	case failed > 0:
		return cli.ErrSilent
	case passed == 0:
		return fmt.Errorf("no test has a name that matches %q", t.run)
	}
	return nil
}
