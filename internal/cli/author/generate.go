package author

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/scaffold"
	"github.com/qtype-dev/qtype/internal/terminal"
)

// NewGenerate returns qtype generate.
func NewGenerate(s *cli.Streams) *cobra.Command {
	return cli.CommandGroup("generate", "Generate files for coding assistants and editors", newSkills(s), NewSchema(s))
}

func newSkills(s *cli.Streams) *cobra.Command {
	var force bool
	c := &cobra.Command{
		Use:   "skills [DIR]",
		Short: "Write a skill for coding assistants",
		Long: `Writes a skill to the folder .claude/skills/qtype of a project, by default the current
one: how to write, check and test documents, with the reference of the language and the
examples of this version.`,
		Example: `  qtype generate skills
  qtype generate skills --force    # after an update of qtype`,
		Args: cli.OptionalArgument("directory"),
		RunE: func(_ *cobra.Command, args []string) error {
			written, err := scaffold.WriteSkills(strings.Join(args, ""), force)
			var file *fs.PathError
			var exists *scaffold.ExistsError
			switch {
			case errors.As(err, &exists):
				return fmt.Errorf("%s already exists; --force replaces the skill", exists.Paths[0])
			case errors.As(err, &file):
				return fmt.Errorf("%s: cannot be written: %w", terminal.Clean(file.Path), terminal.Cause(err))
			case err != nil:
				return err
			}
			_, err = fmt.Fprintf(s.Out, "wrote %s and %d references\n", terminal.Clean(written[0]), len(written)-1)
			return err
		},
	}
	c.Flags().BoolVar(&force, "force", false, "replace files of an earlier version")
	return c
}
