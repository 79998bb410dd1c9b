package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype/internal/convert"
	"github.com/qtype-dev/qtype/spec/diag"
)

// convertCommand is one call of qtype convert.
type convertCommand struct {
	*streams
	output string
	strict bool
	format *enumFlag
}

// plannedKinds are converted by a later version.
func plannedKinds() []string { return []string{"api", "module"} }

func newConvert(s *streams) *cobra.Command {
	v := &convertCommand{streams: s, format: newChoice("text", "json")}
	c := &cobra.Command{
		Use:   "convert KIND FILE",
		Short: "Make a document of another system's file",
		Long: `Makes a document of the file of another system and prints it. KIND is

  airefinery  a project file of AI Refinery, or its memory_config alone
  xflow       a workflow of xFlow, a list of its states, or a memory block alone

FILE is - for standard input. What the document cannot say is told on standard
error, with its place. A warning changes no answer; exit status 0. An error means
that the document does something else than the file did: it is written all the
same, with a comment that says TODO, and the exit status is 1.`,
		Example: `  qtype convert xflow workflow.yaml -o app.qtype.yaml
  qtype convert airefinery project.yaml
  qtype convert xflow - --format json <workflow.json >app.qtype.yaml`,
		Args: convertArguments,
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return kindNames(), cobra.ShellCompDirectiveNoFileComp
			}
			return []string{"yaml", "yml", "json"}, cobra.ShellCompDirectiveFilterFileExt
		},
		RunE: func(c *cobra.Command, args []string) error {
			return v.run(c.Context(), convert.Kind(args[0]), args[1])
		},
	}
	c.Flags().StringVarP(&v.output, "output", "o", "", "write it to this `FILE`")
	c.Flags().Var(v.format, "format", "how what is told is written")
	c.Flags().BoolVar(&v.strict, "strict", false, "fail on warnings too")
	_ = c.RegisterFlagCompletionFunc("format", v.format.complete) // fails only for a flag that is not there
	return c
}

// kindNames are the kinds that can be converted.
func kindNames() []string {
	var names []string
	for _, k := range convert.Kinds() {
		names = append(names, string(k))
	}
	return names
}

// convertArguments demands a kind that is known and a file.
func convertArguments(c *cobra.Command, args []string) error {
	wrong := func(format string, values ...any) error {
		return &usageError{command: c.CommandPath(), reason: fmt.Sprintf(format, values...)}
	}
	switch {
	case len(args) == 0:
		return wrong("qtype convert needs a kind of file: %s", joinNames(kindNames()))
	case slices.Contains(plannedKinds(), args[0]):
		return wrong("qtype convert %s is not available yet; it converts %s", args[0], joinNames(kindNames()))
	case !slices.Contains(kindNames(), args[0]):
		return wrong("qtype convert knows no kind %q%s; it converts %s", args[0], didYouMean(args[0], kindNames()), joinNames(kindNames()))
	}
	return arguments("a kind of file", "a file: qtype convert "+args[0]+" FILE")(c, args)
}

func (v *convertCommand) run(ctx context.Context, kind convert.Kind, path string) error {
	text, faults, err := v.read(ctx, kind, path)
	if err != nil {
		return err
	}
	if v.strict {
		faults = faults.AsErrors()
	}
	switch {
	case v.format.value == "json":
		v.print(v.err, func(w io.Writer) error { return diag.JSON(w, faults) })
	case len(faults) > 0:
		v.print(v.err, func(w io.Writer) error { return diag.Text(w, faults, v.diagText(v.errTerminal)) })
	}
	if text != "" {
		if err := v.write(v.output, text); err != nil {
			return err
		}
	}
	if faults.Errors() > 0 {
		return errSilent
	}
	return nil
}

// read converts the file that was named, or what comes in.
func (v *convertCommand) read(ctx context.Context, kind convert.Kind, path string) (string, diag.List, error) {
	switch {
	case path == "-":
		text, faults := convert.Reader(ctx, kind, "standard input", v.in)
		return text, faults, nil
	case v.output != "" && sameFile(v.output, path):
		return "", nil, usagef("%s is the file to convert; -o needs another name", v.output)
	}
	text, faults := convert.File(ctx, kind, path)
	return text, faults, nil
}

// sameFile tells whether two names are of one file, as far as names tell.
func sameFile(a, b string) bool {
	x, err := filepath.Abs(a)
	y, err2 := filepath.Abs(b)
	return err == nil && err2 == nil && x == y
}
