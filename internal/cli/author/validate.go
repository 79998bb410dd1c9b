package author

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype/internal/authoring"
	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/lint"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/loader"
)

// validateCommand is one call of qtype validate.
type validateCommand struct {
	*cli.Streams
	find   lint.Finder
	load   loader.Options
	format *cli.EnumFlag
	strict bool
	quiet  bool
	fix    bool
	diff   bool
	watch  bool
	on     string    // the day for which documents are checked; empty for today
	models modelFlag // names that replace those of the document
}

// NewValidate returns qtype validate.
func NewValidate(s *cli.Streams) *cobra.Command {
	v := &validateCommand{Streams: s, format: cli.NewEnumFlag("text", "json", "sarif", "github")}
	c := &cobra.Command{
		Use:   "validate PATH…",
		Short: "Check documents, without running anything",
		Long: `Checks documents and reports every error with its location. In directories, every
*.qtype.yaml and *.qtype.yml is checked. PATH may also be a pattern
('specs/**/*.yaml'), a file of tests or of an evaluation, a Markdown page, whose
fenced YAML blocks are checked if they are whole documents, or a URL: https://…,
and s3://…, gs://… and az://… in the distribution. No secrets are needed,
and network access only for remote includes. The exit status is 1 if there are
errors; warnings count with --strict.

Models that are shut down, or will be within 90 days, are reported; --on checks as if
it were another day, and --model as if a model had another name.

A comment  # qtype:ignore QT917  at the end of a line, or on the line above,
silences that code there.`,
		Example: `  qtype validate app.qtype.yaml
  qtype validate --strict examples docs --markdown
  qtype validate --fix --diff .
  qtype validate --on 2027-02-01 app.qtype.yaml
  qtype validate --model assistant=gpt-6-luna app.qtype.yaml
  qtype validate --format github .`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return &terminal.UsageError{Command: c.CommandPath(), Reason: c.CommandPath() + " needs a file or a directory"}
			}
			return v.check(c)
		},
		ValidArgsFunction: cli.YAMLFiles,
		RunE: func(c *cobra.Command, args []string) error {
			v.find.Paths, v.find.Kinds = args, authoring.FileKinds(authoring.Options{})
			return v.run(c.Context())
		},
	}
	f := c.Flags()
	f.SortFlags = false
	v.format.AddTo(c, "format", "", "output format")
	f.BoolVar(&v.strict, "strict", false, "treat warnings as errors")
	f.BoolVarP(&v.quiet, "quiet", "q", false, "print errors only")
	f.BoolVar(&v.find.Markdown, "markdown", false, "also check the Markdown pages in directories")
	f.BoolVar(&v.fix, "fix", false, "apply safe fixes in place")
	f.BoolVar(&v.diff, "diff", false, "print the fixes as a diff")
	f.BoolVar(&v.load.Offline, "offline", false, "do not read remote includes")
	f.StringVar(&v.on, "on", "", "check as if it were `DAY`, such as 2027-01-31")
	f.Var(&v.models, "model", "check as if the model ID were NAME or PROVIDER/NAME; repeatable")
	f.BoolVarP(&v.watch, "watch", "w", false, "watch files and re-check on change")
	return c
}

// check rejects flags that exclude each other.
func (v *validateCommand) check(c *cobra.Command) error {
	reason := ""
	switch {
	case v.watch && (v.fix || v.diff):
		reason = "--watch cannot be used with --fix or --diff"
	case len(v.models) > 0 && (v.fix || v.diff):
		reason = "--model cannot be used with --fix or --diff"
	case v.diff && v.format.Value != "text":
		reason = "--diff cannot be used with --format " + v.format.Value
	}
	if reason == "" {
		return nil
	}
	return &terminal.UsageError{Command: c.CommandPath(), Reason: reason}
}

func (v *validateCommand) run(ctx context.Context) error {
	begin := time.Now()
	var err error
	if v.load.Day, err = dayOf(v.on); err != nil {
		return err
	}
	if err := v.replaceModels(ctx); err != nil {
		return err
	}
	switch {
	case v.watch:
		return v.watchFiles(ctx)
	case v.fix || v.diff:
		return v.applyFixes(ctx, begin)
	}
	documents, err := v.find.Find(ctx)
	if err != nil {
		return err
	}
	results := lint.Check(ctx, documents, v.load)
	if ctx.Err() != nil {
		return cli.ErrInterrupted
	}
	return v.write(results, time.Since(begin))
}

// replaceModels sets the names of models that --model gives for one document.
func (v *validateCommand) replaceModels(ctx context.Context) error {
	if len(v.models) == 0 {
		return nil
	}
	if len(v.find.Paths) != 1 {
		return terminal.Usagef("--model needs one document, not %d", len(v.find.Paths))
	}
	loaded, _ := loader.Load(ctx, v.find.Paths[0], v.load) // errors are reported by the check
	if err := authoring.HasModels(loaded.Document, v.models); err != nil {
		return err
	}
	v.load.Models = v.models
	return nil
}

// printer returns what writes the results.
func (v *validateCommand) printer() *lint.Printer {
	return &lint.Printer{Out: v.Out, Format: v.format.Value, Version: cli.Version(), Paths: v.find.Paths, Strict: v.strict, Quiet: v.quiet, Fix: v.fix, Diagnostics: v.DiagnosticOptions(v.OutTerminal)}
}

// write writes results and fails without a message if documents have errors.
func (v *validateCommand) write(results []lint.Result, took time.Duration) error {
	err := v.printer().Write(results, took)
	if errors.Is(err, lint.ErrInvalid) {
		return cli.ErrSilent
	}
	return err
}

// applyFixes applies the fixes, or prints them as a diff, and writes the diagnostics
// that remain.
func (v *validateCommand) applyFixes(ctx context.Context, begin time.Time) error {
	changes, results, err := lint.Fix(ctx, v.find, v.load)
	if err != nil {
		return err
	}
	fixed := 0
	for _, c := range changes {
		fixed += c.Fixed
		if v.diff {
			if err := writeDiff(v.Streams, c); err != nil {
				return err
			}
		} else if err := c.Write(); err != nil {
			return err
		}
	}
	if v.diff {
		return v.diffSummary(results, fixed, len(changes))
	}
	if fixed > 0 && !(v.quiet && lint.Diagnostics(results).Errors() == 0) {
		to := v.Out
		if v.format.Value != "text" { // read by programs
			to = v.Err
		}
		fmt.Fprintf(to, "fixed %s in %s\n", textfmt.Count(fixed, "problem"), textfmt.Count(len(changes), "file"))
	}
	return v.write(results, time.Since(begin))
}

// diffSummary writes a summary to standard error, so that standard output can be
// piped to patch. It fails if there is something to fix or an error remains.
func (v *validateCommand) diffSummary(results []lint.Result, fixed, files int) error {
	left := lint.Diagnostics(v.printer().Severities(results))
	if fixed > 0 || len(left) > 0 {
		fmt.Fprintf(v.Err, "--fix would fix %s in %s; %s would remain\n", textfmt.Count(fixed, "problem"), textfmt.Count(files, "file"), textfmt.Count(len(left), "diagnostic"))
	}
	if fixed > 0 || left.Errors() > 0 {
		return cli.ErrSilent
	}
	return nil
}

// watchFiles checks until it is interrupted. The last check decides the exit status.
func (v *validateCommand) watchFiles(ctx context.Context) error {
	last := error(nil)
	times := 0
	w := lint.Watcher{Find: v.find, Load: v.load, Show: func(results []lint.Result, found error) error {
		if times++; times > 1 && v.format.Value == "text" && !v.quiet {
			fmt.Fprintf(v.Out, "\n── changed at %s\n", time.Now().Format(time.TimeOnly))
		}
		if last = found; found != nil {
			v.Report(found)
			return nil
		}
		last = v.write(results, 0)
		if errors.Is(last, cli.ErrSilent) {
			return nil
		}
		return last // standard output is closed
	}}
	if err := w.Run(ctx); err != nil {
		return err
	}
	if last != nil {
		return cli.ErrSilent
	}
	return nil
}

// dayVariable is the variable of reproducible builds that stands for the time of day.
const dayVariable = "SOURCE_DATE_EPOCH"

// today returns the day for which documents are checked: SOURCE_DATE_EPOCH, in seconds since
// 1970, or else the present one.
func today() time.Time {
	if seconds, err := strconv.ParseInt(os.Getenv(dayVariable), 10, 64); err == nil {
		return time.Unix(seconds, 0).UTC()
	}
	return time.Now().UTC()
}

// dayOf returns the day of the flag --on, by default today.
func dayOf(text string) (time.Time, error) {
	if text == "" {
		return today(), nil
	}
	day, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return time.Time{}, terminal.Usagef("--on %q is not a day such as 2027-01-31", text)
	}
	return day, nil
}

// modelFlag is the repeated flag --model ID=NAME.
type modelFlag map[string]string

// String returns nothing: the flag has no default.
func (f *modelFlag) String() string { return "" }

// Set adds a model.
func (f *modelFlag) Set(text string) error {
	id, name, ok := strings.Cut(text, "=")
	if !ok || id == "" || name == "" {
		return fmt.Errorf("%q is not ID=NAME, such as assistant=gpt-6-luna", text)
	}
	if *f == nil {
		*f = modelFlag{}
	}
	(*f)[id] = name
	return nil
}

// Type names the value in the help.
func (f *modelFlag) Type() string { return "ID=NAME" }
