// Package author has the commands for those who write documents: they create, check, format, compare
// and draw documents, and serve editors. They run nothing, so that qtype-check, which has no others, is small.
package author

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/lint"
	"github.com/qtype-dev/qtype/internal/terminal"
)

// writeDiff writes a change of qtype validate or qtype fmt as a diff.
func writeDiff(s *cli.Streams, c lint.Change) error {
	text, masked := c.Diff()
	if masked {
		fmt.Fprintf(s.Err, "%s: secrets are shown as ***, so this diff cannot be applied\n", terminal.Clean(c.Path))
	}
	_, err := s.Out.Write(text)
	return err
}

// Group is the heading of the commands in the help text.
const Group = "Author:"

// Commands returns the commands in the order of the help text.
func Commands() []cli.Command {
	return []cli.Command{
		{Name: "init", Make: NewInit, Group: Group}, {Name: "validate", Make: NewValidate, Group: Group}, {Name: "fmt", Make: NewFormat, Group: Group},
		{Name: "diff", Make: NewDiff, Group: Group}, {Name: "explain", Make: NewExplain, Group: Group}, {Name: "schema", Make: NewSchema, Group: Group},
		{Name: "models", Make: func(s *cli.Streams) *cobra.Command { return NewModels(s) }, Group: Group},
		{Name: "lsp", Make: NewLSP, Group: Group}, {Name: "generate", Make: NewGenerate, Group: Group}, {Name: "visualize", Make: NewVisualize, Group: Group},
	}
}
