package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/validate/lint"
)

// validateCommand is one call of qtype validate.
type validateCommand struct {
	*streams
	find   lint.Finder
	load   loader.Options // how documents are read
	format *enumFlag
	strict bool
	quiet  bool
	fix    bool
	diff   bool
	watch  bool
}

func newValidate(s *streams) *cobra.Command {
	v := &validateCommand{streams: s, format: newChoice("text", "json", "sarif", "github")}
	c := &cobra.Command{
		Use:   "validate PATH…",
		Short: "Check documents, without running anything",
		Long: `Checks documents, and in folders every *.qtype.yaml and *.qtype.yml, and tells
every fault with its place. A PATH may be a pattern ('specs/**/*.yaml') and a
Markdown page, whose fenced YAML blocks are checked where they are whole
documents. It may be an address, too: https://…, and s3://…, gs://… and az://… in
a build with -tags cloud. No secrets are needed, and no network but for what a
document includes from there. Exit status 1 where there is an error; warnings fail
only with --strict.

A comment  # qtype:ignore QT905  at the end of a line, or on a line of its own
above it, silences that code there.`,
		Example: `  qtype validate app.qtype.yaml
  qtype validate --strict examples docs --markdown
  qtype validate --fix --diff .
  qtype validate --format github .`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return &usageError{command: c.CommandPath(), reason: "qtype validate needs a file or a folder"}
			}
			for _, path := range args {
				if strings.HasSuffix(path, ".qtype-test.yaml") || strings.HasSuffix(path, ".qtype-test.yml") {
					return &usageError{command: c.CommandPath(), reason: path + " is a file of tests: qtype test checks and runs it"}
				}
			}
			return v.check(c)
		},
		ValidArgsFunction: yamlFiles,
		RunE: func(c *cobra.Command, args []string) error {
			v.find.Paths = args
			return v.run(c.Context())
		},
	}
	f := c.Flags()
	f.SortFlags = false
	f.Var(v.format, "format", "how faults are written")
	f.BoolVar(&v.strict, "strict", false, "fail on warnings too")
	f.BoolVarP(&v.quiet, "quiet", "q", false, "say nothing when all is well")
	f.BoolVar(&v.find.Markdown, "markdown", false, "check the Markdown pages of folders, too")
	f.BoolVar(&v.fix, "fix", false, "mend in place what has exactly one safe mending")
	f.BoolVar(&v.diff, "diff", false, "show what --fix would change, and change nothing")
	f.BoolVar(&v.load.Offline, "offline", false, "read nothing from other machines: such an include is an error")
	f.BoolVarP(&v.watch, "watch", "w", false, "check again whenever a file changes, until interrupted")
	_ = c.RegisterFlagCompletionFunc("format", v.format.complete) // fails only for a flag that is not there
	return c
}

// check refuses flags that do not go together.
func (v *validateCommand) check(c *cobra.Command) error {
	reason := ""
	switch {
	case v.watch && (v.fix || v.diff):
		reason = "--watch cannot be used with --fix or --diff"
	case v.diff && v.format.value != "text":
		reason = "--diff has a form of its own: it cannot be used with --format " + v.format.value
	}
	if reason == "" {
		return nil
	}
	return &usageError{command: c.CommandPath(), reason: reason}
}

func (v *validateCommand) run(ctx context.Context) error {
	begin := time.Now()
	switch {
	case v.watch:
		return v.watching(ctx)
	case v.fix || v.diff:
		return v.mend(ctx, begin)
	}
	documents, err := v.find.Find(ctx)
	if err != nil {
		return err
	}
	results := lint.Check(ctx, documents, v.load)
	if ctx.Err() != nil {
		return errInterrupted
	}
	return v.tell(results, time.Since(begin))
}

// mend writes what can be mended, or shows it, and tells what is left.
func (v *validateCommand) mend(ctx context.Context, begin time.Time) error {
	changes, results, err := lint.Fix(ctx, v.find, v.load)
	if err != nil {
		return err
	}
	mended := 0
	for _, c := range changes {
		mended += c.Fixed
		if v.diff {
			text, masked := c.Diff()
			if masked {
				fmt.Fprintf(v.err, "%s: secrets are shown as ***, so this diff cannot be applied\n", clean(c.Path))
			}
			if _, err := v.out.Write(text); err != nil {
				return err
			}
		} else if err := c.Write(); err != nil {
			return err
		}
	}
	if v.diff {
		return v.diffEnd(results, mended, len(changes))
	}
	if mended > 0 && !(v.quiet && lint.Diagnostics(results).Errors() == 0) {
		// Machines read standard output; people are told there, too, for it is the result.
		to := v.out
		if v.format.value != "text" {
			to = v.err
		}
		fmt.Fprintf(to, "mended %s in %s\n", count(mended, "fault"), count(len(changes), "file"))
	}
	return v.tell(results, time.Since(begin))
}

// diffEnd tells on standard error what the diff is about, so that standard
// output can be handed to patch. It fails where something is wrong, as a check does.
func (v *validateCommand) diffEnd(results []lint.Result, mended, files int) error {
	left := lint.Diagnostics(v.withSeverities(results))
	if mended > 0 || len(left) > 0 {
		fmt.Fprintf(v.err, "--fix would mend %s in %s; %s would be left\n", count(mended, "fault"), count(files, "file"), count(len(left), "finding"))
	}
	if mended > 0 || left.Errors() > 0 {
		return errSilent
	}
	return nil
}

// watching checks until it is interrupted; the last check decides the exit status.
func (v *validateCommand) watching(ctx context.Context) error {
	last := error(nil)
	times := 0
	w := lint.Watcher{Find: v.find, Load: v.load, Show: func(results []lint.Result, found error) error {
		if times++; times > 1 && v.format.value == "text" && !v.quiet {
			fmt.Fprintf(v.out, "\n── changed at %s\n", time.Now().Format(time.TimeOnly))
		}
		if last = found; found != nil {
			v.report(found)
			return nil
		}
		last = v.tell(results, 0)
		if errors.Is(last, errSilent) {
			return nil
		}
		return last // standard output is gone
	}}
	if err := w.Run(ctx); err != nil {
		return err
	}
	if last != nil {
		return errSilent
	}
	return nil
}

// write writes to standard output or, where a name is given, to a new file.
func (s *streams) write(path, text string) error {
	if path == "" {
		_, err := io.WriteString(s.out, text)
		return err
	}
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		return fmt.Errorf("%s: cannot be written: %w", path, plainCause(err))
	}
	return nil
}
