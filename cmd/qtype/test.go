package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/apptest"
	"github.com/qtype-dev/qtype/spec/diag"
)

// testCommand is one call of qtype test.
type testCommand struct {
	*streams
	format *enumFlag
	run    string
	quiet  bool
}

func newTest(s *streams) *cobra.Command {
	t := &testCommand{streams: s, format: newChoice("text", "json", "junit", "github")}
	c := &cobra.Command{
		Use:   "test [PATH…]",
		Short: "Run the tests of applications: no key, no network",
		Long: `Runs the tests in files *.qtype-test.yaml: turns through a flow, with mocks in
place of models and tools, and what must come of them. Of a folder all such files
in it are run; without a path those of the current one.`,
		Example: `  qtype test
  qtype test app.qtype-test.yaml --run 'name'
  qtype test --format junit > report.xml`,
		RunE: func(c *cobra.Command, args []string) error { return t.all(c.Context(), args) },
	}
	c.Flags().VarP(t.format, "format", "", "how results are told")
	c.Flags().StringVar(&t.run, "run", "", "only tests whose names match this regular expression")
	c.Flags().BoolVarP(&t.quiet, "quiet", "q", false, "say nothing of tests that passed")
	_ = c.RegisterFlagCompletionFunc("format", t.format.complete) // fails only for a flag that is not there
	return c
}

// all runs the tests that are found at the paths.
func (t *testCommand) all(ctx context.Context, paths []string) error {
	names, err := regexp.Compile(t.run)
	if err != nil {
		return usagef("--run %q is no regular expression", t.run)
	}
	if len(paths) == 0 {
		paths = []string{"."}
	}
	files, err := apptest.Find(paths)
	var missing *fs.PathError
	switch {
	case errors.As(err, &missing):
		return fmt.Errorf("%s: cannot be read: %w", missing.Path, plainCause(err))
	case err != nil:
		return err
	case len(files) == 0:
		return fmt.Errorf("there is no *.qtype-test.yaml in %s", joinNames(paths))
	}
	begin := time.Now()
	var reports []apptest.Report
	for _, path := range files {
		reports = append(reports, t.file(ctx, path, names))
		if ctx.Err() != nil {
			return errInterrupted
		}
	}
	if err := t.tell(reports, time.Since(begin)); err != nil {
		return err
	}
	switch passed, failed := apptest.Passed(reports); {
	case failed > 0:
		return errSilent
	case passed == 0:
		return fmt.Errorf("no test has a name that matches %q", t.run)
	}
	return nil
}

// file runs the tests of one file, and tells of each at once.
func (t *testCommand) file(ctx context.Context, path string, names *regexp.Regexp) apptest.Report {
	r := apptest.Report{Path: path}
	file, faults := apptest.Load(ctx, path, qtype.WithLog(func(line string) { fmt.Fprintln(t.err, line) }))
	text := t.format.value == "text"
	if r.Faults = faults; file == nil {
		if text {
			fmt.Fprintf(t.out, "%s cannot be run\n", clean(path))
			t.blocks(faults)
		}
		return r
	}
	tests := file.Tests(names)
	if text && len(tests) > 0 && !t.quiet {
		fmt.Fprintln(t.out, clean(path))
	}
	for _, test := range tests {
		o := file.Run(ctx, test)
		r.Outcomes = append(r.Outcomes, o)
		switch {
		case !text:
		case !o.Passed():
			fmt.Fprintf(t.out, "  ✗ %s%s\n", clean(o.Name), milliseconds(o.Took))
			t.blocks(o.Faults)
		case !t.quiet:
			fmt.Fprintf(t.out, "  ✓ %s%s\n", clean(o.Name), milliseconds(o.Took))
		}
	}
	return r
}

// blocks shows diagnostics among the lines of tests.
func (t *testCommand) blocks(list diag.List) {
	t.print(t.out, func(w io.Writer) error { return diag.Text(w, list, t.diagText(t.outTerminal)) })
	fmt.Fprintln(t.out)
}

// tell ends the report.
func (t *testCommand) tell(reports []apptest.Report, took time.Duration) error {
	switch t.format.value {
	case "json":
		return apptest.JSON(t.out, reports)
	case "junit":
		return apptest.JUnit(t.out, reports)
	case "github":
		return diag.GitHub(t.out, apptest.Faults(reports))
	}
	passed, failed := apptest.Passed(reports)
	if t.quiet && failed == 0 || passed+failed == 0 {
		return nil
	}
	sum := count(passed+failed, "test") + ": "
	if failed > 0 {
		sum += fmt.Sprintf("%d failed, ", failed)
	}
	_, err := fmt.Fprintf(t.out, "%s%d passed%s\n", sum, passed, milliseconds(took))
	return err
}
