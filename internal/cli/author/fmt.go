package author

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/lint"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/internal/yamlformat"
)

// formatCommand is one call of qtype fmt.
type formatCommand struct {
	*cli.Streams
	check bool
	diff  bool
	quiet bool
}

// standardInput is the path that means standard input.
const standardInput = "-"

// NewFormat returns qtype fmt.
func NewFormat(s *cli.Streams) *cobra.Command {
	f := &formatCommand{Streams: s}
	c := &cobra.Command{
		Use:   "fmt PATH…",
		Short: "Format documents: indentation and white space",
		Long: `Formats documents in place and prints the names of those that changed: two spaces
per level, one space after colons and dashes, no spaces at the ends of lines, at
most one empty line in a row. Comments, anchors, tags such as !include, quotes and
line breaks stay, and the meaning never changes. PATH is a file, a directory, whose
*.qtype.yaml and *.qtype.yml are formatted, a pattern, or - for standard input,
which is written to standard output.

The exit status is 1 if --check or --diff finds a file that is not formatted, or if
a file cannot be read or has syntax errors.`,
		Example: `  qtype fmt app.qtype.yaml
  qtype fmt --check .
  qtype fmt --diff specs
  qtype fmt - < app.qtype.yaml`,
		Args: func(c *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return &terminal.UsageError{Command: c.CommandPath(), Reason: c.CommandPath() + " needs a file, a directory, or - for standard input"}
			case len(args) > 1 && slices.Contains(args, standardInput):
				return &terminal.UsageError{Command: c.CommandPath(), Reason: "- cannot be combined with other paths"}
			}
			return nil
		},
		ValidArgsFunction: cli.YAMLFiles,
		RunE:              func(c *cobra.Command, args []string) error { return f.run(c.Context(), args) },
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.BoolVar(&f.check, "check", false, "write nothing; list the files that are not formatted")
	flags.BoolVar(&f.diff, "diff", false, "write nothing; print the changes as a diff")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "do not print the names of files")
	return c
}

func (f *formatCommand) run(ctx context.Context, args []string) error {
	if args[0] == standardInput {
		return f.standardInput(ctx)
	}
	changes, failed, err := lint.Reformat(ctx, lint.Finder{Paths: args}, yamlformat.Format)
	if err != nil {
		return err
	}
	for _, c := range changes {
		if err := f.apply(c); err != nil {
			failed = append(failed, err)
		}
	}
	for _, err := range failed {
		f.Report(f.explain(err))
	}
	if f.check && !f.quiet && len(changes) > 0 {
		fmt.Fprintf(f.Err, "%s not formatted: run %s fmt\n", textfmt.Count(len(changes), "file"), f.Program)
	}
	if len(failed) > 0 || len(changes) > 0 && (f.check || f.diff) {
		return cli.ErrSilent
	}
	return nil
}

// apply writes a change, or shows it with --check or --diff.
func (f *formatCommand) apply(c lint.Change) error {
	if f.diff {
		if err := writeDiff(f.Streams, c); err != nil {
			return err
		}
	} else if !f.check {
		if err := c.Write(); err != nil {
			return err
		}
	}
	if f.quiet || f.diff {
		return nil
	}
	_, err := fmt.Fprintln(f.Out, terminal.Clean(c.Path))
	return err
}

// explain adds to an error about syntax how to see the place.
func (f *formatCommand) explain(err error) error {
	if errors.Is(err, yamlformat.ErrUnreadable) {
		return fmt.Errorf("%w; qtype validate shows where", err)
	}
	return err
}

// standardInput formats standard input to standard output.
func (f *formatCommand) standardInput(ctx context.Context) error {
	const name = "standard input"
	text, err := io.ReadAll(io.LimitReader(f.In, maxFormatted+1))
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", name, err)
	}
	if len(text) > maxFormatted {
		return fmt.Errorf("%s has more than %d MiB", name, maxFormatted>>20)
	}
	made, err := lint.FormatText(name, text, yamlformat.Format)
	changed := err == nil && !bytes.Equal(made, text)
	switch {
	case err != nil:
		return f.explain(err)
	case f.diff && changed:
		err = writeDiff(f.Streams, lint.NewChange(ctx, name, text, made))
	case f.check && changed && !f.quiet:
		_, err = fmt.Fprintln(f.Out, name)
	case !f.check && !f.diff:
		_, err = f.Out.Write(made)
	}
	if err == nil && changed && (f.check || f.diff) {
		return cli.ErrSilent
	}
	return err
}

// maxFormatted is the maximum size of standard input, in bytes, as for a document.
const maxFormatted = 4 << 20
