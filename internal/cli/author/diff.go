package author

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype/internal/authoring"
	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/semdiff"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/loader"
)

// diffCommand is one call of qtype diff.
type diffCommand struct {
	*cli.Streams
	format *cli.EnumFlag
	models modelFlag // names that replace those of the document
	git    string    // the revision with the old document; empty for a file
}

// NewDiff returns qtype diff.
func NewDiff(s *cli.Streams) *cobra.Command {
	d := &diffCommand{Streams: s, format: cli.NewEnumFlag("text", "json")}
	c := &cobra.Command{
		Use:   "diff OLD NEW | --git REF PATH | --model ID=NAME PATH",
		Short: "Show semantic changes between two documents",
		Long: `Compares two documents by their meaning, not by their text. Each change is
classified: it breaks callers or stored conversations, changes the behavior, or is
harmless. The exit status is 1 if there is a breaking change: of an input or output
that is served, of a memory's settings, or of a tool.

With --git, the old document is that of a commit, with its includes and texts.

With --model, one document is compared with itself as if a model had another name: what
would be reported by validate, and the limits and prices of both models. The exit status
is 1 if there would be errors.`,
		Example: `  qtype diff old.qtype.yaml new.qtype.yaml
  qtype diff --git main app.qtype.yaml
  qtype diff --model assistant=gpt-6-luna app.qtype.yaml
  qtype diff --format json old.qtype.yaml new.qtype.yaml`,
		Args: func(c *cobra.Command, args []string) error {
			switch {
			case c.Flags().Changed("git") && strings.TrimSpace(d.git) == "":
				return terminal.Usagef("--git needs the name of a commit, such as HEAD or main")
			case d.git != "" && len(d.models) > 0:
				return terminal.Usagef("--git excludes --model")
			case d.git != "":
				return cli.Arguments("a document: qtype diff --git REF PATH")(c, args)
			case len(d.models) > 0:
				return cli.Arguments("a document: qtype diff --model ID=NAME PATH")(c, args)
			}
			return cli.Arguments("the old document: qtype diff OLD NEW", "the new document: qtype diff OLD NEW")(c, args)
		},
		ValidArgsFunction: cli.YAMLFiles,
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case d.git != "":
				return d.runRevision(c.Context(), args[0])
			case len(d.models) > 0:
				return d.runModels(c.Context(), args[0])
			}
			return d.run(c.Context(), args[0], authoring.Version{Path: args[0]}, args[1])
		},
	}
	d.format.AddTo(c, "format", "", "output format")
	c.Flags().Var(&d.models, "model", "compare as if the model ID were NAME or PROVIDER/NAME; repeatable")
	c.Flags().StringVar(&d.git, "git", "", "compare with the document in a commit, such as main or HEAD~1")
	return c
}

// runRevision compares a document with what it was in a commit.
func (d *diffCommand) runRevision(ctx context.Context, path string) error {
	r, err := openRevision(ctx, d.git, path)
	if err != nil {
		return err
	}
	return d.run(ctx, d.git+":"+path, authoring.Version{Path: path, Options: authoring.Options{Loader: loader.Options{Open: r.open}}}, path)
}

// run compares two documents; name is how the old one is called in the output.
func (d *diffCommand) run(ctx context.Context, name string, before authoring.Version, after string) error {
	changes, err := authoring.Diff(ctx, before, authoring.Version{Path: after})
	if err != nil {
		return err
	}
	if err := d.write(remotefs.Redacted(name), remotefs.Redacted(after), changes); err != nil {
		return err
	}
	if semdiff.Count(changes, semdiff.Breaking) > 0 {
		return cli.ErrSilent
	}
	return nil
}

func (d *diffCommand) write(before, after string, changes []semdiff.Change) error {
	if d.format.Value == "json" {
		return semdiff.JSON(d.Out, before, after, changes)
	}
	if err := semdiff.Text(d.Out, changes, d.OutTerminal && d.Color); err != nil {
		return err
	}
	if len(changes) > 0 {
		fmt.Fprintln(d.Out)
	}
	_, err := fmt.Fprintf(d.Out, "%s → %s: %s\n", terminal.Clean(before), terminal.Clean(after), semdiff.Summary(changes))
	return err
}
